/** A request on its way through the simulation, with the attempt that is under way. */
import type { HeapSlot } from '../base/keyed-heap.ts';
import type { MonoUs, Ratio, TaskId } from '../base/units.ts';
import type { TaskSpec } from '../core/request/task.ts';
import type { Request } from './clients/clients.ts';
import type { User } from './clients/user.ts';
import type { Demand } from './machines/machine.ts';
import type { TrackedJob } from './observer.ts';
import type { SimNode } from './sim-node.ts';

const NEVER: MonoUs = Number.POSITIVE_INFINITY;

/** Records are used again: `begin` sets every field but `turn` and `silence`, which outlive the request. */
export class SimJob implements TrackedJob {
  id: TaskId = 0;
  request: Request;
  task: TaskSpec;
  demand: Demand;
  noise = 1;
  user: User | undefined = undefined;
  submittedAt: MonoUs = 0;
  attempts = 0;
  sentAt: MonoUs = -1;
  firstSentAt: MonoUs = -1;
  firstByteAt: MonoUs = -1;
  nodeIndex = -1;
  share: Ratio = 1;
  isSettled = false;
  /** Whether an attempt may have left traces: on a node that it was taken from, or on its way through the network. */
  isScattered = false;
  /** Where an attempt is under way. */
  node: SimNode | undefined = undefined;
  /** Grows with every attempt: news of an earlier one, whoever's it was, is old news. */
  turn = 0;
  /** When the attempt under way has been silent for too long. */
  silentAt: MonoUs = NEVER;
  /** Its place among the bounds on silence; made when it first has one. */
  silence: HeapSlot<SimJob> | undefined = undefined;

  constructor(request: Request) {
    this.request = request;
    this.task = request.task;
    this.demand = request.demand;
  }

  /** Becomes the way of this request, which comes now. */
  begin(request: Request, now: MonoUs): void {
    this.id = request.task.id;
    this.request = request;
    this.task = request.task;
    this.demand = request.demand;
    this.noise = request.noise;
    this.user = request.user;
    this.submittedAt = now;
    this.attempts = 0;
    this.sentAt = -1;
    this.firstSentAt = -1;
    this.firstByteAt = -1;
    this.nodeIndex = -1;
    this.share = 1;
    this.isSettled = false;
    this.isScattered = false;
    this.node = undefined;
    this.silentAt = NEVER;
  }

  get isRunning(): boolean {
    return this.node !== undefined;
  }

  /** From now on it has less to do: the client took a lesser answer. */
  lessen(index: number): void {
    const alternative = this.task.alternatives?.[index];
    if (alternative === undefined || !('workUs' in alternative)) return;
    const { model, needs, workUs, firstByteWorkUs } = alternative;
    // By name, since it may be worked out when it is asked for, and then it is no member that is spread.
    const { fingerprint } = this.task;
    const share = workUs / this.task.workUs;
    this.demand = lessDemand(this.demand, share);
    this.share *= share;
    this.task = { ...this.task, fingerprint, model, needs, workUs, firstByteWorkUs };
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
