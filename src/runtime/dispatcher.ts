/**
 * The task half of the gateway: numbers requests, turns the edge's calls into events and effects into listener calls.
 *
 *   submit ──► queued ──assign──► running (permit) ──attemptEnded──► outcome ──► finished ring
 *                 ▲                      │ failed, retryable
 *                 └──────────────────────┘
 *
 * A permit is set by the assign effect and cleared by the first `attemptEnded` for it, nowhere else. Calls that come
 * twice, late, or for a request that never ran are ignored and counted. Each step of an attempt raises one event at
 * most, which bounds the loop's queue.
 *
 * A listener that throws loses its own request only: the attempt counts as ended by us, so the node is not blamed
 * for our fault, and the client is told `node-failed`. The scheduler books such a request as cancelled.
 */
import { invariant } from '../base/assert.ts';
import type { DurationUs, NodeId, TaskId } from '../base/units.ts';
import { type AttemptResult, NO_RETRY, type Outcome } from '../core/request/index.ts';
import type { DegradeStep } from '../core/degrade/index.ts';
import type { AttemptLimits } from '../core/scheduler/contract.ts';
import type { RuntimeClock } from './clock.ts';
import type { Assignment, SubmitSpec, TaskListener } from './contract.ts';
import type { EventLoop } from './event-loop.ts';
import { type RuntimeLog, reasonOf } from './log.ts';
import { type FingerprintAsked, SubmittedTask } from './submitted-task.ts';
import { isLive, type TaskRow, type TaskTable } from './task-table.ts';
import type { TenantUsage } from './tenant-usage.ts';

/** What a task needs to know of the node that it is sent to. */
export interface NodeDesk {
  upstreamModel(nodeId: NodeId, model: string): string;
  abortFreesSlot(nodeId: NodeId): boolean;
  permitTaken(nodeId: NodeId): void;
  permitReleased(nodeId: NodeId, end: AttemptResult['kind']): void;
}

export interface DispatchCounters {
  /** `attemptEnded` for an attempt that had ended, or was never assigned. */
  readonly permitsReleasedTwice: number;
  readonly listenerErrors: number;
}

const NEVER: DurationUs = -1;
const OUR_FAULT: Outcome = Object.freeze({ kind: 'failed', reason: 'node-failed', hint: NO_RETRY });
const CUT_AT_SHUTDOWN: Outcome = Object.freeze({
  kind: 'failed',
  reason: 'node-failed',
  hint: Object.freeze({ retryable: true, afterUs: 0 }),
});
const ABORTED: AttemptResult = Object.freeze({ kind: 'aborted' });

export interface DispatcherOptions {
  readonly table: TaskTable;
  readonly usage: TenantUsage;
  readonly clock: RuntimeClock;
  readonly nodes: NodeDesk;
  readonly log: RuntimeLog;
  /** Bounds on the silence of the attempt that was just assigned. */
  readonly silence: (taskId: TaskId) => AttemptLimits;
  readonly fingerprintAsked: FingerprintAsked;
  /** Called when the last live request has ended. */
  readonly onIdle: () => void;
}

/** A class, since its methods share state on the hot path. */
export class Dispatcher {
  readonly #table: TaskTable;
  readonly #usage: TenantUsage;
  readonly #clock: RuntimeClock;
  readonly #nodes: NodeDesk;
  readonly #log: RuntimeLog;
  readonly #silence: (taskId: TaskId) => AttemptLimits;
  readonly #fingerprintAsked: FingerprintAsked;
  readonly #onIdle: () => void;
  #loop: EventLoop | undefined;
  #releasedTwice = 0;
  #listenerErrors = 0;

  constructor(options: DispatcherOptions) {
    this.#table = options.table;
    this.#usage = options.usage;
    this.#clock = options.clock;
    this.#nodes = options.nodes;
    this.#log = options.log;
    this.#silence = options.silence;
    this.#fingerprintAsked = options.fingerprintAsked;
    this.#onIdle = options.onIdle;
  }

  /** The loop performs effects through the dispatcher, so each needs the other; tied once, at start. */
  tie(loop: EventLoop): void {
    this.#loop = loop;
  }

  counters(): DispatchCounters {
    return { permitsReleasedTwice: this.#releasedTwice, listenerErrors: this.#listenerErrors };
  }

  submit(spec: SubmitSpec, listener: TaskListener): { readonly taskId: TaskId; readonly publicId: string } {
    const id = this.#table.nextId();
    this.#table.begin(id, spec, listener);
    this.#post({ kind: 'submit', task: new SubmittedTask(id, spec, this.#fingerprintAsked) });
    return { taskId: id, publicId: this.#table.publicId(id) };
  }

  cancel(taskId: TaskId): void {
    const row = this.#table.get(taskId);
    if (row === undefined || row.outcome !== undefined || row.cancelled) return;
    row.cancelled = true;
    this.#post({ kind: 'cancel', taskId });
  }

  attemptSent(taskId: TaskId): void {
    const row = this.#table.get(taskId);
    if (row === undefined || !row.permit || row.sentUs !== NEVER) return;
    row.sentUs = this.#clock.nowUs() - row.receivedAt;
    this.#post({ kind: 'attempt-sent', taskId });
  }

  attemptFirstByte(taskId: TaskId): void {
    const row = this.#table.get(taskId);
    if (row === undefined || !row.permit || row.firstByteUs !== NEVER) return;
    row.firstByteUs = this.#clock.nowUs() - row.receivedAt;
    this.#post({ kind: 'attempt-first-byte', taskId });
  }

  attemptEnded(taskId: TaskId, result: AttemptResult, attempt?: number): void {
    const row = this.#table.get(taskId);
    if (row === undefined || !row.permit || (attempt !== undefined && attempt !== row.attempts)) {
      this.#releasedTwice += 1;
      return;
    }
    row.permit = false;
    if (result.kind === 'failed') row.attemptFailed(result.failure, this.#clock.nowUs() - row.receivedAt);
    this.#nodes.permitReleased(row.nodeId, result.kind);
    this.#usage.attemptEnded(row.tenant, result);
    this.#post({ kind: 'attempt-ended', taskId, result });
    if (row.outcome !== undefined) this.#retire(row);
  }

  /** Ends every attempt that runs: the drain limit is over. */
  cutRunning(): number {
    let cut = 0;
    for (const row of this.#table.liveRows()) {
      if (row.outcome !== undefined) continue;
      row.verdict = CUT_AT_SHUTDOWN;
      this.cancel(row.id);
      cut += 1;
    }
    return cut;
  }

  // Effects, called by the loop.

  admitted(taskId: TaskId): void {
    const row = this.#row(taskId);
    // A task that goes on with a lesser answer is admitted again; it was let in when it was let in.
    if (row.admittedUs !== NEVER) return;
    row.admittedUs = this.#sinceReceived(row);
    try {
      row.listener?.admitted?.();
    } catch (thrown) {
      this.#listenerThrew(row, 'admitted', thrown);
    }
  }

  assign(taskId: TaskId, nodeId: NodeId, attempt: number): void {
    const row = this.#row(taskId);
    invariant(!row.permit, 'A task holds one permit at most');
    row.permit = true;
    row.nodeId = nodeId;
    row.attempts = attempt;
    row.decidedUs = this.#sinceReceived(row);
    row.sentUs = NEVER;
    row.firstByteUs = NEVER;
    this.#nodes.permitTaken(nodeId);
    const assignment: Assignment = {
      nodeId,
      attempt,
      upstreamModel: this.#nodes.upstreamModel(nodeId, row.runsModel),
      abortFreesSlot: this.#nodes.abortFreesSlot(nodeId),
      silence: this.#silence(taskId),
    };
    try {
      row.listener?.assigned(assignment);
    } catch (thrown) {
      this.#listenerThrew(row, 'assigned', thrown);
      row.verdict = OUR_FAULT;
      this.cancel(taskId);
      this.attemptEnded(taskId, ABORTED, attempt);
    }
  }

  degraded(taskId: TaskId, step: DegradeStep): void {
    const row = this.#row(taskId);
    row.lookedAt(step);
    if (step.verdict !== 'taken') return;
    try {
      row.listener?.degraded?.(step.index);
    } catch (thrown) {
      this.#listenerThrew(row, 'degraded', thrown);
      row.verdict = OUR_FAULT;
      this.cancel(taskId);
    }
  }

  abort(taskId: TaskId): void {
    const row = this.#row(taskId);
    // The attempt's end is queued already: there is nothing left to stop.
    if (!row.permit) return;
    try {
      row.listener?.abort();
    } catch (thrown) {
      this.#listenerThrew(row, 'abort', thrown);
      this.attemptEnded(taskId, ABORTED, row.attempts);
    }
  }

  outcome(taskId: TaskId, decided: Outcome): void {
    const row = this.#row(taskId);
    invariant(row.outcome === undefined, 'A task has one outcome');
    const told = decided.kind === 'cancelled' && row.verdict !== undefined ? row.verdict : decided;
    row.outcome = told;
    row.doneUs = this.#sinceReceived(row);
    this.#usage.ended(row.tenant, told, row.workUs);
    try {
      row.listener?.finished(told);
    } catch (thrown) {
      this.#listenerThrew(row, 'finished', thrown);
    }
    // `finished` may have ended the attempt itself, and then the row has left already.
    if (!row.permit && row.listener !== undefined) this.#retire(row);
  }

  #retire(row: TaskRow): void {
    invariant(!isLive(row), 'Only a request that has ended retires');
    this.#table.retire(row);
    if (this.#table.live === 0) this.#onIdle();
  }

  #row(taskId: TaskId): TaskRow {
    const row = this.#table.get(taskId);
    invariant(row !== undefined, 'Effects name live tasks');
    return row;
  }

  #sinceReceived(row: TaskRow): DurationUs {
    return (this.#loop as EventLoop).now - row.receivedAt;
  }

  #post(event: Parameters<EventLoop['post']>[0]): void {
    (this.#loop as EventLoop).post(event);
  }

  #listenerThrew(row: TaskRow, call: string, thrown: unknown): void {
    this.#listenerErrors += 1;
    this.#log.error(
      { request: this.#table.publicId(row.id), call, reason: reasonOf(thrown) },
      'A task listener threw; its request fails',
    );
  }
}
