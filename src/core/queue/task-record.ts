/**
 * A task inside the scheduler: the spec, its place in every structure (intrusive links, so that cancel by handle
 * needs no search), and what happened to it. One object per live task, which another task has later: nothing here outlives
 * the outcome, every field is public, and `renew` resets each that the structures do not; a test compares.
 */
import { invariant } from '../../base/assert.ts';
import type { DurationUs, MonoUs, NodeId, RefUs, TaskId } from '../../base/units.ts';
import type { Standing } from '../admission/retry-shed.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Reservation } from '../limits/index.ts';
import type { ModelLadder } from '../overload/model-ladder.ts';
import type { TaskSpec } from '../request/task.ts';
import type { Flow, ServedCounter } from './flow.ts';
import type { Lane, LaneFlow, Octave } from './lane.ts';

/** No task. */
export const NOBODY: TaskId = -1;

export class TaskRecord {
  // First what neighbours in a queue look at: most of them are not in the cache, and so cost one line each.
  /** By what the lane knows it among those of its flow and size, or -1 (see deadline-heap.ts). */
  queueHandle = -1;
  /** Order of arrival inside the flow, over all lanes: the newest is evicted first. */
  older: TaskRecord | null = null;
  newer: TaskRecord | null = null;
  /** By what the deadline wheel knows it, or -1 outside (see deadline-wheel.ts). */
  wheelHandle = -1;

  /** As it runs: a lesser one than was submitted once an alternative was taken. */
  spec: TaskSpec;
  /** Index of the alternative that stands in, or -1; those before it were taken or passed over. */
  alternative = -1;
  /** Raised over the spec's for a class default that no node could meet. */
  deadlineAt: MonoUs = 0;
  submittedAt: MonoUs = 0;
  flow: Flow;
  workUs: RefUs = 0;
  /** Work that must be done by the deadline: up to the first byte for streams. */
  deadlineWorkUs: RefUs = 0;
  isRunning = false;
  /** The outcome was given; only the node's permit is still out. */
  isSettled = false;
  /** It was told a place in line (see scheduler/retry-hint.ts), which is kept for it if the refusal stands. */
  isTold = false;
  /** Whether it is a repeated request, once that was asked. */
  standing: Standing | null = null;
  /** The spec's, once it was worked out. */
  knownFingerprint: string | null = null;

  /** The overload ladder of its model; null while there is none. */
  ladder: ModelLadder | null = null;

  /** The queue that it waits in. */
  lane: Lane | null = null;
  laneFlow: LaneFlow | null = null;
  octave: Octave | null = null;
  /** The busy node that this waiting task expects to take, and the time it would occupy there. */
  reservedNode: NodeRecord | null = null;
  reservedUs: DurationUs = 0;
  /** When it would be done there, and until when that estimate is used without choosing anew. */
  reservedDoneAt: MonoUs = 0;
  reservedUntil: MonoUs = 0;

  /** The attempt under way, and the nodes that failed before. */
  node: NodeRecord | null = null;
  runningIndex = -1;
  attempts = 0;
  triedNodes: NodeId[] | null = null;
  brokenNodes = 0;
  isAborting = false;
  /** The task for which it is asked to give its place, while its abort is under way; once in its life. */
  givesWayTo: TaskId = NOBODY;
  wasAsked = false;
  /** It gave its place: one of its attempts was ours to end. */
  gaveWay = false;
  /** It was given the place of another task, or would have been in shadow: it is given one at most. */
  hasTakenPlace = false;
  /** The node has begun to answer: of a whole answer too, which is held. */
  isAnswering = false;
  /** A node group was closed to it once; counted once. */
  wasShutOut = false;
  hasFirstByte = false;
  decidedAt: MonoUs = 0;
  sentAt: MonoUs = 0;
  /** The node's integral of tasks in flight when this one started; tells how many ran beside it. */
  inflightUsAtStart = 0;
  /** In-flight tasks of the node when this one started. */
  startInflight = 0;
  predictedUs: DurationUs = 0;
  /** Learned bounds on the attempt's silence, from when it was sent and inside its stream; 0 for none. */
  firstByteLimitUs: DurationUs = 0;
  idleLimitUs: DurationUs = 0;
  chargedUs: RefUs = 0;
  /** The counters that were charged for it, and are corrected at its end. */
  classCounter: ServedCounter | null = null;
  flowCounter: ServedCounter | null = null;

  /** What it holds of limits; null when nothing limits it, and once it has left. */
  reservation: Reservation | null = null;

  constructor(spec: TaskSpec, flow: Flow, now: MonoUs) {
    this.spec = spec;
    this.flow = flow;
    this.#begin(spec, flow, now);
  }

  /** Makes the record another task's, as if it were new. No structure may hold it. */
  renew(spec: TaskSpec, flow: Flow, now: MonoUs): void {
    this.alternative = -1;
    this.isTold = false;
    this.standing = null;
    this.knownFingerprint = null;
    this.isRunning = false;
    this.isSettled = false;
    this.attempts = 0;
    this.triedNodes = null;
    this.brokenNodes = 0;
    this.isAborting = false;
    this.givesWayTo = NOBODY;
    this.wasAsked = false;
    this.gaveWay = false;
    this.hasTakenPlace = false;
    this.isAnswering = false;
    this.wasShutOut = false;
    this.hasFirstByte = false;
    this.reservedDoneAt = 0;
    this.reservedUntil = 0;
    this.decidedAt = 0;
    this.sentAt = 0;
    this.inflightUsAtStart = 0;
    this.startInflight = 0;
    this.predictedUs = 0;
    this.firstByteLimitUs = 0;
    this.idleLimitUs = 0;
    this.chargedUs = 0;
    this.classCounter = null;
    this.flowCounter = null;
    this.reservation = null;
    this.ladder = null;
    this.#begin(spec, flow, now);
  }

  #begin(spec: TaskSpec, flow: Flow, now: MonoUs): void {
    this.flow = flow;
    this.submittedAt = now;
    this.deadlineAt = spec.deadlineAt;
    this.become(spec);
  }

  /** Worked out once, when it is asked for first. */
  get fingerprint(): string {
    this.knownFingerprint ??= this.spec.fingerprint;
    return this.knownFingerprint;
  }

  /** Attempts that count against the bound: not the one that was ended so that another task has its place. */
  get attemptsUsed(): number {
    return this.gaveWay ? this.attempts - 1 : this.attempts;
  }

  /** Makes it another task of the same request. Only while it is neither queued nor running. */
  become(spec: TaskSpec): void {
    this.spec = spec;
    this.workUs = Math.max(1, Math.round(spec.workUs));
    this.deadlineWorkUs = boundedWorkUs(spec, this.workUs);
  }
}

function boundedWorkUs(spec: TaskSpec, workUs: RefUs): RefUs {
  return spec.stream ? Math.max(1, Math.min(workUs, Math.round(spec.firstByteWorkUs))) : workUs;
}

/** Records that wait for another task: as many as one burst leaves, no more. */
export const SPARE_RECORDS_MAX = 4_096;

/**
 * Task records, used again and again: a record of forty fields for each task would be most of what the scheduler
 * allocates, and by the time its task ends the collector has copied it twice. Nothing is taken but for a task that is
 * being submitted, so whoever ends a task may still read its record until the event is over.
 */
export class TaskRecords {
  readonly #spare: TaskRecord[] = [];

  take(spec: TaskSpec, flow: Flow, now: MonoUs): TaskRecord {
    const task = this.#spare.pop();
    if (task === undefined) return new TaskRecord(spec, flow, now);
    task.renew(spec, flow, now);
    return task;
  }

  /** The task ended and no structure holds its record any more. */
  give(task: TaskRecord): void {
    invariant(
      task.lane === null && task.node === null && task.wheelHandle === -1,
      'A record is given back when no structure holds its task',
    );
    if (this.#spare.length < SPARE_RECORDS_MAX) this.#spare.push(task);
  }
}

/** Earlier deadline first, then earlier arrival. */
export function isMoreUrgent(a: TaskRecord, b: TaskRecord): boolean {
  return a.deadlineAt < b.deadlineAt || (a.deadlineAt === b.deadlineAt && a.spec.id < b.spec.id);
}
