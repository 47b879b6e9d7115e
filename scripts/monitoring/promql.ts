/**
 * PromQL from typed parts: a metric that the gateway does not export, or a label that it does not have, is an error of
 * the compiler.
 */
import type { LabelOf, MetricName } from '../../src/adapters/metrics-prometheus/catalogue.ts';

/** An operator and a quoted value: `="served"`, `=~"a|b"`. */
export type Matcher = `${'=' | '!=' | '=~' | '!~'}"${string}"`;
type Matchers<N extends MetricName> = Partial<Record<LabelOf<N> | 'quantile', Matcher>>;

export function select<N extends MetricName>(name: N, matchers: Matchers<N> = {}): string {
  const parts = Object.entries(matchers).map(([label, matcher]) => `${label}${String(matcher)}`);
  return parts.length === 0 ? name : `${name}{${parts.join(',')}}`;
}

/** Per second, over a window. */
export function rate<N extends MetricName>(name: N, window: string, matchers: Matchers<N> = {}): string {
  return `rate(${select(name, matchers)}[${window}])`;
}

export function increase<N extends MetricName>(name: N, window: string, matchers: Matchers<N> = {}): string {
  return `increase(${select(name, matchers)}[${window}])`;
}

type HistogramName = {
  readonly [N in MetricName]: N extends `${string}_seconds` ? N : never;
}[MetricName];

/** A quantile of a histogram over a window, by some of its labels. */
export function quantile<N extends HistogramName>(
  q: number,
  name: N,
  { window, by }: { readonly window: string; readonly by: readonly LabelOf<N>[] },
): string {
  const labels = ['le', ...by].join(', ');
  return `histogram_quantile(${q}, sum by (${labels}) (rate(${name}_bucket[${window}])))`;
}

export function sumBy(labels: readonly string[], expression: string): string {
  return `sum by (${labels.join(', ')}) (${expression})`;
}
