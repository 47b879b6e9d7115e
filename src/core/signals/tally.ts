/**
 * What the scheduler counts for the detectors while it works: sums that only grow, so that any two instants tell what
 * happened between them. Adding is a few additions, without allocation; everything else is done once per sample.
 */
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, MonoUs, RefUs } from '../../base/units.ts';
import { PACE_STEPS, paceStep } from './pace-steps.ts';
import { StageTally } from './stage-tally.ts';
import { type ServedTask, TenantPaces } from './tenant-pace.ts';

const COUNT = 0;
const SUM = 1;
const SQUARES = 2;
const INFLIGHT = 3;
export const TALLY_WIDTH = 4;
const SUMS: NumberRows = new NumberRows(TALLY_WIDTH);

/** Sums over logarithms: means and spreads of quantities that multiply, whatever the sizes. */
export class LogSums {
  protected readonly cells: Float64Array;
  protected readonly at: number;

  /** It is given a row of zeros where its owner keeps more numbers beside it. */
  constructor({ cells, at }: NumberRow = SUMS.next()) {
    this.cells = cells;
    this.at = at;
  }

  get count(): number {
    return this.cells[this.at + COUNT] as number;
  }

  get sum(): number {
    return this.cells[this.at + SUM] as number;
  }

  get squares(): number {
    return this.cells[this.at + SQUARES] as number;
  }

  add(ln: number): void {
    addTo(this.cells, this.at, ln);
  }
}

function addTo(cells: Float64Array, at: number, ln: number): void {
  cells[at + COUNT] = (cells[at + COUNT] as number) + 1;
  cells[at + SUM] = (cells[at + SUM] as number) + ln;
  cells[at + SQUARES] = (cells[at + SQUARES] as number) + ln * ln;
}

export class ClassTally {
  arrived = 0;
  /** On nodes now. */
  running = 0;
  /** Tasks that got their first node, and how long they had waited: sums of seconds and of their squares. */
  dispatched = 0;
  waitS = 0;
  waitSquares = 0;
  dispatchedWorkUs: RefUs = 0;
  served = 0;
  /** Ended by its deadline, waiting or running. */
  missed = 0;
  failed = 0;
  cancelled = 0;
  /** Of those that missed while they waited: passed by more that came after them than a fair order lets pass. */
  overtaken = 0;
  /** Of what was served: time from submit to the end over work. */
  readonly pace: LogSums = new LogSums();
  readonly paceSteps: Float64Array = new Float64Array(PACE_STEPS);
  readonly tenantPaces: TenantPaces = new TenantPaces();
  /** Part of the time to the deadline that was used, summed. */
  deadlineUsed = 0;

  noteServed(task: ServedTask, now: MonoUs): void {
    const latencyUs = now - task.submittedAt;
    const allowedUs = task.deadlineAt - task.submittedAt;
    const ln = Math.log(Math.max(1, latencyUs) / Math.max(1, task.workUs));
    this.served += 1;
    this.pace.add(ln);
    const step = paceStep(ln);
    this.paceSteps[step] = (this.paceSteps[step] as number) + 1;
    this.tenantPaces.add(step, task, now);
    this.deadlineUsed += Math.min(1, latencyUs / Math.max(1, allowedUs));
  }

  noteDispatched(waitUs: DurationUs, workUs: RefUs): void {
    const waitS = waitUs / 1_000_000;
    this.dispatched += 1;
    this.waitS += waitS;
    this.waitSquares += waitS * waitS;
    this.dispatchedWorkUs += workUs;
  }
}

/** How one model runs on one node: service time over work, as logarithms. */
export class ModelPace extends LogSums {
  /** Tasks beside each other, itself included, summed over the same tasks. */
  get inflight(): number {
    return this.cells[this.at + INFLIGHT] as number;
  }

  note(ln: number, inflight: number): void {
    this.add(ln);
    const at = this.at + INFLIGHT;
    this.cells[at] = (this.cells[at] as number) + inflight;
  }
}

/** Models of one node whose pace is kept apart. */
export const PACES_PER_NODE_MAX = 16;

const STARTED = 0;
const STARTED_WORK_US = 1;
const SERVED = 2;
const SERVED_WORK_US = 3;
const ELAPSED_US = 4;
const PREDICTIONS = 5;
/** So many numbers at the beginning of its row; what follows is of who extends it. */
export const NODE_TALLY_WIDTH = 8;

/**
 * What each attempt changes lies in a row. The record of a node is its own tally: what is counted lies beside what else an attempt
 * changes of the node.
 */
export class NodeTally {
  protected readonly cells: Float64Array;
  protected readonly at: number;
  /** Attempts that speak against the node; a refusal for lack of room is counted apart. */
  failed = 0;
  refused = 0;
  /** How often it left the state of being at work, or came back to it. */
  flips = 0;
  readonly paces: Map<string, ModelPace> = new Map();

  /** It is given a row of zeros. */
  constructor({ cells, at }: NumberRow) {
    this.cells = cells;
    this.at = at;
  }

  get started(): number {
    return this.cells[this.at + STARTED] as number;
  }

  get startedWorkUs(): RefUs {
    return this.cells[this.at + STARTED_WORK_US] as number;
  }

  get served(): number {
    return this.cells[this.at + SERVED] as number;
  }

  get servedWorkUs(): RefUs {
    return this.cells[this.at + SERVED_WORK_US] as number;
  }

  /** Time of all attempts that ended, from their decision on. */
  get elapsedUs(): DurationUs {
    return this.cells[this.at + ELAPSED_US] as number;
  }

  /** Actual over predicted time, as logarithms. */
  get predictions(): LogSums {
    return new LogSums({ cells: this.cells, at: this.at + PREDICTIONS });
  }

  noteStarted(workUs: RefUs): void {
    this.#add(STARTED, 1);
    this.#add(STARTED_WORK_US, workUs);
  }

  noteServed(workUs: RefUs): void {
    this.#add(SERVED, 1);
    this.#add(SERVED_WORK_US, workUs);
  }

  noteEnded(elapsedUs: DurationUs): void {
    this.#add(ELAPSED_US, elapsedUs);
  }

  /** Actual over predicted time, as a logarithm. */
  notePrediction(ln: number): void {
    addTo(this.cells, this.at + PREDICTIONS, ln);
  }

  #add(place: number, value: number): void {
    const at = this.at + place;
    this.cells[at] = (this.cells[at] as number) + value;
  }

  /** Where the model's pace is counted, or null beyond the bound; a new one in the row of zeros that is offered. */
  tallyFor(model: string, row: NumberRow): ModelPace | null {
    const known = this.paces.get(model);
    if (known !== undefined) return known;
    if (this.paces.size >= PACES_PER_NODE_MAX) return null;
    const pace = new ModelPace(row);
    this.paces.set(model, pace);
    return pace;
  }
}

/** Who is inside: admitted, and without its outcome or its permit back. */
export class Residence {
  now = 0;
  /** Integral of those inside over time. */
  insideUs = 0;
  left = 0;
  /** Sum of the times for which those who left were inside. */
  stayedUs: DurationUs = 0;
  #at: MonoUs = 0;

  enter(at: MonoUs): void {
    this.until(at);
    this.now += 1;
  }

  leave(at: MonoUs, since: MonoUs): void {
    this.until(at);
    this.now -= 1;
    this.left += 1;
    this.stayedUs += at - since;
  }

  /** Brings the integral up to the instant. */
  until(at: MonoUs): void {
    this.insideUs += this.now * (at - this.#at);
    this.#at = at;
  }
}

/** What is counted of no class and no node. */
export class Tallies {
  readonly residence: Residence = new Residence();
  readonly rejections: Map<string, number> = new Map();
  readonly stages: StageTally = new StageTally();
  /** Attempts after a task's first one, and requests of clients who had asked before. */
  retries = 0;
  comebacks = 0;
  /** Work of reading prompts whose beginning could have been kept, and what of it was saved. */
  promptWorkUs: RefUs = 0;
  savedWorkUs: RefUs = 0;
  /** Changes of the set of nodes: joined, left, opened, closed. */
  fleetChanges = 0;
  fleetChangedAt: MonoUs = Number.NEGATIVE_INFINITY;

  /** Reasons are a closed set. */
  rejected(reason: string): void {
    this.rejections.set(reason, (this.rejections.get(reason) ?? 0) + 1);
  }

  fleetChanged(at: MonoUs): void {
    this.fleetChanges += 1;
    this.fleetChangedAt = at;
  }
}
