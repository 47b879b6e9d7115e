/**
 * Configuration as the program uses it: complete, checked, frozen. Files and environment are read elsewhere; every
 * quantity has its unit in its name; defaults, with reasons, are in `defaults.ts`.
 */
import type {
  Bytes,
  ClassName,
  DurationMs,
  ModelId,
  NodeId,
  Ratio,
  TenantId,
  Tokens,
} from '../../base/units.ts';
import type { ModelOffer } from '../request/needs.ts';

/** What a tenant, a class or a model may use; what is absent is not limited. */
export interface LimitsConfig {
  readonly requestsPerMinute?: number;
  /** Most requests at once; absent: those of one minute. */
  readonly requestsBurst?: number;
  /** Prompt and output together. */
  readonly tokensPerMinute?: number;
  /** Most tokens at once; absent: those of one minute. */
  readonly tokensBurst?: number;
  /** Requests that may be queued or running at the same time. */
  readonly concurrency?: number;
}

export interface ClassConfig {
  readonly name: ClassName;
  /** Share of served work relative to the other backlogged classes. */
  readonly weight: number;
  /** Least share of served work while backlogged, whatever the weights say. */
  readonly shareMin: Ratio;
  /** Default bound on the first content byte of a stream. */
  readonly firstByteMs: DurationMs;
  /** Default bound on completion. */
  readonly completionMs: DurationMs;
  /** Of all requests of the class together. */
  readonly limits?: LimitsConfig;
}

export interface BoundsConfig {
  readonly tasksMax: number;
  readonly bytesMax: Bytes;
  /** Queued work, in reference milliseconds. */
  readonly workMsMax: number;
  /** Largest part of each bound that one class may hold. */
  readonly classShareMax: Ratio;
  /** Largest part of each bound that one tenant may hold. */
  readonly tenantShareMax: Ratio;
}

export interface AdmissionConfig {
  /** The gate per flow refuses when its queue would take longer than the lesser of the two. */
  readonly flowWaitMsMax: DurationMs;
  readonly flowWaitDeadlineShare: Ratio;
  /** A flow of which more is refused keeps less of that. */
  readonly refusedShareMax: Ratio;
  /** Bounds on a deadline that a client may ask for; outside is a bad request. */
  readonly deadlineMsMin: DurationMs;
  readonly deadlineMsMax: DurationMs;
  /** A class default never asks for less than this many times the best node's service time. */
  readonly serviceTimesMin: number;
  /** Feasibility multiplies the predicted service time by a margin between these, by measured error. */
  readonly marginMin: number;
  readonly marginMax: number;
  /** The upper one where what waits takes longer than the task has left; without effect below `marginMax`. */
  readonly crowdedMarginMax: number;
}

export interface PlacementConfig {
  /** Most tasks held for a faster busy node per dispatch (8 to 16). */
  readonly heldMax: number;
  /** Completion times closer than this count as equal. */
  readonly nearTieRatio: Ratio;
  /** A node whose bound work takes longer takes nothing new. */
  readonly drainMsMax: DurationMs;
  /** A node below this health takes nothing new. */
  readonly healthMin: Ratio;
  /** How often an idle slow node gets a task so that its rate stays known. */
  readonly exploreEveryMs: DurationMs;
  /** Estimated price of loading another model, per swap. */
  readonly swapMs: DurationMs;
  /** Cache use of a batching engine above which it has no room, and below which it has room again. */
  readonly cacheUseMax: Ratio;
  readonly cacheUseResume: Ratio;
  /** Concurrent tasks with which a node starts that states no slots and gives no readings (gate `concurrency`). */
  readonly slotsDefault: number;
  /** Most concurrent tasks of a node that states no slots. */
  readonly batchSlotsMax: number;
  /** Bytes of a prompt that count as one block of what nodes keep. */
  readonly prefixBlockBytes: Bytes;
}

export interface HealthConfig {
  /** Heartbeats of self-joining nodes: expected interval, and silence after which a node is suspect. */
  readonly heartbeatMs: DurationMs;
  readonly suspectAfterMs: DurationMs;
  /** How often the runtime compares every node with its probe. */
  readonly reconcileMs: DurationMs;
  /** A suspect mark expires after this time unless it is renewed. */
  readonly suspectLeaseMs: DurationMs;
  /** First sleep of an ejected node; doubles to the maximum. */
  readonly ejectMs: DurationMs;
  readonly ejectMsMax: DurationMs;
  /** How long a refusal (429, 503) closes a node's room when the node names no time. */
  readonly refusedMs: DurationMs;
  /** Successes until a new or returned node has its full share. */
  readonly slowStartTasks: number;
}

export interface RetryConfig {
  readonly attemptsMax: number;
  /** Retried work as a share of completed work. */
  readonly budgetRatio: Ratio;
  /** Retries that are always allowed, per ten seconds. */
  readonly budgetReserve: number;
}

/** What running work may be thrown away so that a task of the first class has its place. */
export interface PreemptionConfig {
  /** Work thrown away as a share of completed work. */
  readonly budgetRatio: Ratio;
  /** Preemptions that are always allowed, per ten seconds. */
  readonly budgetReserve: number;
}

/** When the overload ladder goes up and down. Each stage is a lease that evidence renews. */
export interface LadderConfig {
  /** Mean use of accelerator memory that leads to stage 1 after `memoryMs`, and below which it is over. */
  readonly memoryUseMax: Ratio;
  readonly memoryUseResume: Ratio;
  readonly memoryMs: DurationMs;
  /** How long the queue of a class may take, in multiples of what the gate lets a flow wait; longer leads to stage 2. */
  readonly queueRatioMax: number;
  /** Tasks waiting for the nodes of a model from which the queue counts as too long, whatever its time. */
  readonly depthMax: number;
  /** How long the queue must be too long. */
  readonly queueMs: DurationMs;
  /** Below this part of what makes it too long the queue is over. */
  readonly queueResumeRatio: Ratio;
  /** Part of its gate that a flow below the first class may have waiting at stage 2. */
  readonly waitShare: Ratio;
  /** Missed deadlines over outcomes, of five minutes and still, that lead to stage 3, and below which they are over. */
  readonly missRatioMax: Ratio;
  readonly missRatioResume: Ratio;
  /** How long evidence must be gone before it counts as over. */
  readonly calmMs: DurationMs;
  /** How long stages 1 and 2, and stage 3, last after the last evidence. */
  readonly leaseMs: DurationMs;
  readonly criticalOnlyMs: DurationMs;
}

/** Learned bounds on a node's silence (gate `timeouts`). */
export interface TimeoutsConfig {
  /** A bound is this many times the 99th percentile of the usual time. */
  readonly safetyFactor: number;
  /** No bound on an answer's beginning, or on silence inside a stream, is shorter. */
  readonly firstByteMsMin: DurationMs;
  readonly idleMsMin: DurationMs;
  /** Added while a node may first have to load the model. */
  readonly coldMs: DurationMs;
}

/**
 * What a protective gate does: refuse, count what it would refuse, or nothing.
 */
export type GateMode = 'on' | 'shadow' | 'off';

export type GateName =
  /** A flow's queue is too long for the deadline. */
  | 'flow-wait'
  /** Requests or tokens per minute, and tasks at once, by tenant, class and model. */
  | 'limits'
  /** A client's repeated attempt, while first attempts already wait too long. */
  | 'retry-shed'
  /** Too many failures of a model, or of a model on one node. */
  | 'breaker'
  /** Shares of a node group. */
  | 'bulkhead'
  /** Learned bound on tasks at once of a node that states no slots. */
  | 'concurrency'
  /** Learned bounds on silence of a node. */
  | 'timeouts'
  /** The overload ladder's stages. */
  | 'ladder'
  /** Taking the place of a low task that has sent nothing yet. */
  | 'preemption';

export type GatesConfig = Readonly<Record<GateName, GateMode>>;

/** Cost model of a model on its reference accelerator. */
export type WorkProfile =
  | {
      readonly kind: 'llm';
      readonly fixedMs: DurationMs;
      readonly prefillMsPerToken: number;
      readonly decodeMsPerToken: number;
    }
  | {
      readonly kind: 'image';
      readonly fixedMs: DurationMs;
      readonly msPerMegapixelStep: number;
      readonly stepsDefault: number;
      readonly pixelsDefault: number;
    }
  | { readonly kind: 'embedding'; readonly fixedMs: DurationMs; readonly msPerToken: number }
  | { readonly kind: 'generic'; readonly meanMs: DurationMs };

export interface ModelConfig {
  readonly id: ModelId;
  readonly aliases: readonly string[];
  readonly profile: WorkProfile;
  /** Of all requests for the model together. */
  readonly limits?: LimitsConfig;
  /** Tokens that one image counts against limits; absent: none. */
  readonly imageTokens?: number;
  /** Cheaper models that may stand in by consent, the first first. */
  readonly variants?: readonly ModelVariant[];
  /** Lower qualities of this model that may stand in by consent, the first first. */
  readonly quality?: readonly QualityConfig[];
  /** Answers that stand in when nothing else can, by consent. */
  readonly default?: DefaultAnswers;
  /** Switched off: nothing is sent to its nodes, and whoever consented gets a lesser answer. */
  readonly off?: boolean;
  /** Which weights it is: answers are never remembered across revisions. */
  readonly revision?: string;
  /** Whether the overload ladder may switch it off for the sake of models that share its nodes. */
  readonly optional?: boolean;
}

export interface ModelVariant {
  readonly model: ModelId;
}

/** A lower quality: what of the request is lowered. What the client asks for is never raised. */
export interface QualityConfig {
  readonly name: string;
  /** Longest answer, and the same as a part of what was asked for; the lesser holds. */
  readonly maxTokens?: Tokens;
  readonly maxTokensRatio?: Ratio;
  /** Most diffusion steps. */
  readonly steps?: number;
  /** Largest image, `WIDTHxHEIGHT`. */
  readonly size?: string;
}

/** By endpoint: the text of the answer. */
export interface DefaultAnswers {
  readonly chat?: string;
  readonly completions?: string;
}

export interface DegradeConfig {
  /** Classes whose requests may get a lesser answer, by their consent. */
  readonly classes: readonly ClassName[];
  /** A lesser task may wait this many times as long as a whole one before the gate per flow refuses it. */
  readonly flowWaitTimes: number;
}

/** Part of the slots of a node group that one model or tenant is kept free (`min`) or may hold at most (`max`). */
export interface ShareConfig {
  readonly holder: 'model' | 'tenant';
  readonly name: string;
  readonly min: Ratio;
  readonly max: Ratio;
}

/** Nodes that are shared out between models and tenants; see placement/bulkhead.ts. */
export interface GroupConfig {
  readonly name: string;
  /** A node is of the first group that names its id or whose labels, if any, it all has. */
  readonly nodes: {
    readonly ids: readonly NodeId[];
    readonly labels: Readonly<Record<string, string>>;
  };
  /** Who alone may use the nodes: one of the models and one of the tenants. Empty lists exclude nobody. */
  readonly reservedFor: {
    readonly models: readonly ModelId[];
    readonly tenants: readonly TenantId[];
  };
  readonly shares: readonly ShareConfig[];
}

export interface SchedulerConfig {
  readonly policy: 'spillway' | 'round-robin';
  readonly seed: number;
  /** In order of importance, the most important first. */
  readonly classes: readonly ClassConfig[];
  readonly defaultClass: ClassName;
  readonly bounds: BoundsConfig;
  readonly admission: AdmissionConfig;
  readonly placement: PlacementConfig;
  readonly health: HealthConfig;
  readonly retry: RetryConfig;
  readonly preemption: PreemptionConfig;
  readonly timeouts: TimeoutsConfig;
  readonly gates: GatesConfig;
  readonly degrade: DegradeConfig;
  readonly ladder: LadderConfig;
  readonly models: readonly ModelConfig[];
  /** In order: a node is of the first group that fits. */
  readonly groups: readonly GroupConfig[];
  /** Weights of configured tenants; a tenant that is absent has weight 1. */
  readonly tenantWeights: readonly { readonly id: TenantId; readonly weight: number }[];
  /** Limits of each tenant that has none of its own. */
  readonly tenantLimits?: LimitsConfig;
  /** Limits of configured tenants; empty limits leave the tenant without any. */
  readonly tenantLimitsOwn: readonly { readonly id: TenantId; readonly limits: LimitsConfig }[];
}

export interface TenantConfig {
  readonly id: TenantId;
  readonly weight: number;
  /** The most important class this tenant may use. */
  readonly classCeiling: ClassName;
  /** The class of a request without a wish. */
  readonly classDefault: ClassName;
  /** Whether the tenant sees node names in response headers. */
  readonly nodeVisible: boolean;
  /** Tenants that name the same pool share remembered answers; without one a tenant shares with nobody. */
  readonly cachePool?: string;
  readonly limits?: LimitsConfig;
  readonly keys: readonly KeyConfig[];
}

/** A key at rest: SHA-256 of the secret, in lower-case hexadecimal. */
export interface KeyConfig {
  readonly id: string;
  readonly sha256: string;
}

/** A secret that was read from the environment or a file; never printed. */
export interface Secret {
  readonly value: string;
  /** Where it came from, for people: `env NAME` or `file PATH`. */
  readonly origin: string;
}

export interface NodeConfig {
  readonly id: NodeId;
  /** Scheme, host, port and base path. */
  readonly url: string;
  readonly protocol: NodeProtocol;
  /** Empty: ask the node. */
  readonly models: readonly ModelOffer[];
  /** Concurrent tasks; absent when the engine should be asked. */
  readonly slots?: number;
  /** Blocks of prompts that the engine keeps after use; absent: none that is known of. */
  readonly prefixBlocks?: number;
  /** Hardware class such as `T4`, `A100`, `H100`; '' when unknown. A prior only: rates are measured. */
  readonly hardware: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly key?: Secret;
  readonly tls?: NodeTlsConfig;
  readonly telemetry?: NodeTelemetryConfig;
}

/** Where the host of a node tells of itself: the metrics page of a DCGM exporter, of a node exporter, or both. */
export interface NodeTelemetryConfig {
  /** Scheme, host, port and path. */
  readonly url: string;
  /** The devices that the node uses, as the page names them; empty: all of the page. */
  readonly gpus: readonly string[];
  /** Another page, which tells what the host waits for; absent: looked for on the first one. */
  readonly pressureUrl?: string;
  /** What the engine takes of the memory at its start; absent: what is used while nothing of ours runs there. */
  readonly reservedUse?: Ratio;
}

export type NodeProtocol = 'openai' | 'vllm' | 'llama.cpp';

export interface NodeTlsConfig {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface ServerConfig {
  readonly host: string;
  readonly port: number;
  /** Absent: the admin plane shares the data port. */
  readonly adminPort?: number;
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly headerBytesMax: Bytes;
  readonly bodyBytesMax: Bytes;
  readonly connectionsMax: number;
  /** Time for a client to send its headers, and its whole request. */
  readonly headersMs: DurationMs;
  readonly requestMs: DurationMs;
  /** A waiting stream commits 200 and sends keep-alives after this time. */
  readonly earlyCommitMs: DurationMs;
  readonly keepAliveCommentMs: DurationMs;
  /** Bytes of an answer that are buffered for one slow reader, for all, and how long it may stall. */
  readonly spoolBytesMax: Bytes;
  readonly spoolBytesTotalMax: Bytes;
  readonly stallMs: DurationMs;
  /** Connecting to a node, and silence of a node between bytes. */
  readonly connectMs: DurationMs;
  readonly nodeIdleMs: DurationMs;
  /** How long running requests may go on after SIGTERM. */
  readonly drainMs: DurationMs;
  /** Answer for overload reasons: 429 or 503. */
  readonly overloadStatus: 429 | 503;
}

export interface SurvivalConfig {
  /** Event-loop lag (median of the last second), heap use and open descriptors at which the lowest class is shed. */
  readonly loopLagMs: DurationMs;
  readonly heapRatio: Ratio;
  readonly descriptorsRatio: Ratio;
}

export interface CacheConfig {
  /** `degrade`: only as a lesser answer, by consent. `always`: whenever there is one. */
  readonly mode: 'off' | 'degrade' | 'always';
  readonly bytesMax: Bytes;
  readonly entryBytesMax: Bytes;
  readonly ttlMs: DurationMs;
  /** One of so many fresh answers to a remembered request is compared with the remembered one. */
  readonly compareEvery: number;
}

export interface IdempotencyConfig {
  /** Keys remembered; 0 ignores the header. */
  readonly entriesMax: number;
  /** Bytes of one kept answer, and of all, those under way included. */
  readonly answerBytesMax: Bytes;
  readonly bytesTotalMax: Bytes;
  /** How long an answer is kept. */
  readonly ttlMs: DurationMs;
  readonly keyCharsMax: number;
  /** Requests that may wait for the answer of one that runs. */
  readonly joinersMax: number;
}

/** Traces of requests, exported by OTLP over HTTP. */
export interface TracingConfig {
  /** Where spans are sent, the whole URL; '' for nowhere: then nothing is traced. */
  readonly endpoint: string;
  readonly sampleRatio: Ratio;
  readonly queueSpansMax: number;
  readonly exportMs: DurationMs;
  readonly timeoutMs: DurationMs;
  /** The name of this gateway among the services of the trace. */
  readonly serviceName: string;
  /** Added to each export; their values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Beacons of users' browsers (real user monitoring). */
export interface RumConfig {
  /** Whether answers carry a token for a beacon, and beacons are taken. */
  readonly enabled: boolean;
  readonly ratePerS: number;
  readonly tenantRatePerS: number;
  readonly tokenMs: DurationMs;
  /** Origins of pages that may send; a beacon with another one is refused. */
  readonly originsAllowed: readonly string[];
}

export interface JournalConfig {
  /** Where the journal is kept; '' keeps none. */
  readonly folder: string;
  readonly segmentBytesMax: Bytes;
  readonly bytesMax: Bytes;
}

export interface SignalsConfig {
  readonly sampleMs: DurationMs;
}

export interface StateConfig {
  /** Folder of the registry and the admin token; '' keeps everything in memory. */
  readonly folder: string;
}

export interface GatewayConfig {
  readonly scheduler: SchedulerConfig;
  readonly server: ServerConfig;
  readonly cache: CacheConfig;
  readonly idempotency: IdempotencyConfig;
  readonly survival: SurvivalConfig;
  readonly tracing: TracingConfig;
  readonly rum: RumConfig;
  readonly state: StateConfig;
  readonly journal: JournalConfig;
  readonly signals: SignalsConfig;
  /** Empty: no keys, loopback only, tenant `anonymous`. */
  readonly tenants: readonly TenantConfig[];
  readonly nodes: readonly NodeConfig[];
}
