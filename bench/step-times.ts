/**
 * How well does the simulator's model of a text engine's step predict measurements that it was not fitted to?
 *
 *   node bench/step-times.ts --table FILE.csv [--json]
 *
 * The table is `data/perf_model.csv` of Mutinifni/splitwise-sim (MIT): times of prompts and of tokens, measured on A100 and H100
 * with Llama-2-70B and BLOOM-176B. Points (prompt, batch) of each group (model, hardware, cards) are sorted; every third one is
 * held out, the model is fitted to the others, and this is done three times, so that every point is held out once. Printed are
 * the mean absolute relative errors over the rows held out, and over all rows for the entries of the hardware catalogue.
 * The bar is 10 % for both times. Exits with 1 when it is missed; without the table it says so and exits with 0.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { catalogueEntry } from '../src/hardware/catalogue.ts';
import { prefillMs, promptMs, type TextModel } from '../src/hardware/service-time.ts';
import { fitDecode, fitPrompt, meanError, pointsOf, tokenMs, tokensOf } from './step-times/step-model.ts';
import { type Group, type Measurement, parseTable } from './step-times/table.ts';

const BAR = 0.1;
const FOLDS = 3;
const CATALOGUED: Readonly<Record<string, readonly string[]>> = {
  'a100-80gb': ['A100-80', 'A100-40'],
  'h100-80gb': ['H100'],
};

interface Errors {
  readonly token: number;
  readonly prompt: number;
}

interface GroupResult extends Errors {
  readonly group: string;
  readonly rows: number;
}

/** Each row is predicted by the model that did not see its point. */
function heldOut({ rows }: Group): { readonly rows: number } & Errors {
  const keyOf = (row: Measurement): string => `${row.promptTokens} ${row.batch}`;
  const points = [...new Map(rows.map((row) => [keyOf(row), row])).values()]
    .sort((a, b) => a.promptTokens - b.promptTokens || a.batch - b.batch)
    .map(keyOf);
  const errors = { token: 0, prompt: 0 };
  for (let fold = 0; fold < FOLDS; fold++) {
    const isHeld = (row: Measurement): boolean => points.indexOf(keyOf(row)) % FOLDS === fold;
    const seen = pointsOf(rows.filter((row) => !isHeld(row)));
    const held = rows.filter(isHeld);
    const decode = fitDecode(seen);
    const prompt = fitPrompt(seen);
    errors.token +=
      held.length *
      meanError(
        held,
        (row) => tokenMs(decode, row),
        (row) => row.tokenMs,
      );
    errors.prompt +=
      held.length *
      meanError(
        held,
        (row) => promptMs(prompt, tokensOf(row)),
        (row) => row.promptMs,
      );
  }
  return { rows: rows.length, token: errors.token / rows.length, prompt: errors.prompt / rows.length };
}

interface Entry extends Errors {
  readonly name: string;
  readonly derivation: string;
}

/** The entries that stand for this group's hardware: none but for the model and the cards that they are of. */
function catalogued({ model, hardware, cards, rows }: Group): readonly Entry[] {
  if (model !== 'llama2-70b' || cards !== 4) return [];
  return (CATALOGUED[hardware] ?? []).flatMap((name) => {
    const entry = catalogueEntry(name)?.textLarge;
    return entry === undefined
      ? []
      : [{ name, derivation: entry.derivation, ...errorsOf(entry.model, rows) }];
  });
}

function errorsOf(model: TextModel, rows: readonly Measurement[]): Errors {
  return {
    token: meanError(
      rows,
      (row) => tokenMs(model, row),
      (row) => row.tokenMs,
    ),
    prompt: meanError(
      rows,
      (row) => model.stepMs + prefillMs(model, tokensOf(row)),
      (row) => row.promptMs,
    ),
  };
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)} %`.padStart(7);
}

function main(): void {
  const { values } = parseArgs({
    options: { table: { type: 'string' }, json: { type: 'boolean', default: false } },
  });
  if (values.table === undefined || !existsSync(values.table)) {
    process.stdout.write(
      'SKIPPED: step times were not validated. Give --table FILE with data/perf_model.csv of Mutinifni/splitwise-sim (MIT)\n',
    );
    return;
  }
  const bytes = readFileSync(values.table);
  const { groups, inconsistent } = parseTable(bytes.toString('utf8'));
  const results = groups.map((group): GroupResult => {
    return { group: `${group.model} ${group.hardware} x${group.cards}`, ...heldOut(group) };
  });
  const rows = results.reduce((sum, result) => sum + result.rows, 0);
  const over = (kind: keyof Errors): number =>
    results.reduce((sum, result) => sum + result.rows * result[kind], 0) / rows;
  const total = { rows, token: over('token'), prompt: over('prompt') };
  const entries = groups.flatMap(catalogued);
  const fits = groups
    .filter((group) => catalogued(group).length > 0)
    .map((group) => ({
      hardware: group.hardware,
      ...fitDecode(pointsOf(group.rows)),
      prompt: fitPrompt(pointsOf(group.rows)),
    }));
  const source = {
    source: 'Mutinifni/splitwise-sim, data/perf_model.csv (MIT)',
    sha256: createHash('sha256').update(bytes).digest('hex'),
    inconsistentRowsLeftOut: inconsistent,
  };
  if (values.json)
    process.stdout.write(
      `${JSON.stringify({ ...source, bar: BAR, total, groups: results, catalogue: entries, fits })}\n`,
    );
  else print({ source, total, results, entries, fits });
  process.exitCode = Math.max(total.token, total.prompt) <= BAR ? 0 : 1;
}

function print(report: {
  readonly source: {
    readonly source: string;
    readonly sha256: string;
    readonly inconsistentRowsLeftOut: number;
  };
  readonly total: { readonly rows: number } & Errors;
  readonly results: readonly GroupResult[];
  readonly entries: readonly Entry[];
  readonly fits: readonly unknown[];
}): void {
  const { source, total } = report;
  const lines = [
    `${source.source}, sha256 ${source.sha256}`,
    `${total.rows} rows; ${source.inconsistentRowsLeftOut} left out, whose whole took half as long again as their parts`,
    'mean absolute relative error of rows held out   token   prompt',
    ...report.results.map(
      ({ group, token, prompt }) => `  ${group.padEnd(44)} ${percent(token)} ${percent(prompt)}`,
    ),
    `  ${'all'.padEnd(44)} ${percent(total.token)} ${percent(total.prompt)}   bar ${percent(BAR).trim()}`,
    'the catalogue, over all rows of Llama-2-70B over four cards',
    ...report.entries.map(
      ({ name, derivation, token, prompt }) =>
        `  ${`${name} (${derivation})`.padEnd(44)} ${percent(token)} ${percent(prompt)}`,
    ),
    'fits over all rows',
    ...report.fits.map((fit) => `  ${JSON.stringify(fit)}`),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

main();
