/**
 * A quantile of positive ratios in bounded memory: a histogram in steps of a quarter octave (19 %) from 1/1,024 to 64.
 * Counts are halved when they reach `TOTAL_MAX`, so that the past fades. The answer is the upper edge of its bucket:
 * never too small by more than what lies outside the range. 160 bytes; add O(1), quantile O(buckets) after a change.
 */
const STEPS_PER_OCTAVE = 4;
const OCTAVE_MIN = -10;
const BUCKETS = 16 * STEPS_PER_OCTAVE;
const TOTAL_MAX = 1_024;
/** Upper edges of the buckets. */
const EDGES: readonly number[] = Array.from(
  { length: BUCKETS },
  (_, bucket) => 2 ** (OCTAVE_MIN + (bucket + 1) / STEPS_PER_OCTAVE),
);

/** Reads a number's exponent and the upper half of its mantissa: a quarter of the price of a logarithm. */
const NUMBER: Float64Array = new Float64Array(1);
const HALVES: Uint32Array = new Uint32Array(NUMBER.buffer);
const UPPER: 0 | 1 = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 1 : 0;

/** The bucket of a positive ratio: the first whose upper edge is not below it, or the last. O(1). */
function bucketOf(ratio: number): number {
  if (ratio <= (EDGES[0] as number)) return 0;
  if (ratio > (EDGES[BUCKETS - 1] as number)) return BUCKETS - 1;
  NUMBER[0] = ratio;
  const exponent = ((HALVES[UPPER] as number) >>> 20) - 1_023;
  let bucket = (exponent - OCTAVE_MIN) * STEPS_PER_OCTAVE - 1;
  if (bucket < 0) bucket = 0;
  while (ratio > (EDGES[bucket] as number)) bucket += 1;
  return bucket;
}

export class LogSketch {
  readonly #counts: Uint16Array = new Uint16Array(BUCKETS);
  #total = 0;
  #asked = 0;
  #answer = 0;

  /** Ratios that count now, at most 1,024. */
  get total(): number {
    return this.#total;
  }

  /** Ratios outside the range count at its ends; what is no positive number does not count. */
  add(ratio: number): void {
    if (!(ratio > 0)) return;
    const bucket = bucketOf(ratio);
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#total += 1;
    this.#asked = 0;
    if (this.#total >= TOTAL_MAX) this.#halve();
  }

  /** At most `1 - q` of the ratios lie above the answer; 0 while there are none. `q` from 0 to below 1. */
  quantile(q: number): number {
    if (this.#total === 0) return 0;
    if (this.#asked === q) return this.#answer;
    const above = Math.floor(this.#total * (1 - q));
    let bucket = BUCKETS - 1;
    for (let sum = this.#counts[bucket] as number; sum <= above && bucket > 0; ) {
      bucket -= 1;
      sum += this.#counts[bucket] as number;
    }
    this.#asked = q;
    this.#answer = EDGES[bucket] as number;
    return this.#answer;
  }

  #halve(): void {
    this.#total = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const half = (this.#counts[bucket] as number) >> 1;
      this.#counts[bucket] = half;
      this.#total += half;
    }
  }
}
