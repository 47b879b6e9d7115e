/**
 * The longest that fair shares let a request wait, and which requests waited longer.
 *
 * Fair queueing over work (Goyal, Vin and Chen, 1996) serves a flow that has something waiting at
 * `rate = C * share of its class / flows of the class that wait`, and is off by at most one largest request. A request before
 * which its own flow was served `Q` of work therefore starts within
 *
 *   (Q + Lmax) / rate + Lmax / fastest
 *
 * where the last term is the time until a node is free. Shares are those that the weights promise whoever else is active;
 * flows are counted at the arrival; `Q` is what its flow was served meanwhile, whatever the order inside the flow; `Lmax`
 * is the largest request that was seen until the wait was over, by what it truly takes or by its estimate: a flow is charged
 * the estimate until the truth is known. A wait ends with the first dispatch, or with an end without one.
 *
 * What is kept grows with requests that wait, and with nothing else.
 */
import type { ClassName, DurationUs, RefUs, TaskId, TenantId } from '../../base/units.ts';
import type { Job } from '../machines/machine.ts';
import type { WaitBoundReport } from './report.ts';

export interface WaitBoundOptions {
  /** Part of the capacity that each class gets at least while it has something waiting. */
  readonly shares: ReadonlyMap<ClassName, number>;
  /** Work per microsecond of the fastest node. */
  readonly fastestRate: number;
}

interface WaitingFlow {
  tasks: number;
  /** Work that was sent to nodes since somebody waits. */
  servedUs: RefUs;
}

interface Waiting {
  readonly flow: WaitingFlow;
  readonly workUs: RefUs;
  /** What its flow had been served when it came. */
  readonly servedBeforeUs: RefUs;
  /** What its flow is due, in work per microsecond. */
  readonly rate: number;
  readonly counts: boolean;
}

export interface Expectation {
  /** True work, without noise; and the capacity of the fleet for it, in work per microsecond. */
  readonly workUs: RefUs;
  readonly capacity: number;
  /** Whether its wait is judged. */
  readonly counts: boolean;
}

export class WaitBounds {
  readonly #options: WaitBoundOptions;
  readonly #flows: Map<ClassName, Map<TenantId, WaitingFlow>> = new Map();
  readonly #waiting: Map<TaskId, Waiting> = new Map();
  #largestUs: RefUs = 0;
  #checked = 0;
  #violations = 0;
  #ratioMax = 0;

  constructor(options: WaitBoundOptions) {
    this.#options = options;
  }

  /** The request came. Every one has to be told, since it is ahead of others; only those that count are judged. */
  waits({ task, noise }: Job, { workUs, capacity, counts }: Expectation): void {
    const trueUs = workUs * noise;
    this.#largestUs = Math.max(this.#largestUs, trueUs, task.workUs);
    const ofClass = this.#flowsOf(task.className);
    let flow = ofClass.get(task.tenant);
    if (flow === undefined) {
      flow = { tasks: 0, servedUs: 0 };
      ofClass.set(task.tenant, flow);
    }
    const rate = (capacity * (this.#options.shares.get(task.className) ?? 1)) / ofClass.size;
    this.#waiting.set(task.id, { flow, workUs: trueUs, servedBeforeUs: flow.servedUs, rate, counts });
    flow.tasks += 1;
  }

  /** It was sent to a node for the first time. */
  starts(job: Job, waitUs: DurationUs): void {
    const waiting = this.#over(job, waitUs);
    if (waiting !== undefined) waiting.flow.servedUs += waiting.workUs;
  }

  /** It ended without ever being sent, or was not when the run did. */
  ends(job: Job, waitUs: DurationUs): void {
    this.#over(job, waitUs);
  }

  /** Absent where nobody came. */
  report(): WaitBoundReport | undefined {
    if (this.#checked === 0) return undefined;
    return { checked: this.#checked, violations: this.#violations, ratioMax: this.#ratioMax };
  }

  #over({ task }: Job, waitUs: DurationUs): Waiting | undefined {
    const waiting = this.#waiting.get(task.id);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(task.id);
    waiting.flow.tasks -= 1;
    if (waiting.flow.tasks === 0) this.#flowsOf(task.className).delete(task.tenant);
    if (waiting.counts) this.#judge(waitUs, waiting);
    return waiting;
  }

  #judge(waitUs: DurationUs, { flow, servedBeforeUs, rate }: Waiting): void {
    const ownUs = flow.servedUs - servedBeforeUs;
    const boundUs = (ownUs + this.#largestUs) / rate + this.#largestUs / this.#options.fastestRate;
    const ratio = waitUs / boundUs;
    this.#checked += 1;
    if (ratio > 1) this.#violations += 1;
    if (ratio > this.#ratioMax) this.#ratioMax = ratio;
  }

  #flowsOf(name: ClassName): Map<TenantId, WaitingFlow> {
    const known = this.#flows.get(name);
    if (known !== undefined) return known;
    const flows = new Map<TenantId, WaitingFlow>();
    this.#flows.set(name, flows);
    return flows;
  }
}
