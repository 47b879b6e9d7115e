/** `compare.csv` in a folder: every user of every variant under the first policy and each other one. */
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMPARE_CSV_HEAD, compareCsv } from '../../simulator/compare/compare-csv.ts';
import { namedRows } from '../../simulator/compare/report.ts';
import type { SimulationResults } from '../../simulator/report/results.ts';

export function writeCompare(folder: string, { variants }: SimulationResults): void {
  mkdirSync(folder, { recursive: true });
  const file = openSync(join(folder, 'compare.csv'), 'w');
  try {
    writeFileSync(file, COMPARE_CSV_HEAD);
    for (const { name, policies } of variants) {
      const [first, ...others] = namedRows(policies);
      if (first === undefined) continue;
      for (const other of others)
        for (const piece of compareCsv(name, first, other)) writeFileSync(file, piece);
    }
  } finally {
    closeSync(file);
  }
}
