/**
 * One priority level: queues between which its seats are shared fairly, by virtual time. A flow is dealt a hand of queues
 * and uses the one of them with least waiting, so that an elephant and a mouse seldom share all of theirs.
 *
 * `R` is the work, in seat-microseconds, that a queue with something to do has got since the beginning; it advances by
 * min(seats asked for, seats) / active queues. A queue's next request starts at `startR`: each dispatch adds the guess G of a
 * service time, its end corrects that to the time it really took. The head with the least startR + G is next. A queue does
 * not save up: its start is never before the arrival of its head.
 *
 * Source: k8s.io/apiserver `pkg/util/flowcontrol/fairqueuing/queueset`, `pkg/util/shufflesharding`. Requests take one seat
 * each. G is a constant of 3 ms there; here it follows the mean of what requests take, since times differ by model.
 */
import type { DurationUs, MonoUs } from '../../../base/units.ts';
import type { BaselineTask } from '../frame/baseline-task.ts';
import { TaskList } from '../frame/task-list.ts';
import { SeatDemand } from './seat-demand.ts';

export interface LevelOptions {
  readonly queues: number;
  readonly handSize: number;
  readonly queueLengthMax: number;
}

interface Queue {
  readonly waiting: TaskList;
  startR: number;
  seatsInUse: number;
}

interface Ticket {
  readonly queue: Queue;
  readonly arrivalR: number;
  guessUs: DurationUs;
}

const GUESS_STEP = 0.05;

export class PriorityLevel {
  readonly demand: SeatDemand = new SeatDemand();
  /** Seats that it may use now. */
  seats = 1;
  seatsInUse = 0;
  waiting = 0;
  readonly #options: LevelOptions;
  readonly #queues: readonly Queue[];
  readonly #tickets: WeakMap<BaselineTask, Ticket> = new WeakMap();
  #guessUs: DurationUs = 3_000;
  #isGuessKnown = false;
  #progressR = 0;
  #at: MonoUs = 0;
  #activeQueues = 0;
  #enqueued = 0;
  #turn = 0;

  constructor(options: LevelOptions) {
    this.#options = options;
    this.#queues = Array.from({ length: options.queues }, () => ({
      waiting: new TaskList(),
      startR: 0,
      seatsInUse: 0,
    }));
  }

  get hasSeat(): boolean {
    return this.seatsInUse < this.seats;
  }

  /** Whether it took the task; not while all seats are used and the queue of the flow is full. */
  enqueue(task: BaselineTask, flowHash: number, now: MonoUs): boolean {
    this.#sync(now);
    const queue = this.#queueOf(flowHash);
    const isFull = !this.hasSeat && queue.waiting.size >= this.#options.queueLengthMax;
    if (isFull && !task.isAdmitted) return false;
    this.#change(queue, now, () => {
      if (queue.waiting.size === 0 && queue.seatsInUse === 0) queue.startR = this.#progressR;
      queue.waiting.push(task);
      this.waiting += 1;
      this.#tickets.set(task, { queue, arrivalR: this.#progressR, guessUs: 0 });
    });
    return true;
  }

  /** A waiting task leaves without having run. */
  remove(task: BaselineTask, now: MonoUs): void {
    this.#sync(now);
    const { queue } = this.#tickets.get(task) as Ticket;
    this.#change(queue, now, () => {
      queue.waiting.remove(task);
      this.waiting -= 1;
    });
  }

  /** The task that is next by virtual time among those that `mayRun`; it keeps its place until `start`. O(queues). */
  next(mayRun: (task: BaselineTask) => boolean): BaselineTask | undefined {
    const passed = new Set<Queue>();
    for (;;) {
      const index = this.#leastQueue(passed);
      if (index < 0) return undefined;
      const queue = this.#queues[index] as Queue;
      const task = queue.waiting.first as BaselineTask;
      if (mayRun(task)) {
        this.#turn = index;
        return task;
      }
      passed.add(queue);
    }
  }

  start(task: BaselineTask, now: MonoUs): void {
    this.#sync(now);
    const ticket = this.#tickets.get(task) as Ticket;
    const { queue } = ticket;
    this.#change(queue, now, () => {
      queue.waiting.remove(task);
      this.waiting -= 1;
      this.seatsInUse += 1;
      queue.seatsInUse += 1;
      ticket.guessUs = this.#guessUs;
      queue.startR += ticket.guessUs;
    });
  }

  finish(task: BaselineTask, tookUs: DurationUs, now: MonoUs): void {
    this.#sync(now);
    const { queue, guessUs } = this.#tickets.get(task) as Ticket;
    this.#change(queue, now, () => {
      this.seatsInUse -= 1;
      queue.seatsInUse -= 1;
      queue.startR -= guessUs - tookUs;
    });
    this.#guessUs += this.#isGuessKnown ? GUESS_STEP * (tookUs - this.#guessUs) : tookUs - this.#guessUs;
    this.#isGuessKnown = true;
  }

  *[Symbol.iterator](): IterableIterator<BaselineTask> {
    for (const { waiting } of this.#queues) yield* waiting;
  }

  #leastQueue(passed: ReadonlySet<Queue>): number {
    let least = Number.POSITIVE_INFINITY;
    let found = -1;
    for (let step = 1; step <= this.#queues.length; step++) {
      const index = (this.#turn + step) % this.#queues.length;
      const queue = this.#queues[index] as Queue;
      if (queue.waiting.size === 0 || queue.startR >= least || passed.has(queue)) continue;
      least = queue.startR;
      found = index;
    }
    return found;
  }

  #queueOf(flowHash: number): Queue {
    const hand = dealHand(flowHash, this.#queues.length, this.#options.handSize);
    const offset = this.#enqueued++ % hand.length;
    let least: Queue | undefined;
    for (let card = 0; card < hand.length; card++) {
      const queue = this.#queues[hand[(offset + card) % hand.length] as number] as Queue;
      if (least === undefined || queue.waiting.size < least.waiting.size) least = queue;
    }
    return least as Queue;
  }

  #change(queue: Queue, now: MonoUs, action: () => void): void {
    const wasActive = isActive(queue);
    action();
    this.#activeQueues += (isActive(queue) ? 1 : 0) - (wasActive ? 1 : 0);
    const { first } = queue.waiting;
    if (first !== null) queue.startR = Math.max(queue.startR, (this.#tickets.get(first) as Ticket).arrivalR);
    this.demand.set(this.seatsInUse + this.waiting, now);
  }

  #sync(now: MonoUs): void {
    const asked = Math.min(this.seatsInUse + this.waiting, this.seats);
    if (this.#activeQueues > 0) this.#progressR += ((now - this.#at) * asked) / this.#activeQueues;
    this.#at = now;
  }
}

function isActive({ waiting, seatsInUse }: Queue): boolean {
  return waiting.size > 0 || seatsInUse > 0;
}

/** `handSize` different queues, the same for the same hash: cards are dealt from a deck that shrinks. */
export function dealHand(hash: number, queues: number, handSize: number): readonly number[] {
  const hand: number[] = [];
  let rest = hash;
  for (let dealt = 0; dealt < Math.min(handSize, queues); dealt++) {
    const cards = queues - dealt;
    let card = rest % cards;
    rest = Math.floor(rest / cards);
    for (const lower of [...hand].sort((one, other) => one - other)) if (card >= lower) card += 1;
    hand.push(card);
  }
  return hand;
}
