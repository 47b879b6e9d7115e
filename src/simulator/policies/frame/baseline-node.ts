/**
 * A node as a simple balancer keeps it: what runs there, what waits for it, whether it answers, and its pace. Work left is
 * a ledger in time: each task counts what it was expected to take when it was bound, and whatever a task really takes
 * is corrected when it ends.
 */
import type { DurationUs, MonoUs } from '../../../base/units.ts';
import type { SchedulerConfig } from '../../../core/config/types.ts';
import { missingNeed } from '../../../core/placement/index.ts';
import type { ModelOffer } from '../../../core/request/needs.ts';
import type { TaskSpec } from '../../../core/request/task.ts';
import type { EngineReading, NodeMemory, NodeSpec } from '../../../core/scheduler/events.ts';
import type { BaselineTask } from './baseline-task.ts';
import { Pace } from './pace.ts';
import { TaskList } from './task-list.ts';

/** A task that takes longer than expected is expected to take as long again as this part of what it took so far. */
const OVERRUN = 0.5;

/** What a node is to tasks of one model; nodes of equal `key` fit the same ones. */
export interface NodeKind {
  readonly key: string;
  readonly offer: ModelOffer;
  readonly zone: string;
}

export class BaselineNode {
  spec: NodeSpec;
  /** Unique, growing in order of registration. */
  readonly order: number;
  readonly running: BaselineTask[] = [];
  /** Tasks that are bound here and wait for a slot, in order of arrival. */
  readonly waiting: TaskList = new TaskList();
  pace: Pace;
  slots = 1;
  isAlive = true;
  cordoned = false;
  draining = false;
  isGone = false;
  /** Failures since the last success. */
  failures = 0;
  /** Until when it takes nothing because it failed too often; 0 when it does. */
  closedUntil: MonoUs = 0;
  /** What the engine said last, and when; undefined before. */
  reading: EngineReading | undefined;
  readAt: MonoUs = 0;
  #waitingUs: DurationUs = 0;
  #kinds: ReadonlyMap<string, NodeKind> = new Map();

  constructor(spec: NodeSpec, order: number, rates: NodeMemory['rates']) {
    this.spec = spec;
    this.order = order;
    this.pace = new Pace(spec.hardware, rates);
  }

  describe(spec: NodeSpec, config: SchedulerConfig): void {
    this.spec = spec;
    const zone = spec.labels['zone'] ?? '';
    this.#kinds = new Map(spec.models.map((offer) => [offer.model, kindOf(offer, zone)]));
    const { batchSlotsMax, slotsDefault } = config.placement;
    this.slots = spec.slots > 0 ? spec.slots : spec.batching ? batchSlotsMax : slotsDefault;
  }

  /** Tasks running and waiting here: what connections are to a balancer. */
  get bound(): number {
    return this.running.length + this.waiting.size;
  }

  get hasRoom(): boolean {
    return this.running.length < this.slots;
  }

  isOpen(now: MonoUs): boolean {
    return this.isAlive && !this.cordoned && !this.draining && this.closedUntil <= now;
  }

  /** Whether it could do the task at all. */
  fits(spec: TaskSpec): boolean {
    const kind = this.#kinds.get(spec.model);
    return kind !== undefined && kindFits(kind, spec);
  }

  /** What it offers for the model. */
  kindFor(model: string): NodeKind | undefined {
    return this.#kinds.get(model);
  }

  /** How long the task takes here, by what is known. */
  serviceUs(task: BaselineTask): DurationUs {
    return Math.max(1, Math.round(task.spec.workUs / this.pace.rate(task.spec.model)));
  }

  wait(task: BaselineTask): void {
    task.boundUs = this.serviceUs(task);
    this.#waitingUs += task.boundUs;
    this.waiting.push(task);
  }

  unwait(task: BaselineTask): void {
    this.waiting.remove(task);
    this.#waitingUs -= task.boundUs;
  }

  run(task: BaselineTask, now: MonoUs): void {
    task.boundUs = this.serviceUs(task);
    task.startedAt = now;
    this.running.push(task);
    task.startInflight = this.running.length;
  }

  release(task: BaselineTask): void {
    this.running.splice(this.running.indexOf(task), 1);
  }

  /** Time of all that is bound here, one after the other, over the slots. */
  workLeftUs(now: MonoUs): DurationUs {
    let sumUs = this.#waitingUs;
    for (const task of this.running) sumUs += remainingUs(task, now);
    return Math.round(sumUs / this.slots);
  }

  /** When a task that is bound now would start, from now: 0 while a slot is free. */
  startsInUs(now: MonoUs): DurationUs {
    return this.hasRoom && this.waiting.size === 0 ? 0 : this.workLeftUs(now);
  }
}

function kindOf(offer: ModelOffer, zone: string): NodeKind {
  return { key: JSON.stringify([offer, zone]), offer, zone };
}

export function kindFits({ offer, zone }: NodeKind, { needs }: TaskSpec): boolean {
  return missingNeed(offer, zone, needs) === null;
}

function remainingUs(task: BaselineTask, now: MonoUs): DurationUs {
  const elapsedUs = now - task.startedAt;
  return elapsedUs < task.boundUs ? task.boundUs - elapsedUs : Math.round(OVERRUN * elapsedUs);
}
