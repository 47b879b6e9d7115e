/** What detectors found in simulated runs, for the terminal: when, of whom, for how long. */
import type { SignalsReport } from '../../simulator/measure/signal-log.ts';
import type { VariantRuns } from '../../simulator/report/results.ts';
import { table } from './output.ts';

/** Findings shown of one policy; all are in `--json`. */
const ROWS_MAX = 40;

/** A text for each policy that was watched; none where nobody asked. */
export function signalsTexts({ name, policies }: VariantRuns, firstSeed: number): readonly string[] {
  return policies.flatMap(({ name: policy, signals }) => {
    if (signals === undefined) return [];
    const where = name === '' ? policy : `${policy} in ${name}`;
    const rows = signals.flatMap((report, nth) => rowsOf(report, firstSeed + nth));
    const samples = signals.reduce((sum, report) => sum + report.samples, 0);
    if (samples === 0) return [`${where}: this policy gives the detectors nothing to look at`];
    if (rows.length === 0) return [`${where}: no signal in ${samples} looks`];
    const left = rows.length > ROWS_MAX ? `\nand ${rows.length - ROWS_MAX} more; see --json` : '';
    const title = `${where}: ${rows.length} signal(s) in ${samples} looks`;
    return [`${title}\n${table(['seed', 'from', 'until', 'signal', ''], rows.slice(0, ROWS_MAX))}${left}`];
  });
}

function rowsOf({ raised }: SignalsReport, seed: number): readonly string[][] {
  return raised.map(({ signal, at, until, says }) => [
    String(seed),
    `${Math.round(at / 1e6)} s`,
    `${Math.round(until / 1e6)} s`,
    signal,
    says,
  ]);
}
