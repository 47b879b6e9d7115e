/** The scheduler's books on itself, as metrics; what they mean is in docs/concepts/ledgers.md. */
import { US_PER_S } from '../../base/units.ts';
import type { EtaError, LedgersView } from '../../core/ledgers/index.ts';
import type { BoundedNames } from './bounded-names.ts';
import { type Chunks, renderOne, renderRows, renderSummary, type Row, type SummaryRow } from './families.ts';

type ClassRow = LedgersView['refusals']['classes'][number];

export function renderLedgers(view: LedgersView, classes: BoundedNames): readonly Chunks[] {
  const { refusals, eta, work } = view;
  const byClass = (pick: (row: ClassRow) => number): readonly Row[] =>
    summed(refusals.classes, classes, pick);
  return [
    renderRows(
      'spillway_rejected_capacity_total',
      byClass((row) => row.refused),
    ),
    renderRows(
      'spillway_rejected_could_have_served_total',
      byClass((row) => row.couldHaveServed),
    ),
    renderSummary('spillway_eta_error_ratio', errorRows(eta.classes, classes)),
    renderRows('spillway_retry_hints_total', [
      { labels: ['kept'], value: eta.hints.kept },
      { labels: ['broken'], value: eta.hints.broken },
    ]),
    renderOne('spillway_useful_work_seconds_total', work.usefulUs / US_PER_S),
    renderRows(
      'spillway_wasted_work_seconds_total',
      Object.entries(work.byCause).map(([cause, workUs]) => ({ labels: [cause], value: workUs / US_PER_S })),
    ),
  ];
}

/** Classes that are configured no more share the label `other`. */
function summed(
  rows: readonly ClassRow[],
  classes: BoundedNames,
  pick: (row: ClassRow) => number,
): readonly Row[] {
  const sums = new Map<string, number>();
  for (const row of rows) {
    const label = classes.label(row.className);
    sums.set(label, (sums.get(label) ?? 0) + pick(row));
  }
  return Array.from(sums, ([label, value]) => ({ labels: [label], value }));
}

/** Of a class that is configured no more nothing is told: errors cannot be added up. */
function* errorRows(rows: LedgersView['eta']['classes'], classes: BoundedNames): Generator<SummaryRow> {
  for (const { className, admission, dispatch } of rows) {
    if (classes.label(className) !== className) continue;
    if (admission !== null) yield errorRow([className, 'admission'], admission);
    if (dispatch !== null) yield errorRow([className, 'dispatch'], dispatch);
  }
}

function errorRow(labels: readonly string[], { p50, p95, sum, samples }: EtaError): SummaryRow {
  const quantiles = [
    [0.5, p50],
    [0.95, p95],
  ] as const;
  return { labels, quantiles, sum, count: samples };
}
