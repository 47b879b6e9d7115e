/**
 * A list that is filled and emptied all the time. Setting the length of an array to 0 gives its room back, and the next push
 * takes new room for seventeen items: three lists per event were a third of what a run allocated. This one keeps its room,
 * and what lay there last, as many as one burst leaves.
 */
export class RefilledList<T> {
  readonly #items: T[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    this.#items[this.#size++] = item;
  }

  /** Of a place below the size. */
  at(place: number): T {
    return this.#items[place] as T;
  }

  clear(): void {
    this.#size = 0;
  }
}
