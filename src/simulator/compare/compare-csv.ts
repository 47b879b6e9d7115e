/** Rows of a comparison as comma-separated values (RFC 4180), a user each, piece by piece: there may be a million. */
import type { UserRows } from '../measure/user-log.ts';
import { userComparison, type UserComparison } from './compare-users.ts';
import { type Fate, joinUsers } from './join-users.ts';

const FATE = ['outcome', 'node', 'tries', 'wait_ms', 'response_ms', 'ended_ms'];
const HEAD = [
  'variant',
  'a',
  'b',
  'user',
  'stream',
  'class',
  'tenant',
  'arrived_s',
  'work_s',
  'deadline_s',
  ...FATE.map((name) => `a_${name}`),
  ...FATE.map((name) => `b_${name}`),
  'response_difference_ms',
];
const ROWS_PER_PIECE = 5_000;

export const COMPARE_CSV_HEAD: string = `${HEAD.join(',')}\n`;

export interface NamedRows {
  readonly name: string;
  readonly rows: UserRows;
}

export function* compareCsv(variant: string, a: NamedRows, b: NamedRows): Generator<string> {
  const joined = joinUsers(a.rows, b.rows);
  const names = [variant, a.name, b.name].map(cell);
  for (let from = 0; from < joined.rowsA.length; from += ROWS_PER_PIECE) {
    const length = Math.min(ROWS_PER_PIECE, joined.rowsA.length - from);
    const lines = Array.from({ length }, (_, at) => line(names, userComparison(joined, from + at)));
    yield `${lines.join('\n')}\n`;
  }
}

function line(names: readonly string[], of: UserComparison): string {
  const { user, stream, className, tenant, arrivedSeconds, workSeconds, deadlineSeconds } = of;
  const cells = [
    ...[user, stream, className, tenant, arrivedSeconds, workSeconds, deadlineSeconds],
    ...fateCells(of.a),
    ...fateCells(of.b),
    of.responseDifferenceMs,
  ];
  return [...names, ...cells.map(cell)].join(',');
}

function fateCells({
  outcome,
  node,
  tries,
  waitMs,
  responseMs,
  endedMs,
}: Fate): readonly (string | number | null)[] {
  return [outcome, node, tries, waitMs, responseMs, endedMs];
}

function cell(value: string | number | null): string {
  // Times are whole microseconds: what is beyond is the noise of a binary fraction.
  if (typeof value === 'number') return String(Number(value.toFixed(6)));
  if (value === null) return '';
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}
