/**
 * A model of Kubernetes' API Priority and Fairness, as if the gateway were an API server and its fleet's slots were seats.
 *
 * Source: KEP-1040; k8s.io/apiserver `pkg/util/flowcontrol` and `pkg/server/filters/priority-and-fairness.go`, as of July 2026.
 *
 * Modelled: a priority level per class, with nominal seats by the classes' weights; every 10 s seats are divided anew by
 * demand, levels lend at most `lendable` percent of theirs and borrow without a bound (`apf/seat-allocation.ts`,
 * `apf/seat-demand.ts`). In a level fair queueing by virtual time over flows (tenants) that are dealt to queues by shuffle sharding
 * (`apf/priority-level.ts`). A request is refused when its queue is full and all seats of the level are used, and
 * removed when it has waited a quarter of its time, at most 1 min. Defaults are those of the built-in `workload-low`
 * level: it lends 90 %, 128 queues, hands of 6, at most 50 waiting in each.
 *
 * Ours, where the original has no say: which node runs a request (the fastest free one), attempts after failures. A queue
 * whose head no free node fits is passed over; there all seats are alike.
 *
 * Left out: width of requests by objects listed, exempt and catch-all levels, Retry-After that adapts to drops (1 s here).
 */
import { HeapSlot, KeyedHeap } from '../../base/keyed-heap.ts';
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import { allocateSeats } from './apf/seat-allocation.ts';
import { PriorityLevel } from './apf/priority-level.ts';
import type { BaselineNode } from './frame/baseline-node.ts';
import type { BaselineTask } from './frame/baseline-task.ts';
import type { Desk, Discipline } from './frame/discipline.ts';
import { fastestOf } from './frame/early-binding.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';
import { numberOption, type OptionsOf, type OptionTable } from './frame/options.ts';

const ADJUST_US: DurationUs = 10_000_000;
const WAIT_US_MAX: DurationUs = 60_000_000;
const WAIT_SHARE = 0.25;
const RETRY_AFTER_US: DurationUs = 1_000_000;

const OPTIONS = {
  queues: numberOption(128, [1, 10_000], 'queues of a level'),
  handSize: numberOption(6, [1, 16], 'queues that a flow is dealt'),
  queueLengthMax: numberOption(50, [1, 100_000], 'queueLengthLimit'),
  lendable: numberOption(90, [0, 100], 'lendablePercent of every level'),
} as const satisfies OptionTable;

type Options = OptionsOf<typeof OPTIONS>;

class PriorityAndFairness implements Discipline {
  readonly #desk: Desk;
  readonly #options: Options;
  /** By rank of the class. */
  readonly #levels: PriorityLevel[] = [];
  readonly #expiries = new KeyedHeap<BaselineTask>();
  readonly #expiryOf: WeakMap<BaselineTask, HeapSlot<BaselineTask>> = new WeakMap();
  #seats = 0;
  #adjustAt: MonoUs = 10_000_000;

  constructor(desk: Desk, options: Options) {
    this.#desk = desk;
    this.#options = options;
  }

  enter(task: BaselineTask): void {
    const { now } = this.#desk;
    const isTaken = this.#levelOf(task).enqueue(task, hashOf(task.spec.tenant), now);
    if (!isTaken) return this.#desk.reject(task, 'queue-full', RETRY_AFTER_US);
    const waitUs = Math.min(WAIT_US_MAX, WAIT_SHARE * Math.max(0, task.spec.deadlineAt - now));
    const expiry = new HeapSlot(task, task.order);
    this.#expiryOf.set(task, expiry);
    this.#expiries.push(expiry, now + Math.round(waitUs));
    this.#desk.admit(task);
    this.#dispatch();
  }

  leave(task: BaselineTask): void {
    this.#forgetExpiry(task);
    this.#levelOf(task).remove(task, this.#desk.now);
  }

  offer(_node: BaselineNode): void {
    this.#countSeats();
    this.#dispatch();
  }

  ended(task: BaselineTask, _node: BaselineNode, _result: AttemptResult): void {
    const { now } = this.#desk;
    this.#levelOf(task).finish(task, now - task.startedAt, now);
  }

  *waiting(): Iterable<BaselineTask> {
    for (const level of this.#levels) yield* level;
  }

  nextWakeAt(): MonoUs {
    return Math.min(this.#adjustAt, this.#expiries.leastKey);
  }

  wake(): void {
    const { now } = this.#desk;
    while (this.#expiries.leastKey <= now) {
      const task = this.#expiries.peek() as BaselineTask;
      this.leave(task);
      this.#desk.evict(task, 'wait-expired');
    }
    if (this.#adjustAt > now) return;
    this.#adjustAt = now + ADJUST_US;
    this.#adjust();
    this.#dispatch();
  }

  #dispatch(): void {
    for (const level of this.#levels)
      while (level.waiting > 0 && level.hasSeat) {
        const task = level.next((candidate) => this.#freeNode(candidate) !== undefined);
        if (task === undefined) break;
        this.#forgetExpiry(task);
        level.start(task, this.#desk.now);
        this.#desk.start(task, this.#freeNode(task) as BaselineNode);
      }
  }

  #freeNode(task: BaselineTask): BaselineNode | undefined {
    const free = this.#desk.candidates(task).filter((node) => node.hasRoom);
    return free.length === 0 ? undefined : fastestOf(task.spec.model)(free);
  }

  /** Seats are the slots of nodes in use. When they change, levels begin anew from their nominal shares. */
  #countSeats(): void {
    const { nodes, now } = this.#desk;
    const seats = nodes.reduce((sum, node) => (node.isOpen(now) ? sum + node.slots : sum), 0);
    if (seats === this.#seats) return;
    this.#seats = seats;
    for (const [rank, level] of this.#levels.entries()) level.seats = this.#nominalOf(rank);
  }

  #adjust(): void {
    const { now } = this.#desk;
    for (const level of this.#levels) level.demand.closePeriod(now);
    const claims = this.#levels.map(({ demand }, rank) => {
      const nominal = this.#nominalOf(rank);
      const minSeats = nominal - Math.round((nominal * this.#options.lendable) / 100);
      const lowerSeats = Math.max(minSeats, Math.min(nominal, demand.highWatermark));
      const targetSeats = Math.max(lowerSeats, demand.smoothed);
      return { minSeats, lowerSeats, targetSeats, upperSeats: Math.max(lowerSeats, this.#seats) };
    });
    const seats = allocateSeats(claims, this.#seats);
    for (const [rank, level] of this.#levels.entries()) level.seats = seats[rank] as number;
  }

  #levelOf({ rank }: BaselineTask): PriorityLevel {
    while (this.#levels.length <= Math.max(rank, this.#desk.config.classes.length - 1)) {
      const level = new PriorityLevel(this.#options);
      level.seats = this.#nominalOf(this.#levels.length);
      this.#levels.push(level);
    }
    return this.#levels[rank] as PriorityLevel;
  }

  /** A class that is not configured has the weight of the lowest that is. */
  #nominalOf(rank: number): number {
    const { classes } = this.#desk.config;
    const sum = classes.reduce((total, { weight }) => total + weight, 0);
    const { weight } = classes[Math.min(rank, classes.length - 1)] as { readonly weight: number };
    return Math.max(1, Math.ceil((this.#seats * weight) / sum));
  }

  #forgetExpiry(task: BaselineTask): void {
    const expiry = this.#expiryOf.get(task);
    if (expiry?.isInHeap === true) this.#expiries.remove(expiry);
  }
}

/** FNV-1a over UTF-16 units, in 32 bits, and once more over its own result for the upper ones: 52 bits in all. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  const upper = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b) >>> 12;
  return upper * 4_294_967_296 + (hash >>> 0);
}

export const MODEL_OF_KUBERNETES_APF: PolicyEntry = baseline({
  name: 'model-of-kubernetes-apf',
  about:
    'seats by class with lending, fair queues by shuffle sharding, bounds on length and wait; the fastest free node',
  source: 'KEP-1040, k8s.io/apiserver pkg/util/flowcontrol',
  options: OPTIONS,
  discipline: (options) => (desk) => new PriorityAndFairness(desk, options),
});
