/** The few statistics that several detectors share. */

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
