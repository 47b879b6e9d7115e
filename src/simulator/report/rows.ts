/** The figures that people compare first, as rows of text with a column for each policy. */
import type { PolicyReport } from '../measure/report.ts';
import { type Figure, figureOf } from '../parallel/statistics.ts';
import { numbersAt } from './look-up.ts';
import type { PolicyRuns, VariantRuns } from './results.ts';

export interface ReportRow {
  readonly label: string;
  /** In order of policies; '' where the policy has no such figure. */
  readonly cells: readonly string[];
}

type Sort = 'percent' | 'ms' | 'seconds' | 'number';
interface RowSpec {
  readonly label: string;
  readonly path: string;
  readonly sort: Sort;
}

export function reportRows(variant: VariantRuns): readonly ReportRow[] {
  const [first] = variant.policies;
  const report = first?.reports[0];
  if (report === undefined) return [];
  return rowSpecs(report, variant)
    .map((spec) => ({ label: spec.label, cells: variant.policies.map((runs) => cellOf(runs, spec)) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ''));
}

function rowSpecs(report: PolicyReport, { policies }: VariantRuns): readonly RowSpec[] {
  const some = (path: string): boolean =>
    policies.some(({ reports }) => numbersAt(reports, path)?.some((value) => value > 0) === true);
  const asked = (section: 'byClass' | 'byStream'): readonly string[] =>
    Object.keys(report[section]).filter((name) => some(`${section}.${name}.offered`));
  const classes = asked('byClass');
  const streams = asked('byStream');
  const groups = [
    ...groupRows('byClass', classes),
    ...(streams.length > 1 ? groupRows('byStream', streams) : []),
  ];
  const optional: readonly RowSpec[] = [
    { label: 'crashes of its process', path: 'crashes', sort: 'number' },
    { label: '… and up, until it decided', path: 'resumeSeconds', sort: 'seconds' },
    { label: 'swaps per request', path: 'swapsPerRequest', sort: 'number' },
    { label: 'prompt blocks that nodes kept', path: 'prefixes.hitRatio', sort: 'percent' },
    { label: '… of what one cache would', path: 'prefixes.hitOfShared', sort: 'percent' },
    { label: 'busiest node over the mean', path: 'prefixes.busyMaxOfMean', sort: 'number' },
    { label: 'most work of a node over the mean', path: 'prefixes.workMaxOfMean', sort: 'number' },
    { label: 'Jain fairness of tenants', path: 'jain', sort: 'number' },
    { label: 'back to normal after', path: 'recoverySeconds', sort: 'seconds' },
  ];
  return [
    ...(classes.length > 1 || streams.length > 1
      ? groups
      : [{ label: 'in time', path: 'all.attained', sort: 'percent' as const }]),
    { label: 'goodput of capacity', path: 'goodputRatio', sort: 'percent' },
    { label: 'machines busy', path: 'busyRatio', sort: 'percent' },
    ...(['waitMs', 'firstByteMs', 'responseMs'] as const).flatMap((field) => quantileRows(field)),
    ...(Object.keys(COUNTS) as (keyof typeof COUNTS)[])
      .filter((count) => some(`all.${count}`))
      .map((count): RowSpec => ({ label: COUNTS[count], path: `all.${count}`, sort: 'number' })),
    { label: 'most under way', path: 'peakOpen', sort: 'number' },
    ...optional.filter(({ path }) => some(path)),
  ];
}

const COUNTS = {
  offered: 'users',
  served: 'served',
  degraded: 'served less',
  refused: 'refused',
  failed: 'failed',
  gaveUp: 'gave up',
} as const;
const TIMES = { waitMs: 'wait', firstByteMs: 'first byte', responseMs: 'response' } as const;

function groupRows(section: 'byClass' | 'byStream', names: readonly string[]): readonly RowSpec[] {
  return names.map((name) => ({
    label: `in time: ${name}`,
    path: `${section}.${name}.attained`,
    sort: 'percent',
  }));
}

function quantileRows(field: keyof typeof TIMES): readonly RowSpec[] {
  return (['p50', 'p95', 'p99'] as const).map((quantile) => ({
    label: `${TIMES[field]} ${quantile}`,
    path: `all.${field}.${quantile}`,
    sort: 'ms',
  }));
}

function cellOf({ reports }: PolicyRuns, { path, sort }: RowSpec): string {
  const numbers = numbersAt(reports, path);
  return numbers === undefined ? '' : figureText(figureOf(numbers), sort);
}

/** `97.5 ±0.4 %`; the interval only where there are several seeds. */
export function figureText({ mean, low, high }: Figure, sort: Sort): string {
  if (!Number.isFinite(mean)) return 'never';
  const half = (high - low) / 2;
  const [scale, unit, digits] = scaleOf(mean, sort);
  const shown = half === 0 && Number.isInteger(mean * scale) ? 0 : digits;
  const text = (value: number): string =>
    (value * scale).toLocaleString('en-US', { minimumFractionDigits: shown, maximumFractionDigits: shown });
  return `${text(mean)}${half === 0 ? '' : ` ±${text(half)}`}${unit}`;
}

function scaleOf(mean: number, sort: Sort): readonly [scale: number, unit: string, digits: number] {
  switch (sort) {
    case 'percent':
      return [100, ' %', mean > 0.995 || mean < 0.01 ? 2 : 1];
    case 'ms':
      return timeScale(mean / 1_000, 1_000);
    case 'seconds':
      return timeScale(mean, 1);
    case 'number':
      return [1, '', mean >= 100 ? 0 : mean >= 10 ? 1 : 3];
  }
}

/** `perSecond`: how many of the figure's own unit a second has. */
function timeScale(seconds: number, perSecond: number): readonly [number, string, number] {
  if (seconds < 1) return [1_000 / perSecond, ' ms', 0];
  return [1 / perSecond, ' s', seconds < 10 ? 2 : seconds < 1_000 ? 1 : 0];
}
