/** A request on its way through the simulation, with the attempt that is under way. */
import { HeapSlot } from '../base/keyed-heap.ts';
import type { MonoUs, Ratio, TaskId } from '../base/units.ts';
import type { TaskSpec } from '../core/request/task.ts';
import type { Request } from './clients/clients.ts';
import type { User } from './clients/user.ts';
import type { Demand } from './machines/machine.ts';
import type { TrackedJob } from './observer.ts';
import type { SimNode } from './sim-node.ts';

export class SimJob implements TrackedJob {
  readonly id: TaskId;
  task: TaskSpec;
  demand: Demand;
  readonly noise: number;
  readonly user: User | undefined;
  readonly submittedAt: MonoUs;
  attempts = 0;
  sentAt: MonoUs = -1;
  firstSentAt: MonoUs = -1;
  firstByteAt: MonoUs = -1;
  nodeIndex = -1;
  share: Ratio = 1;
  isSettled = false;
  /** Where an attempt is under way. */
  node: SimNode | undefined = undefined;
  /** Grows with every attempt: news of an earlier one is old news. */
  turn = 0;
  /** Its place among the bounds on silence; made when it first has one. */
  silence: HeapSlot<SimJob> | undefined = undefined;

  constructor({ task, demand, noise, user }: Request, submittedAt: MonoUs) {
    this.id = task.id;
    this.task = task;
    this.demand = demand;
    this.noise = noise;
    this.user = user;
    this.submittedAt = submittedAt;
  }

  get isRunning(): boolean {
    return this.node !== undefined;
  }

  /** From now on it has less to do: the client took a lesser answer. */
  lessen(index: number): void {
    const alternative = this.task.alternatives?.[index];
    if (alternative === undefined || !('workUs' in alternative)) return;
    const { model, needs, workUs, firstByteWorkUs } = alternative;
    const share = workUs / this.task.workUs;
    this.demand = lessDemand(this.demand, share);
    this.share *= share;
    this.task = { ...this.task, model, needs, workUs, firstByteWorkUs };
  }

  silenceSlot(): HeapSlot<SimJob> {
    this.silence ??= new HeapSlot<SimJob>(this, this.id);
    return this.silence;
  }
}

function lessDemand(demand: Demand, share: number): Demand {
  switch (demand.kind) {
    case 'work':
      return { ...demand, workUs: Math.max(1, Math.round(demand.workUs * share)) };
    case 'image':
      return { ...demand, units: demand.units * share };
    case 'text':
      return { ...demand, outputTokens: Math.max(1, Math.round(demand.outputTokens * share)) };
    case 'embedding':
      return { ...demand, tokens: Math.max(1, Math.round(demand.tokens * share)) };
  }
}
