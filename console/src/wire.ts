/** What the console reads of the gateway's public admin API; fields that it does not show are left out. */

export interface QueueGroup {
  readonly depth: number;
  readonly workMs: number;
  readonly oldestWaitMs: number;
}

export interface Accounts {
  readonly arrived: number;
  readonly served: number;
  readonly degraded: number;
  readonly rejected: number;
  readonly evicted: number;
  readonly failed: number;
  readonly cancelled: number;
}

export interface Trigger {
  readonly trigger: string;
  readonly stage: number;
  readonly value: number | null;
  readonly enter: number;
  readonly leave: number;
  readonly isLit: boolean;
}

export interface Ladder {
  readonly mode: string;
  readonly stage: number;
  readonly model: string | null;
  readonly since: number | null;
  readonly expires: number | null;
  readonly triggers: readonly Trigger[];
  readonly queue: {
    readonly depth: number;
    readonly depthMax: number;
    readonly className: string;
    readonly drainMs: number | null;
    readonly targetMs: number;
  } | null;
  readonly unblock: string;
  readonly override: { readonly who: string; readonly why: string; readonly expires: number } | null;
}

/** State, time to drain in ms, health, in flight, slots, rate. */
export type NodeRow = readonly [number, number, number, number, number | null, number | null];

export interface Fleet {
  readonly fleet: number;
  readonly states: readonly string[];
  readonly ids: readonly string[];
  readonly total: number;
}

export interface Picture {
  readonly at: number;
  readonly ready: boolean;
  readonly queue: QueueGroup & {
    readonly running: number;
    readonly bytes: number;
    readonly byClass: Readonly<Record<string, QueueGroup>>;
  };
  readonly accounts: Accounts;
  readonly retryBudget: number;
  readonly signals: { readonly page: number; readonly warn: number };
  readonly ladder: Ladder;
  readonly nodes: {
    readonly fleet: number;
    readonly byState: Readonly<Record<string, number>>;
    readonly rows: readonly NodeRow[];
  };
}

export interface Signal {
  readonly signal: string;
  readonly severity: 'warn' | 'page';
  readonly since: number;
  readonly subject: { readonly kind: string; readonly id: string };
  readonly evidence: Readonly<Record<string, number | string>>;
  readonly says: string;
  readonly remedy: string;
  readonly docs: string;
}

export interface Detector {
  readonly signal: string;
  readonly state: 'quiet' | 'watching' | 'blind' | 'active';
  readonly why: string;
}

export interface SignalsPage {
  readonly signals: readonly Signal[];
  readonly detectors: readonly Detector[];
}

export interface ListedRequest {
  readonly id: string;
  readonly state: string;
  readonly reason: string;
  readonly class: string;
  readonly tenant: string;
  readonly model: string;
  readonly node: string | null;
  readonly attempts: number;
  readonly received: number;
  readonly done: number | null;
  readonly deadlineMs: number | null;
}

export interface RequestPage extends Omit<ListedRequest, 'received' | 'done'> {
  readonly timeline: Readonly<Record<string, number | null>>;
  readonly workMs: number | null;
  readonly failures: readonly {
    readonly node: string;
    readonly attempt: number;
    readonly failure: string;
    readonly at: number | null;
  }[];
  readonly position: number | null;
  readonly etaMs: number | null;
  readonly gates: readonly { readonly gate: string; readonly since: number; readonly detail: string }[];
  readonly nodes: readonly {
    readonly id: string;
    readonly eligible: boolean;
    readonly reasons: readonly string[];
    readonly attempt?: number;
    readonly result?: string;
  }[];
  readonly nodesTotal: number;
  readonly nodesNextOffset: number | null;
  readonly unblock: string;
  readonly cure: { readonly kind: string; readonly nodeId?: string } | null;
  readonly decisions?: readonly Decision[];
}

export interface Decision {
  readonly seq: number;
  readonly at: number;
  readonly kind: string;
  readonly task?: string;
  readonly node?: string;
  readonly attempt?: number;
  readonly reason?: string;
  readonly state?: string;
  readonly model?: string;
  readonly stage?: number;
  readonly nodes?: readonly { readonly id: string; readonly doneMs: number }[];
  readonly refusals?: Readonly<Record<string, number>>;
}

export interface DecisionsPage {
  readonly decisions: readonly Decision[];
  readonly next: number;
}

export interface WireNode {
  readonly id: string;
  readonly url: string;
  readonly protocol: string;
  readonly models: readonly string[];
  readonly slots?: number;
  readonly hardware: string;
  readonly state: string;
  readonly health: number;
  readonly rate: number | null;
  readonly inflight: number;
  readonly drainMs: number;
  readonly source: string;
  readonly cordoned: boolean;
  readonly draining: boolean;
  readonly ejectedForMs: number;
}

export interface ConfigPage {
  readonly config: Readonly<Record<string, unknown>>;
  readonly origins: Readonly<Record<string, string>>;
  /** Absent where nothing changes the configuration. */
  readonly version?: number;
}

export interface Change {
  readonly path: string;
  readonly from?: unknown;
  readonly to?: unknown;
}

/** What a change did, or would do. */
export interface ChangeOutcome {
  readonly version: number;
  readonly changed: readonly Change[];
  readonly changedTotal: number;
  readonly needsRestart: readonly string[];
}

export interface ConfigVersion {
  readonly version: number;
  readonly at: number;
  readonly why: string;
  readonly who: string;
  readonly changed: readonly Change[];
}
