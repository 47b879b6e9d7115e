/**
 * Timed items in order of (instant, insertion): the virtual clock's agenda. A binary heap whose keys lie in dense arrays;
 * nothing is taken out before its time, so nobody needs to know his place.
 */
import type { MonoUs } from '../base/units.ts';

const CAPACITY_MIN = 64;

export class EventQueue<T = () => void> {
  #size = 0;
  #order = 0;
  #instants = new Float64Array(CAPACITY_MIN);
  #orders = new Float64Array(CAPACITY_MIN);
  readonly #items: (T | undefined)[] = [];

  get size(): number {
    return this.#size;
  }

  push(at: MonoUs, item: T): void {
    if (this.#size === this.#instants.length) this.#grow();
    this.#siftUp(this.#size++, at, this.#order++, item);
  }

  /** Infinity when empty. */
  nextAt(): MonoUs {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#instants[0] as number);
  }

  pop(): T | undefined {
    if (this.#size === 0) return undefined;
    const first = this.#items[0] as T;
    const last = --this.#size;
    const item = this.#items[last] as T;
    this.#items[last] = undefined;
    if (last > 0) this.#siftDown(this.#instants[last] as number, this.#orders[last] as number, item);
    return first;
  }

  // What comes later never has a lesser order, so going up compares instants only.
  #siftUp(from: number, at: MonoUs, order: number, item: T): void {
    const instants = this.#instants;
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if ((instants[parent] as number) <= at) break;
      this.#move(parent, place);
      place = parent;
    }
    this.#put(place, at, order, item);
  }

  #siftDown(at: MonoUs, order: number, item: T): void {
    let place = 0;
    for (let child = 1; child < this.#size; child = 2 * place + 1) {
      if (child + 1 < this.#size && this.#isBefore(child + 1, child)) child += 1;
      const childAt = this.#instants[child] as number;
      if (at < childAt || (at === childAt && order < (this.#orders[child] as number))) break;
      this.#move(child, place);
      place = child;
    }
    this.#put(place, at, order, item);
  }

  #isBefore(one: number, other: number): boolean {
    const [a, b] = [this.#instants[one] as number, this.#instants[other] as number];
    return a < b || (a === b && (this.#orders[one] as number) < (this.#orders[other] as number));
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#instants[from] as number, this.#orders[from] as number, this.#items[from] as T);
  }

  #put(place: number, at: MonoUs, order: number, item: T): void {
    this.#instants[place] = at;
    this.#orders[place] = order;
    this.#items[place] = item;
  }

  #grow(): void {
    const instants = new Float64Array(2 * this.#size);
    const orders = new Float64Array(2 * this.#size);
    instants.set(this.#instants);
    orders.set(this.#orders);
    this.#instants = instants;
    this.#orders = orders;
  }
}
