/** Whether bars hold: the mean over seeds of the figure, or its multiple of another one's mean. */
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
  const own = meanOf(variant, bar.policy, bar.metric);
  if (own === 'not-run') return { ...at, value: undefined, kind: 'not-run' };
  const { of } = bar;
  const other = results.variants.find(({ name }) => name === (of?.variant || variant.name));
  const base = of === undefined ? 1 : meanOf(other, of.policy || bar.policy, bar.metric);
  if (base === 'not-run') return { ...at, value: undefined, kind: 'not-run' };
  const value = own === undefined || base === undefined ? Number.NaN : own / base;
  return { ...at, value, kind: holds(bar, value) ? 'held' : 'missed' };
}

/** A figure that is not there, or a part of nothing, holds no bar. */
function holds({ atMost, atLeast }: Bar, value: number): boolean {
  if (Number.isNaN(value)) return false;
  return value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY);
}

function meanOf(
  variant: VariantRuns | undefined,
  policy: string,
  metric: string,
): number | undefined | 'not-run' {
  const runs = variant?.policies.find(({ name }) => name === policy);
  if (runs === undefined) return 'not-run';
  const numbers = numbersAt(runs.reports, metric);
  return numbers === undefined ? undefined : numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}
