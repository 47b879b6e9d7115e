/** Percentiles by nearest rank: the value is always one that was seen. 0 for none. Does not change its input. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return 0;
  return percentileOfSorted(Float64Array.from(values).sort(), share);
}

export function percentileOfSorted(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return 0;
  const rank = Math.min(sorted.length, Math.max(1, Math.ceil(share * sorted.length)));
  return sorted[rank - 1] as number;
}
