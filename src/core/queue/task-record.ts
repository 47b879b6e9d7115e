/**
 * A task inside the scheduler: the spec, its place in every structure (intrusive links, so that cancel by handle
 * needs no search), and what happened to it. One object per live task, which another task has later: nothing here outlives
 * the outcome, every field is public, and `renew` resets each that the structures do not; a test compares. Its numbers and
 * yes-or-no facts are in task-numbers.ts.
 */
import { invariant } from '../../base/assert.ts';
import type { Bytes, DurationUs, ModelId, MonoUs, NodeId, RefUs, TaskId } from '../../base/units.ts';
import type { Standing } from '../admission/retry-shed.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Reservation } from '../limits/index.ts';
import type { ModelLadder } from '../overload/model-ladder.ts';
import type { TaskPrefix, TaskSpec, TaskStage } from '../request/task.ts';
import { TaskNumbers } from './task-numbers.ts';
import type { Flow, ServedCounter } from './flow.ts';
import type { LaneFlow, Octave } from './lane-flow.ts';
import type { Lane } from './lane.ts';
import type { ModelQueue } from './model-queue.ts';

/** No task. */
export const NOBODY: TaskId = -1;

/** A quarter of an hour; a small integer, which an engine keeps without a box. */
export const ETA_US_MAX: DurationUs = 2 ** 30 - 1;

export class TaskRecord extends TaskNumbers {
  // Eight fields or so share a cache line, and an engine lays them as they stand here. First what the end of an attempt asks for:
  // by then most tasks have left the cache.
  /** The spec's, as are `model`, `stage` and `bytes`: asked again when the task is placed and when it ends. */
  id: TaskId;
  model: ModelId;
  /** The fleet's number of its model, or -1. */
  modelNumber = -1;
  flow: Flow;
  /** By what the deadline wheel knows it, or -1 outside (see deadline-wheel.ts). */
  wheelHandle = -1;
  /** The queue that it waits in. */
  lane: Lane | null = null;
  /** The attempt under way. */
  node: NodeRecord | null = null;
  runningIndex = -1;
  attempts = 0;
  /** In-flight tasks of the node when this one started. */
  startInflight = 0;
  /** Part of the predicted time in which the node loads its model. */
  swapUs: DurationUs = 0;
  /** Work until the first byte of the attempt under way, 0 once it came and for what is no stream; and what was awaited before it on the node. */
  awaitedUs: RefUs = 0;
  awaitedBeforeUs: RefUs = 0;
  /** From submission until what its deadline bounds is done, as predicted when it was let in; at most `ETA_US_MAX`. */
  etaUs: DurationUs = 0;
  /** The task for which it is asked to give its place, while its abort is under way; once in its life. */
  givesWayTo: TaskId = NOBODY;
  brokenNodes = 0;
  /** The counters that were charged for it, and are corrected at its end. */
  classCounter: ServedCounter | null = null;
  flowCounter: ServedCounter | null = null;
  /** What it holds of limits; null when nothing limits it, and once it has left. */
  reservation: Reservation | null = null;
  /** The overload ladder of its model; null while there is none. */
  ladder: ModelLadder | null = null;
  /** Index of the alternative that stands in, or -1; those before it were taken or passed over. */
  alternative = -1;
  stage: TaskStage | null = null;

  // What is asked for while it waits, and when it is placed.
  bytes: Bytes;
  /** By what its class knows it in the orders of arrival, or -1 (see arrivals.ts). */
  arrivalHandle = -1;
  /** Those of its class and model, while it waits. */
  modelQueue: ModelQueue | null = null;
  /** By what the lane knows it among those of its flow and size, or -1 (see deadline-heap.ts). */
  queueHandle = -1;
  laneFlow: LaneFlow | null = null;
  octave: Octave | null = null;
  /** The busy node that this waiting task expects to take. */
  reservedNode: NodeRecord | null = null;
  /** The nodes that failed before. */
  triedNodes: NodeId[] | null = null;
  /** Twice the speed class of the fastest node that was free while it waited and was none for it, and 1 more if it was late there; 0 when none was. */
  speedFloor = 0;
  /** How its prompt begins, or null. */
  prefix: TaskPrefix | null = null;

  // What is asked for when it is submitted, and when it fails.
  /** As it runs: a lesser one than was submitted once an alternative was taken. */
  spec: TaskSpec;
  /** Whether it is a repeated request, once that was asked. */
  standing: Standing | null = null;
  /** The spec's, once it was worked out. */
  knownFingerprint: string | null = null;

  constructor(spec: TaskSpec, flow: Flow, now: MonoUs) {
    super();
    this.id = spec.id;
    this.model = spec.model;
    this.bytes = spec.bytes;
    this.flow = flow;
    this.spec = spec;
    this.#begin(spec, flow, now);
  }

  /** Makes the record another task's, as if it were new. No structure may hold it. */
  renew(spec: TaskSpec, flow: Flow, now: MonoUs): void {
    this.clear();
    this.alternative = -1;
    this.standing = null;
    this.knownFingerprint = null;
    this.attempts = 0;
    this.triedNodes = null;
    this.speedFloor = 0;
    this.brokenNodes = 0;
    this.givesWayTo = NOBODY;
    this.startInflight = 0;
    this.swapUs = 0;
    this.awaitedUs = 0;
    this.awaitedBeforeUs = 0;
    this.etaUs = 0;
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
    this.id = spec.id;
    this.model = spec.model;
    this.bytes = spec.bytes;
    this.isStream = spec.stream;
    this.stage = spec.stage ?? null;
    this.workUs = Math.max(1, Math.round(spec.workUs));
    this.deadlineWorkUs = boundedWorkUs(spec, this.workUs);
    this.prefix = spec.prefix ?? null;
    this.modelNumber = -1;
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
  return a.deadlineAt < b.deadlineAt || (a.deadlineAt === b.deadlineAt && a.id < b.id);
}
