/**
 * Values by small numbers that were given out one after the other: an array without gaps, since an engine keeps one with gaps
 * as a hash table. What is kept for each model is found so where a step would hash the same name in one map after the other.
 */
export class ByNumber<T> {
  readonly #values: (T | undefined)[] = [];

  /** The value of a number, or undefined where there is none; a negative number has none. O(1). */
  get(number: number): T | undefined {
    return number >= 0 && number < this.#values.length ? this.#values[number] : undefined;
  }

  /** Keeps a value; of a negative number it keeps nothing. O(1), but for the first of a greater number. */
  set(number: number, value: T): void {
    while (this.#values.length < number) this.#values.push(undefined);
    if (number >= 0) this.#values[number] = value;
  }

  clear(): void {
    this.#values.length = 0;
  }
}
