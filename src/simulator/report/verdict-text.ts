/** A judged bar in words. */
import type { Verdict } from './judge.ts';

export interface VerdictCells {
  readonly state: string;
  /** Policy, and variant where there are some. */
  readonly where: string;
  readonly what: string;
  readonly found: string;
  readonly limits: string;
  readonly about: string;
}

const DIGITS = 4;

export function verdictCells({ bar, variant, value, kind }: Verdict): VerdictCells {
  const { policy, metric, of, atMost, atLeast, everySeed, about } = bar;
  const limits = [
    ...(atMost === undefined ? [] : [`at most ${atMost}`]),
    ...(atLeast === undefined ? [] : [`at least ${atLeast}`]),
  ];
  return {
    state: { held: 'ok', missed: 'MISSED', 'not-run': 'not run' }[kind],
    where: variant === '' ? policy : `${policy} in ${variant}`,
    what: of === undefined ? metric : `${metric} / ${baseText(of)}`,
    found: value === undefined ? '' : foundText(value),
    limits: `${limits.join(' and ')}${everySeed === true ? ' in every seed' : ''}`,
    about,
  };
}

function baseText({ metric, policy, variant }: NonNullable<Verdict['bar']['of']>): string {
  const where = [policy, variant].filter((part) => part !== '').join(' in ');
  if (metric === undefined) return `that of ${where}`;
  return where === '' ? metric : `${metric} of ${where}`;
}

function foundText(value: number): string {
  if (Number.isNaN(value)) return 'no such figure';
  return Number.isFinite(value) ? String(Number(value.toPrecision(DIGITS))) : 'never';
}
