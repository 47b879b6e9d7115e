/**
 * Every request the gateway knows: live ones, and the last finished ones with their timeline.
 *
 * A row is small on purpose: ten thousand waiting requests must fit in memory beside their bodies, so it holds no
 * copy of the request, and instants are kept as offsets from `receivedAt`. A row is *live* until its outcome is
 * known and its permit is released; then it moves to the ring of finished ones and lets go of its listener.
 */
import { randomBytes } from 'node:crypto';
import type {
  ClassName,
  DurationUs,
  ModelId,
  MonoUs,
  NodeId,
  RefUs,
  TaskId,
  TenantId,
} from '../base/units.ts';
import { US_PER_MS } from '../base/units.ts';
import { type FailureKind, NO_RETRY, type Outcome } from '../core/request/index.ts';
import { ALTERNATIVES_MAX, type DegradeStep } from '../core/degrade/index.ts';
import type { TaskView } from '../core/scheduler/views.ts';
import type {
  AttemptFailure,
  EarlyAnswer,
  EarlyRefusal,
  JoinedEnd,
  ListedState,
  RequestFacts,
  RequestView,
  SubmitSpec,
  TaskListener,
} from './contract.ts';
import type { TenantUsage } from './tenant-usage.ts';

/** Finished requests that stay explainable. */
export const FINISHED_MAX = 10_000;

/** Rows that wait for another request: as many as one burst leaves, no more. */
export const SPARE_ROWS_MAX = 1_024;

const PREFIX_BYTES = 9;
const ID_RADIX = 36;
/** An instant that has not happened. */
const NEVER = -1;

/** Failed attempts kept of one request; the last one takes the place of the one before it. */
export const FAILURES_MAX = 10;

/** Alternatives kept of one request. */
export const STEPS_MAX: number = 2 * ALTERNATIVES_MAX;

/** A name that no model has comes from the client; more of it than this is not kept. */
const MODEL_CHARS_MAX = 200;

/** What a row takes over of a submitted request. */
export type RowSpec = Pick<
  SubmitSpec,
  'className' | 'tenant' | 'model' | 'receivedAt' | 'workUs' | 'deadlineUs' | 'deadlineWished' | 'stream'
>;

/**
 * A class, since each request has one. A row that has left the ring is another request's later: it lives through ten thousand
 * requests, so that a new one for each would be most of what the collector copies.
 */
export class TaskRow {
  id: TaskId = 0;
  className: ClassName = '';
  tenant: TenantId = '';
  model: ModelId = '';
  receivedAt: MonoUs = 0;
  workUs: RefUs = 0;
  deadlineUs: DurationUs = 0;
  deadlineWished = false;
  stream = false;
  listener: TaskListener | undefined = undefined;
  outcome: Outcome | undefined = undefined;
  /** Set when the runtime, not the scheduler, decides what the client is told. */
  verdict: Outcome | undefined = undefined;
  /** Node of the current or last attempt. */
  nodeId: NodeId = '';
  attempts = 0;
  /** The model that runs for it: another than asked for once a cheaper one stands in. */
  runsModel: ModelId = '';
  /** Lesser answers that were looked at; made at the first one. */
  steps: DegradeStep[] | undefined = undefined;
  /** Made at the first failed attempt: most requests have none. */
  failures: AttemptFailure[] | undefined = undefined;
  /** Whether an attempt holds a node's permit. */
  permit = false;
  /** Whether the client's leaving has been told to the scheduler. */
  cancelled = false;
  admittedUs: DurationUs = NEVER;
  decidedUs: DurationUs = NEVER;
  sentUs: DurationUs = NEVER;
  firstByteUs: DurationUs = NEVER;
  doneUs: DurationUs = NEVER;

  constructor(id: TaskId, spec: RowSpec, listener: TaskListener | undefined) {
    this.renew(id, spec, listener);
  }

  /** Makes it another request's, as if it were new. No one may hold it. */
  renew(id: TaskId, spec: RowSpec, listener: TaskListener | undefined): void {
    this.id = id;
    this.className = spec.className;
    this.tenant = spec.tenant;
    this.model = spec.model;
    this.runsModel = spec.model;
    this.receivedAt = spec.receivedAt;
    this.workUs = spec.workUs;
    this.deadlineUs = spec.deadlineUs;
    this.deadlineWished = spec.deadlineWished;
    this.stream = spec.stream;
    this.listener = listener;
    this.outcome = undefined;
    this.verdict = undefined;
    this.nodeId = '';
    this.attempts = 0;
    this.steps = undefined;
    this.failures = undefined;
    this.permit = false;
    this.cancelled = false;
    this.admittedUs = NEVER;
    this.decidedUs = NEVER;
    this.sentUs = NEVER;
    this.firstByteUs = NEVER;
    this.doneUs = NEVER;
  }

  /** Remembers an alternative; bounded, since each is looked at twice at most. */
  lookedAt(step: DegradeStep): void {
    this.steps ??= [];
    if (this.steps.length < STEPS_MAX) this.steps.push(step);
    if (step.verdict === 'taken' && 'model' in step.alternative) this.runsModel = step.alternative.model;
  }

  /** Remembers how the current attempt failed. */
  attemptFailed(failure: FailureKind, sinceReceivedUs: DurationUs): void {
    this.failures ??= [];
    if (this.failures.length === FAILURES_MAX) this.failures.pop();
    const endedMs = offsetMs(sinceReceivedUs);
    this.failures.push({ nodeId: this.nodeId, attempt: this.attempts, failure, endedMs });
  }
}

const NO_TASK: Omit<RowSpec, 'tenant' | 'model' | 'receivedAt'> = {
  className: '',
  workUs: 0,
  deadlineUs: 0,
  deadlineWished: false,
  stream: false,
};

function clipped(name: string): string {
  const short = name.length > MODEL_CHARS_MAX ? `${name.slice(0, MODEL_CHARS_MAX)}…` : name;
  // A string of its own: a part of the body's text would hold all of it.
  return Buffer.from(short, 'utf8').toString('utf8');
}

/** Converts a monotonic instant into wall time, for people. */
export interface WallAnchor {
  readonly monoUs: MonoUs;
  readonly wallMs: number;
}

export class TaskTable {
  readonly #rows = new Map<TaskId, TaskRow>();
  readonly #finished: TaskRow[] = [];
  readonly #spare: TaskRow[] = [];
  readonly #prefix: string;
  #oldest = 0;
  #lastId: TaskId = 0;
  #live = 0;

  readonly #usage: TenantUsage;

  constructor(usage: TenantUsage) {
    this.#usage = usage;
    // An id that began with a hyphen would be an option to a command line.
    this.#prefix = `${randomBytes(PREFIX_BYTES).toString('base64url').replace(/^-/, '0')}.`;
  }

  /** Requests without an outcome, or whose permit is still out. */
  get live(): number {
    return this.#live;
  }

  nextId(): TaskId {
    this.#lastId += 1;
    return this.#lastId;
  }

  publicId(id: TaskId): string {
    return this.#prefix + id.toString(ID_RADIX);
  }

  /** A live row. */
  begin(id: TaskId, spec: RowSpec, listener: TaskListener): TaskRow {
    const row = this.#take(id, spec, listener);
    this.#rows.set(id, row);
    this.#live += 1;
    return row;
  }

  /** A row that was finished before it could live. */
  noteRefused({ reason, tenant, model, receivedAt }: EarlyRefusal, now: MonoUs): string {
    const spec = { ...NO_TASK, tenant, model: clipped(model), receivedAt };
    return this.#noteEnded(spec, { kind: 'rejected', reason, hint: NO_RETRY }, now);
  }

  /** A row that needed no life. */
  noteAnswered(answer: EarlyAnswer, now: MonoUs): string {
    return this.#noteEnded({ ...NO_TASK, ...answer }, { kind: 'served' }, now);
  }

  /** A row of a request that another one's work answered. */
  noteJoined(id: TaskId, { outcome, ...known }: JoinedEnd, now: MonoUs): void {
    this.#addEnded(this.#take(id, { ...NO_TASK, ...known }, undefined), outcome, now);
  }

  #noteEnded(spec: RowSpec, outcome: Outcome, now: MonoUs): string {
    const id = this.nextId();
    this.#addEnded(this.#take(id, spec, undefined), outcome, now);
    return this.publicId(id);
  }

  #addEnded(row: TaskRow, outcome: Outcome, now: MonoUs): void {
    row.outcome = outcome;
    row.doneUs = now - row.receivedAt;
    this.#usage.ended(row.tenant, outcome, row.workUs);
    this.#rows.set(row.id, row);
    this.#remember(row);
  }

  /** A live or finished row. */
  get(id: TaskId): TaskRow | undefined {
    return this.#rows.get(id);
  }

  find(publicId: string): TaskRow | undefined {
    if (!publicId.startsWith(this.#prefix)) return undefined;
    const id = Number.parseInt(publicId.slice(this.#prefix.length), ID_RADIX);
    const row = this.#rows.get(id);
    return row !== undefined && this.publicId(id) === publicId ? row : undefined;
  }

  *liveRows(): IterableIterator<TaskRow> {
    for (const row of this.#rows.values()) if (isLive(row)) yield row;
  }

  /** At most `limit`: live ones with the oldest first, ended ones with the newest first. */
  list(state: ListedState, limit: number): readonly TaskRow[] {
    if (state === 'ended') return this.#newestFinished(limit);
    const rows: TaskRow[] = [];
    for (const row of this.liveRows()) {
      if (rows.length >= limit) break;
      if (stateOf(row) === state) rows.push(row);
    }
    return rows;
  }

  #newestFinished(limit: number): readonly TaskRow[] {
    const count = this.#finished.length;
    return Array.from({ length: Math.min(limit, count) }, (_, back) => {
      return this.#finished[(this.#oldest + count - 1 - back) % count] as TaskRow;
    });
  }

  /** Moves a row whose end is complete into the ring; the oldest finished row leaves. */
  retire(row: TaskRow): void {
    row.listener = undefined;
    this.#live -= 1;
    this.#remember(row);
  }

  #remember(row: TaskRow): void {
    if (this.#finished.length < FINISHED_MAX) {
      this.#finished.push(row);
      return;
    }
    const forgotten = this.#finished[this.#oldest] as TaskRow;
    this.#rows.delete(forgotten.id);
    this.#finished[this.#oldest] = row;
    this.#oldest = (this.#oldest + 1) % FINISHED_MAX;
    if (this.#spare.length < SPARE_ROWS_MAX) this.#spare.push(forgotten);
  }

  #take(id: TaskId, spec: RowSpec, listener: TaskListener | undefined): TaskRow {
    const row = this.#spare.pop();
    if (row === undefined) return new TaskRow(id, spec, listener);
    row.renew(id, spec, listener);
    return row;
  }
}

export function isLive(row: TaskRow): boolean {
  return row.outcome === undefined || row.permit;
}

export function viewRow(
  row: TaskRow,
  publicId: string,
  anchor: WallAnchor,
  live: TaskView | undefined,
): RequestView {
  const view: RequestView = {
    id: publicId,
    state: stateOf(row),
    reason: row.outcome !== undefined && 'reason' in row.outcome ? row.outcome.reason : '',
    className: row.className,
    tenant: row.tenant,
    model: row.model,
    nodeId: row.nodeId,
    attempts: row.attempts,
    timeline: {
      received: Math.round(anchor.wallMs + (row.receivedAt - anchor.monoUs) / US_PER_MS),
      admitted: offsetMs(row.admittedUs),
      decided: offsetMs(row.decidedUs),
      sent: offsetMs(row.sentUs),
      firstByte: offsetMs(row.firstByteUs),
      done: offsetMs(row.doneUs),
    },
    facts: factsOf(row),
  };
  return live === undefined ? view : { ...view, live };
}

function factsOf(row: TaskRow): RequestFacts {
  const facts = {
    workMs: row.workUs / US_PER_MS,
    deadlineMs: row.deadlineUs / US_PER_MS,
    deadlineWished: row.deadlineWished,
    stream: row.stream,
    failures: row.failures ?? [],
    lookedAt: row.steps ?? [],
  };
  const { outcome } = row;
  if (outcome === undefined || !('hint' in outcome)) return facts;
  const { hint, cause } = outcome;
  return cause === undefined ? { ...facts, hint } : { ...facts, hint, cause };
}

function stateOf(row: TaskRow): RequestView['state'] {
  if (row.outcome !== undefined) return row.outcome.kind;
  return row.permit ? 'running' : 'queued';
}

function offsetMs(us: DurationUs): number {
  return us === NEVER ? NEVER : us / US_PER_MS;
}
