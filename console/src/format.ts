/** Quantities in words, as short as they can be read. */

export function span(ms: number): string {
  const whole = Math.max(0, ms);
  if (whole < 1_000) return `${Math.round(whole)} ms`;
  if (whole < 120_000) return `${(whole / 1_000).toFixed(1)} s`;
  return whole < 7_200_000 ? `${(whole / 60_000).toFixed(1)} min` : `${(whole / 3_600_000).toFixed(1)} h`;
}

export function perSecond(rate: number): string {
  return `${rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString('en')}/s`;
}

export function count(number: number): string {
  return Math.round(number).toLocaleString('en');
}

/** The time of day, to the second. */
export function clock(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}

export function moment(at: number): string {
  return new Date(at).toLocaleString('en-GB');
}

/** A value of the configuration as it would be written. */
export function valueText(value: unknown): string {
  return value === undefined ? '(absent)' : JSON.stringify(value);
}
