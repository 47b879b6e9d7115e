/** `spillway replay JOURNAL --overtaken`: who waited past its deadline, and who was served meanwhile. */
import {
  type Cause,
  type ExperimentRun,
  type MissedWaiting,
  overtaken,
  type RunRow,
} from '../../simulator/replay/overtaken.ts';
import type { RecordedRun } from '../../simulator/replay/recorded-run.ts';
import { duration, say, sayJson, table, terminalWidth } from './output.ts';

const CAUSES_SHOWN = 4;
const TOLD = ['REQUESTS', 'MISSED WAITING', 'WAITED', 'SERVED MEANWHILE'];

export function sayOvertaken(run: RecordedRun, runs: readonly ExperimentRun[], json: boolean): void {
  const found = overtaken(run, runs);
  if (json) return sayJson({ spanMs: run.spanUs / 1_000, wallMs: run.wallMs, ...found });
  const width = terminalWidth();
  say(`${run.requests.length} requests over ${duration(run.spanUs / 1_000)}`);
  const classes = found.classes.map((row) => [row.className, ...told(row)]);
  say(table(['CLASS', ...TOLD], classes, { width, shrinks: [4] }));
  if (runs.length > 0)
    say(`\n${table(['RUN', 'LATE BY', ...TOLD], found.runs.map(runCells), { width, shrinks: [0, 5] })}`);
  say('before: who had come before, which is an overload and no starvation. nobody: no node took the model.');
}

function runCells({ run, lateMs, ...row }: RunRow): string[] {
  return [run.id, lateMs === undefined ? 'no deadline' : duration(lateMs), ...told(row)];
}

function told({ requests, missed, waitedUs, causes }: MissedWaiting): string[] {
  return [String(requests), String(missed), duration(waitedUs / 1_000), causesText(causes)];
}

function causesText(causes: readonly Cause[]): string {
  return causes
    .slice(0, CAUSES_SHOWN)
    .map(({ cause, share }) => `${cause} ${Math.round(100 * share)} %`)
    .join(', ');
}
