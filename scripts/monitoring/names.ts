/** Whether rules and panels, as text, name only what the gateway exports: the last look, at what is written. */
import { type MetricName, METRICS, specOf } from '../../src/adapters/metrics-prometheus/catalogue.ts';

/** What Prometheus adds to all that it scrapes, and to histograms and summaries. */
const ADDED_LABELS: ReadonlySet<string> = new Set(['job', 'instance', 'le', 'quantile']);
const RECORDED = /^[a-z]+:[a-z0-9_]+:[a-z0-9_]+$/;

/** What is wrong with an expression; nothing when it is well. `recorded` are the names of recording rules. */
export function unknownNames(expression: string, recorded: ReadonlySet<string>): readonly string[] {
  const wrong: string[] = [];
  const bare = expression.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  for (const [, name = '', matchers = ''] of bare.matchAll(
    /\b([a-z][a-z0-9_:]*_[a-z0-9_:]*)(?:\{([^}]*)\})?/g,
  )) {
    if (RECORDED.test(name)) {
      if (!recorded.has(name)) wrong.push(name);
      continue;
    }
    if (FUNCTIONS.has(name)) continue;
    const metric = metricOf(name);
    if (metric === undefined) {
      wrong.push(name);
      continue;
    }
    for (const [, label = ''] of matchers.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)) {
      if (!ADDED_LABELS.has(label) && !specOf(metric).labels.includes(label)) wrong.push(`${name}{${label}}`);
    }
  }
  for (const [, labels = ''] of bare.matchAll(/\b(?:by|on|without|ignoring)\s*\(([^)]*)\)/g)) {
    for (const label of labels.split(',').map((part) => part.trim())) {
      if (label !== '' && !ADDED_LABELS.has(label) && !ALL_LABELS.has(label)) wrong.push(`by (${label})`);
    }
  }
  return wrong;
}

const FUNCTIONS: ReadonlySet<string> = new Set([
  'histogram_quantile',
  'group_left',
  'group_right',
  '__rate_interval',
]);
const ALL_LABELS: ReadonlySet<string> = new Set(Object.values(METRICS).flatMap(({ labels }) => [...labels]));

/** The metric whose series has this name. */
function metricOf(series: string): MetricName | undefined {
  if (series in METRICS) {
    const name = series as MetricName;
    return specOf(name).type === 'histogram' ? undefined : name;
  }
  const name = series.replace(/_(bucket|sum|count)$/, '');
  if (!(name in METRICS)) return undefined;
  const { type } = specOf(name as MetricName);
  const has = type === 'histogram' || (type === 'summary' && !series.endsWith('_bucket'));
  return has ? (name as MetricName) : undefined;
}
