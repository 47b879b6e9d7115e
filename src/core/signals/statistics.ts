/** The few statistics that several detectors share. */

/** The middle one, or the mean of the two in the middle; 0 of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return 0;
  if (sorted.length % 2 === 1) return sorted[middle] as number;
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/**
 * How far a value lies from the middle of its peers, in units of their own spread: 0.6745 (x - median) / MAD, which is a
 * standard score where they are normal (Iglewicz and Hoaglin 1993). The spread is taken as at least `spreadMin`: peers that
 * are equal by chance make nobody an outlier.
 */
export function robustZ(value: number, peers: readonly number[], spreadMin: number): number {
  const middle = median(peers);
  const mad = median(peers.map((peer) => Math.abs(peer - middle)));
  return (value - middle) / Math.max(spreadMin, mad / 0.6745);
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** The interval in which a share lies with 95 % confidence, by Wilson (1927); right also near 0 and 1. */
export function wilson(hits: number, count: number, z = 1.96): Interval {
  if (count === 0) return { low: 0, high: 1 };
  const share = hits / count;
  const z2 = z * z;
  const middle = (share + z2 / (2 * count)) / (1 + z2 / count);
  const half = (z / (1 + z2 / count)) * Math.sqrt((share * (1 - share)) / count + z2 / (4 * count * count));
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

/**
 * Probability of at least so many hits in `count` independent trials, each of them one with probability `share`: the upper tail
 * of the binomial distribution, exactly (no normal approximation, which is far off where few hits are expected). O(√count).
 */
export function chanceOfAtLeast(hits: number, count: number, share: number): number {
  if (hits <= count * share) return 1;
  if (share <= 0) return 0;
  const odds = share / (1 - share);
  const logCombinations = logFactorial(count) - logFactorial(hits) - logFactorial(count - hits);
  let term = Math.exp(logCombinations + hits * Math.log(share) + (count - hits) * Math.log(1 - share));
  let sum = 0;
  // Above the mean each is less than the one before.
  for (let at = hits; at <= count && term > sum * 1e-9; at++) {
    sum += term;
    term *= ((count - at) / (at + 1)) * odds;
  }
  return Math.min(1, sum);
}

/** By Stirling's series; below 16 exactly. The error is under 1e-9. */
function logFactorial(n: number): number {
  if (n >= 16)
    return (n + 0.5) * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * n) - 1 / (360 * n ** 3);
  let sum = 0;
  for (let at = 2; at <= n; at++) sum += Math.log(at);
  return sum;
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Of a sample of values; 0 of fewer than two. */
export function deviation(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const middle = mean(values);
  const sum = values.reduce((total, value) => total + (value - middle) ** 2, 0);
  return Math.sqrt(sum / (values.length - 1));
}

/** Rounded for people: three digits that matter. */
export function told(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(3)) : 0;
}

export function percent(ratio: number): string {
  return `${told(ratio * 100)} %`;
}

export function seconds(us: number): number {
  return told(us / 1_000_000);
}

/** How evenly an amount is spread over its holders: 1 where evenly, 0 where one has all, there is one only, or nothing at all. */
export function normalizedEntropy(amounts: readonly number[]): number {
  const total = amounts.reduce((sum, amount) => sum + amount, 0);
  if (amounts.length < 2 || total <= 0) return 0;
  return Math.min(1, entropyBits(amounts) / Math.log2(amounts.length));
}

/** Shannon's entropy of an amount over its holders, in bits: 2 to its power is over how many it is spread. */
export function entropyBits(amounts: readonly number[]): number {
  const total = amounts.reduce((sum, amount) => sum + amount, 0);
  let entropy = 0;
  for (const amount of amounts) if (amount > 0) entropy -= (amount / total) * Math.log2(amount / total);
  return entropy;
}
