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
import type { ClassName, DurationUs, Ratio, RefUs, TenantId } from '../../base/units.ts';
import type { Job } from '../machines/machine.ts';
import { TaskTable } from '../task-table.ts';
import type { WaitBoundReport } from './report.ts';

export interface WaitBoundOptions {
  /** Part of the capacity that each class gets at least while it has something waiting. */
  readonly shares: ReadonlyMap<ClassName, number>;
  /** Work per microsecond of the fastest node. */
  readonly fastestRate: number;
}

interface WaitingFlow {
  readonly ofClass: WaitingClass;
  readonly tenant: TenantId;
  tasks: number;
  /** Work that was sent to nodes since somebody waits. */
  servedUs: RefUs;
}

interface WaitingClass {
  readonly share: Ratio;
  /** Those that wait, and some that do not, for the next time. */
  readonly flows: Map<TenantId, WaitingFlow>;
  waiting: number;
}

/** Records are used again. */
interface Waiting {
  flow: WaitingFlow;
  workUs: RefUs;
  /** What its flow had been served when it came. */
  servedBeforeUs: RefUs;
  /** What its flow is due, in work per microsecond. */
  rate: number;
  counts: boolean;
}

export interface Expectation {
  /** True work, without noise; and the capacity of the fleet for it, in work per microsecond. */
  readonly workUs: RefUs;
  readonly capacity: number;
  /** Whether its wait is judged. */
  readonly counts: boolean;
}

/** Flows of a class that are kept though nothing of them waits, and records of requests. */
const IDLE_FLOWS_MAX = 4_096;
const SPARE_MAX = 16_384;

export class WaitBounds {
  readonly #options: WaitBoundOptions;
  readonly #classes: Map<ClassName, WaitingClass> = new Map();
  readonly #waiting = new TaskTable<Waiting>();
  readonly #spare: Waiting[] = [];
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
    const ofClass = this.#classes.get(task.className) ?? this.#addClass(task.className);
    const flow = ofClass.flows.get(task.tenant) ?? addFlow(ofClass, task.tenant);
    if (flow.tasks === 0) enter(flow);
    flow.tasks += 1;
    const waiting = this.#spare.pop() ?? { flow, workUs: 0, servedBeforeUs: 0, rate: 0, counts };
    waiting.flow = flow;
    waiting.workUs = trueUs;
    waiting.servedBeforeUs = flow.servedUs;
    waiting.rate = (capacity * ofClass.share) / ofClass.waiting;
    waiting.counts = counts;
    this.#waiting.add(task.id, waiting);
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

  /** The record is another's from the next request on. */
  #over({ task }: Job, waitUs: DurationUs): Waiting | undefined {
    const waiting = this.#waiting.get(task.id);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(task.id);
    if (this.#spare.length < SPARE_MAX) this.#spare.push(waiting);
    const { flow } = waiting;
    flow.tasks -= 1;
    if (flow.tasks === 0) leave(flow);
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

  #addClass(name: ClassName): WaitingClass {
    const ofClass = { share: this.#options.shares.get(name) ?? 1, flows: new Map(), waiting: 0 };
    this.#classes.set(name, ofClass);
    return ofClass;
  }
}

function addFlow(ofClass: WaitingClass, tenant: TenantId): WaitingFlow {
  const flow = { ofClass, tenant, tasks: 0, servedUs: 0 };
  ofClass.flows.set(tenant, flow);
  return flow;
}

/** What it was served while nothing of it waited is of no account. */
function enter(flow: WaitingFlow): void {
  flow.ofClass.waiting += 1;
  flow.servedUs = 0;
}

function leave(flow: WaitingFlow): void {
  const { ofClass, tenant } = flow;
  ofClass.waiting -= 1;
  if (ofClass.flows.size > IDLE_FLOWS_MAX) ofClass.flows.delete(tenant);
}
