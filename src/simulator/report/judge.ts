/** Whether bars hold: the mean over seeds of the figure, or its multiple of another one's mean; or in every seed. */
import type { Bar } from '../scenario/types.ts';
import { numbersAt } from './look-up.ts';
import type { SimulationResults, VariantRuns } from './results.ts';

export interface Verdict {
  readonly bar: Bar;
  /** Where it was judged. */
  readonly variant: string;
  /** Undefined where it could not be judged. */
  readonly value: number | undefined;
  readonly kind: 'held' | 'missed' | /** A policy or variant was left out of this simulation. */ 'not-run';
}

export function judgeBars(bars: readonly Bar[], results: SimulationResults): readonly Verdict[] {
  return bars.flatMap((bar) => {
    const where = results.variants.filter(({ name }) => bar.variant === '' || bar.variant === name);
    if (where.length === 0) return [{ bar, variant: bar.variant, value: undefined, kind: 'not-run' }];
    return where.map((variant) => judge(bar, variant, results));
  });
}

function judge(bar: Bar, variant: VariantRuns, results: SimulationResults): Verdict {
  const at = { bar, variant: variant.name };
  const { of, metric } = bar;
  const own = figuresOf(variant, bar.policy, metric);
  if (own === 'not-run') return { ...at, value: undefined, kind: 'not-run' };
  if (of === undefined) return { ...at, ...judged(bar, own) };
  const other = results.variants.find(({ name }) => name === (of.variant || variant.name));
  const base = figuresOf(other, of.policy || bar.policy, of.metric ?? metric);
  if (base === 'not-run') return { ...at, value: undefined, kind: 'not-run' };
  return { ...at, ...judged(bar, own, base) };
}

/** A multiple is that of the means, or of each seed's own figures. */
function judged(
  bar: Bar,
  own: readonly number[],
  base: readonly number[] = own.map(() => 1),
): Pick<Verdict, 'value' | 'kind'> {
  const values =
    bar.everySeed === true
      ? own.map((figure, seed) => figure / (base[seed] ?? Number.NaN))
      : [mean(own) / mean(base)];
  const kind = values.length > 0 && values.every((value) => holds(bar, value)) ? 'held' : 'missed';
  return { value: worstOf(bar, values), kind };
}

/** What breaks the bar most, or else what comes closest to breaking it. */
function worstOf(bar: Bar, values: readonly number[]): number {
  if (values.length === 0) return Number.NaN;
  const broken = values.filter((value) => !holds(bar, value));
  const among = broken.length > 0 ? broken : values;
  const isLow = bar.atMost === undefined || among.some((value) => value < (bar.atLeast ?? value));
  return isLow ? Math.min(...among) : Math.max(...among);
}

/** A figure that is not there, or a part of nothing, holds no bar. */
function holds({ atMost, atLeast }: Bar, value: number): boolean {
  if (Number.isNaN(value)) return false;
  return value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY);
}

/** For each seed; none where the figure is not there. */
function figuresOf(
  variant: VariantRuns | undefined,
  policy: string,
  metric: string,
): readonly number[] | 'not-run' {
  const runs = variant?.policies.find(({ name }) => name === policy);
  return runs === undefined ? 'not-run' : (numbersAt(runs.reports, metric) ?? []);
}

/** Of nothing there is none. */
function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
