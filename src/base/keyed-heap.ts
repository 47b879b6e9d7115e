/**
 * A binary min-heap whose members know their place, so that any of them can be moved or removed in O(log n).
 * Ties go by `order`, which is unique among the members, so that the sequence never depends on insertion history.
 *
 * What is compared and moved lies in dense arrays of numbers, not in the members: a comparison of boxed keys behind
 * pointers costs two cache misses in a large heap, and a sift makes thirty of them. A member is known to its heap by
 * a handle, a small integer that it gets when it enters and gives back when it leaves.
 */
import { invariant } from './assert.ts';

const CAPACITY_MIN = 8;

/** The handle of what is in no heap. */
export const NO_HANDLE = -1;

/** An item's place in one heap at a time. Its handle is the heap's to change. */
export class HeapSlot<T> {
  readonly item: T;
  /** Breaks ties; unique among the members of one heap. Not to be changed while it is in one. */
  order: number;
  /** By what the heap knows the item, or -1 outside. */
  handle: number = NO_HANDLE;

  constructor(item: T, order: number) {
    this.item = item;
    this.order = order;
  }

  get isInHeap(): boolean {
    return this.handle !== NO_HANDLE;
  }
}

/**
 * Items lie in slots (`push`, `update`, `remove`), or keep their handles themselves, so that nothing else is looked at to find
 * them (`insert`, `move`, `delete`). One class for both: what is compiled for heaps of two shapes looks at the shape at every step.
 */
export class KeyedHeap<T> {
  #size = 0;
  /** Keys by place: the least at 0, the children of place i at 2i + 1 and 2i + 2. */
  #keys = new Float64Array(CAPACITY_MIN);
  /** Handles by place; behind the members, those that nobody has. */
  #handles = Int32Array.from({ length: CAPACITY_MIN }, (_, index) => index);
  /** Places, orders and items by handle. */
  #places = new Int32Array(CAPACITY_MIN);
  #orders = new Float64Array(CAPACITY_MIN);
  readonly #items: (T | undefined)[] = [];

  get size(): number {
    return this.#size;
  }

  /** The least key, or Infinity when empty. O(1). */
  get leastKey(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#keys[0] as number);
  }

  /** The item with the least key, or undefined when empty. O(1). */
  peek(): T | undefined {
    return this.at(0);
  }

  /** The item at a place of the heap, for looking at the first few without removing them. O(1). */
  at(place: number): T | undefined {
    return place < this.#size ? this.#items[this.#handles[place] as number] : undefined;
  }

  keyAt(handle: number): number {
    return this.#keys[this.#places[handle] as number] as number;
  }

  /** Takes an item in, and tells the handle that it has until it leaves. `order` breaks ties. O(log n). */
  insert(item: T, order: number, key: number): number {
    if (this.#size === this.#keys.length) this.#grow();
    const place = this.#size++;
    const handle = this.#handles[place] as number;
    this.#orders[handle] = order;
    this.#items[handle] = item;
    this.#siftUp(handle, key, place);
    return handle;
  }

  /** Gives the member with the handle another key. O(log n). */
  move(handle: number, key: number): void {
    const place = this.#places[handle] as number;
    if (this.#keys[place] !== key) this.#settle(handle, key, place);
  }

  /** Takes out the item that has the handle; it has it no more. O(log n). */
  delete(handle: number, item: T): void {
    const place = this.#places[handle] as number;
    invariant(this.#items[handle] === item, 'Only a member of this heap can be removed');
    this.#takeOut(handle, place);
  }

  // The same for items in slots.
  keyOf(slot: HeapSlot<T>): number {
    return this.keyAt(slot.handle);
  }

  push(slot: HeapSlot<T>, key: number): void {
    invariant(slot.handle === NO_HANDLE, 'A slot is in one heap at most');
    slot.handle = this.insert(slot.item, slot.order, key);
  }

  remove(slot: HeapSlot<T>): void {
    this.delete(slot.handle, slot.item);
    slot.handle = NO_HANDLE;
  }

  update(slot: HeapSlot<T>, key: number): void {
    this.move(slot.handle, key);
  }

  /** Takes out the item with the least key. Its slot is spent: for heaps whose owner keeps no slots. */
  pop(): T | undefined {
    if (this.#size === 0) return undefined;
    const handle = this.#handles[0] as number;
    const item = this.#items[handle] as T;
    this.#takeOut(handle, 0);
    return item;
  }

  /** The members in order of their places. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let place = 0; place < this.#size; place++) yield this.at(place) as T;
  }

  #takeOut(handle: number, place: number): void {
    const lastPlace = --this.#size;
    const last = this.#handles[lastPlace] as number;
    this.#handles[lastPlace] = handle;
    this.#items[handle] = undefined;
    if (last !== handle) this.#settle(last, this.#keys[lastPlace] as number, place);
  }

  #settle(handle: number, key: number, place: number): void {
    const parent = (place - 1) >> 1;
    if (place > 0 && this.#isBefore(handle, key, parent)) this.#siftUp(handle, key, place);
    else this.#siftDown(handle, key, place);
  }

  // The sifts hold the arrays at hand: fetching them from the heap for each comparison costs as much as comparing.
  #siftUp(handle: number, key: number, from: number): void {
    const keys = this.#keys;
    const handles = this.#handles;
    const places = this.#places;
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const parentKey = keys[parent] as number;
      if (parentKey < key || (parentKey === key && !this.#isBefore(handle, key, parent))) break;
      const parentHandle = handles[parent] as number;
      keys[place] = parentKey;
      handles[place] = parentHandle;
      places[parentHandle] = place;
      place = parent;
    }
    keys[place] = key;
    handles[place] = handle;
    places[handle] = place;
  }

  #siftDown(handle: number, key: number, from: number): void {
    const size = this.#size;
    const keys = this.#keys;
    const handles = this.#handles;
    const places = this.#places;
    let place = from;
    for (let child = 2 * place + 1; child < size; child = 2 * place + 1) {
      let childKey = keys[child] as number;
      if (child + 1 < size) {
        const rightKey = keys[child + 1] as number;
        const isRight =
          rightKey < childKey ||
          (rightKey === childKey && this.#isBefore(handles[child + 1] as number, rightKey, child));
        if (isRight) {
          child += 1;
          childKey = rightKey;
        }
      }
      if (key < childKey || (key === childKey && this.#isBefore(handle, key, child))) break;
      const childHandle = handles[child] as number;
      keys[place] = childKey;
      handles[place] = childHandle;
      places[childHandle] = place;
      place = child;
    }
    keys[place] = key;
    handles[place] = handle;
    places[handle] = place;
  }

  /** Whether a member with this key comes before the one at `place`. */
  #isBefore(handle: number, key: number, place: number): boolean {
    const other = this.#keys[place] as number;
    if (key !== other) return key < other;
    return (this.#orders[handle] as number) < (this.#orders[this.#handles[place] as number] as number);
  }

  #grow(): void {
    const capacity = 2 * this.#keys.length;
    const keys = new Float64Array(capacity);
    const orders = new Float64Array(capacity);
    const places = new Int32Array(capacity);
    const handles = Int32Array.from({ length: capacity }, (_, index) => index);
    keys.set(this.#keys);
    orders.set(this.#orders);
    places.set(this.#places);
    handles.set(this.#handles);
    this.#keys = keys;
    this.#orders = orders;
    this.#places = places;
    this.#handles = handles;
  }
}
