/** A folder with the page of a simulation and its numbers. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportPage } from '../../simulator/report/html/page.ts';
import type { Verdict } from '../../simulator/report/judge.ts';
import type { SimulationResults } from '../../simulator/report/results.ts';
import { resultsToJson } from '../../simulator/report/to-json.ts';

export function writeReport(folder: string, results: SimulationResults, verdicts: readonly Verdict[]): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'index.html'), reportPage(results, verdicts));
  writeFileSync(
    join(folder, 'results.json'),
    `${JSON.stringify(resultsToJson(results, verdicts), undefined, 2)}\n`,
  );
}
