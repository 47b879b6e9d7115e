/**
 * Runs of experiments from a file: what `mlflow experiments csv` writes, the same as a JSON array, or a table of one's own.
 * Instants are ISO 8601 or milliseconds since 1970; columns that are not named here are not looked at.
 */
import { readFileSync } from 'node:fs';
import type { ExperimentRun } from '../../simulator/replay/overtaken.ts';
import { CliError, USAGE } from './exit.ts';

type Field = 'id' | 'submitted' | 'deadline' | 'finished' | 'tenant' | 'class' | 'model';

/** The first column that a row fills counts. */
const COLUMNS: Readonly<Record<Field, readonly string[]>> = {
  id: ['run', 'run_id', 'id'],
  submitted: ['submitted', 'start_time'],
  deadline: ['deadline', 'tags.deadline', 'params.deadline'],
  finished: ['finished', 'end_time'],
  tenant: ['tenant', 'tags.tenant', 'params.tenant'],
  class: ['class', 'tags.class', 'params.class'],
  model: ['model', 'tags.model', 'params.model'],
};
/** A quoted field with doubled quotes, or a bare one; then what ends it. */
const CSV_FIELD = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;

type Row = Readonly<Record<string, unknown>>;

export function readRuns(file: string): readonly ExperimentRun[] {
  const text = textOf(file);
  const isJson = /^\s*\[/.test(text);
  const { rows, lineOf } = isJson ? jsonRows(text, file) : csvRows(text, file);
  return rows.map((row, index) => runOf(row, `${file}:${lineOf(index)}`));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw refused(file, error instanceof Error ? error.message : String(error));
  }
}

interface Rows {
  readonly rows: readonly Row[];
  readonly lineOf: (index: number) => string;
}

function jsonRows(text: string, file: string): Rows {
  let rows: unknown;
  try {
    rows = JSON.parse(text);
  } catch (error) {
    throw refused(file, error instanceof Error ? error.message : String(error));
  }
  const isTable = Array.isArray(rows) && rows.every((row) => typeof row === 'object' && row !== null);
  if (!isTable) throw refused(file, 'expected an array of objects, one a run');
  return { rows: rows as readonly Row[], lineOf: (index) => `run ${index + 1}` };
}

function csvRows(text: string, file: string): Rows {
  const lines: { readonly at: number; readonly fields: string[] }[] = [];
  let fields: string[] = [];
  let at = 1;
  CSV_FIELD.lastIndex = 0;
  for (let line = 1; CSV_FIELD.lastIndex < text.length; ) {
    const match = CSV_FIELD.exec(text);
    if (match === null) throw refused(`${file}:${line}`, 'a quote is not closed, or stands inside a field');
    const [whole, quoted, bare = '', end] = match;
    fields.push(quoted?.replaceAll('""', '"') ?? bare);
    line += whole.split('\n').length - 1;
    if (end === ',' && CSV_FIELD.lastIndex < text.length) continue;
    if (fields.some((field) => field !== '')) lines.push({ at, fields });
    fields = [];
    at = line;
  }
  const [head, ...rest] = lines;
  if (head === undefined) throw refused(file, 'expected a table with a head');
  const rows = rest.map((row) =>
    Object.fromEntries(head.fields.map((name, i) => [name.trim(), row.fields[i]])),
  );
  return { rows, lineOf: (index) => String(rest[index]?.at) };
}

function runOf(row: Row, where: string): ExperimentRun {
  const submittedMs = instantOf(row, 'submitted', where);
  if (submittedMs === undefined)
    throw refused(where, `expected when the run was submitted (${COLUMNS.submitted.join(' or ')})`);
  const deadlineMs = instantOf(row, 'deadline', where);
  const finishedMs = instantOf(row, 'finished', where);
  const [tenant, className, model] = [valueOf(row, 'tenant'), valueOf(row, 'class'), valueOf(row, 'model')];
  return {
    id: valueOf(row, 'id') ?? where,
    submittedMs,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(finishedMs === undefined ? {} : { finishedMs }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(className === undefined ? {} : { className }),
    ...(model === undefined ? {} : { model }),
  };
}

function valueOf(row: Row, field: Field): string | undefined {
  for (const name of COLUMNS[field]) {
    const value = row[name];
    if (typeof value === 'number') return String(value);
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

function instantOf(row: Row, field: Field, where: string): number | undefined {
  const text = valueOf(row, field);
  if (text === undefined) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text);
  if (!Number.isFinite(ms))
    throw refused(where, `expected an instant (ISO 8601 or milliseconds since 1970), received ${text}`);
  return ms;
}

function refused(where: string, why: string): CliError {
  return new CliError(`Could not read the runs of ${where}: ${why}`, USAGE);
}
