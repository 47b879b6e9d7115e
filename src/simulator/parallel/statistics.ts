/**
 * One report of many seeds: of every figure the mean and its 95 % interval by Student's t (Gosset, 1908): mean ± t·s/√n.
 * Runs of different seeds are independent, and their means close enough to normal.
 */
import { DecisionHash } from '../../base/decision-hash.ts';

export interface Figure {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** The same shape with a figure for each number. What only some seeds have is computed over those that have it. */
export type Summary<T> = T extends number
  ? Figure
  : T extends string
    ? string
    : T extends object
      ? { readonly [Key in keyof T]: Summary<T[Key]> }
      : T;

/** Reports of the same kind, in order of seeds; at least one. A text is taken from the first. */
export function summarize<T extends object>(reports: readonly T[]): Summary<T> {
  return summaryOf(reports) as Summary<T>;
}

function summaryOf(values: readonly unknown[]): unknown {
  const [first] = values;
  if (typeof first === 'number') return figureOf(values as readonly number[]);
  if (typeof first !== 'object' || first === null) return first;
  const keys = new Set(values.flatMap((value) => Object.keys(value as object)));
  return Object.fromEntries(
    [...keys].map((key) => {
      const own = values.map((value) => (value as Record<string, unknown>)[key]);
      return [key, summaryOf(own.filter((value) => value !== undefined))];
    }),
  );
}

/** Infinity is a figure like others, and makes the mean infinite: a recovery that never came in one run never came. */
export function figureOf(values: readonly number[]): Figure {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (!Number.isFinite(mean) || values.length < 2) return { mean, low: mean, high: mean };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const degrees = values.length - 1;
  const half = studentT(degrees) * Math.sqrt(squares / degrees / values.length);
  return { mean, low: mean - half, high: mean + half };
}

/** Of the decisions of all runs, in order of seeds. */
export function combinedHash(hashes: readonly string[]): string {
  const [only] = hashes;
  if (hashes.length === 1 && only !== undefined) return only;
  const combined = new DecisionHash();
  for (const hash of hashes)
    combined.add(hashes.length, Number.parseInt(hash.slice(0, 8), 16), Number.parseInt(hash.slice(8), 16));
  return combined.digest();
}

/** Quantiles 0.975 for 1 to 10 degrees of freedom. */
const STUDENT_T = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281];
const NORMAL = 1.959_963_985;

/** The 0.975 quantile; beyond ten degrees by the expansion of Cornish and Fisher (1937), off by less than 0.0005. */
export function studentT(degrees: number): number {
  const known = STUDENT_T[degrees - 1];
  if (known !== undefined) return known;
  const z = NORMAL;
  const first = (z ** 3 + z) / 4;
  const second = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96;
  const third = (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384;
  return z + first / degrees + second / degrees ** 2 + third / degrees ** 3;
}
