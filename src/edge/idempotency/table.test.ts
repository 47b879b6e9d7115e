import { describe, expect, test } from 'vitest';
import { ENTRY_BYTES, IdempotencyTable, type TableLimits } from './table.ts';

const S = 1_000_000;
const HASH = Buffer.alloc(32, 1);
const OTHER = Buffer.alloc(32, 2);

function tableOf(limits: Partial<TableLimits> = {}): IdempotencyTable<string, string> {
  const all = { entriesMax: 3, bytesTotalMax: 100 * ENTRY_BYTES, ttlMs: 10_000, ...limits };
  return new IdempotencyTable<string, string>(() => all);
}

/** Takes a key and gives it an answer at once. */
function answer(table: IdempotencyTable<string, string>, name: string, now: number, bytes = 0): void {
  const entry = table.take(name, HASH, 'runs');
  if (entry === undefined) throw new Error('There was no room');
  table.grow(entry, bytes);
  table.finish(entry, `answer of ${name}`, now);
}

describe('IdempotencyTable', () => {
  test('tells a free key, one that runs, one that was answered, and one of another request', () => {
    const table = tableOf();
    expect(table.look('a', HASH, 0)).toEqual({ kind: 'free' });
    const entry = table.take('a', HASH, 'runs');
    expect(table.look('a', HASH, 0)).toEqual({ kind: 'running', running: 'runs' });
    expect(table.look('a', OTHER, 0)).toEqual({ kind: 'mismatch' });
    if (entry !== undefined) table.finish(entry, 'answer', 0);
    expect(table.look('a', HASH, 0)).toEqual({ kind: 'stored', stored: 'answer' });
    expect(table.look('a', OTHER, 0)).toEqual({ kind: 'mismatch' });
  });

  test('forgets an answer after its time, counted from its end', () => {
    const table = tableOf();
    const entry = table.take('a', HASH, 'runs');
    expect(table.look('a', HASH, 60 * S), 'what runs does not expire').toMatchObject({ kind: 'running' });
    if (entry !== undefined) table.finish(entry, 'answer', 60 * S);
    expect(table.look('a', HASH, 70 * S - 1)).toMatchObject({ kind: 'stored' });
    expect(table.look('a', OTHER, 70 * S)).toEqual({ kind: 'free' });
    expect({ size: table.size, bytes: table.bytes }).toEqual({ size: 0, bytes: 0 });
  });

  test('frees a dropped key once, and not the one that was taken after it', () => {
    const table = tableOf();
    const first = table.take('a', HASH, 'first');
    if (first === undefined) throw new Error('There was no room');
    table.drop(first);
    table.take('a', HASH, 'second');
    table.drop(first);
    table.finish(first, 'late', 0);
    expect(table.look('a', HASH, 0)).toEqual({ kind: 'running', running: 'second' });
    expect(table.bytes).toBe(ENTRY_BYTES);
  });
});

describe('at its bounds IdempotencyTable', () => {
  test('of keys forgets the oldest answer, and refuses where all run', () => {
    const table = tableOf();
    answer(table, 'old', 0);
    answer(table, 'new', 1);
    table.take('runs', HASH, 'runs');
    table.take('also runs', HASH, 'runs');
    expect(table.look('old', HASH, 1)).toEqual({ kind: 'free' });
    expect(table.look('new', HASH, 1)).toMatchObject({ kind: 'stored' });
    table.take('runs too', HASH, 'runs');
    expect(table.take('one more', HASH, 'runs'), 'nothing that runs is pushed out').toBeUndefined();
    expect(table.size).toBe(3);
  });

  test('of bytes forgets the oldest answers, and refuses what does not fit then', () => {
    const table = tableOf({ bytesTotalMax: 5 * ENTRY_BYTES });
    answer(table, 'old', 0, ENTRY_BYTES);
    const entry = table.take('runs', HASH, 'runs');
    if (entry === undefined) throw new Error('There was no room');
    expect(table.grow(entry, 3 * ENTRY_BYTES)).toBe(true);
    expect(table.look('old', HASH, 0)).toEqual({ kind: 'free' });
    expect(table.grow(entry, ENTRY_BYTES + 1)).toBe(false);
    expect(table.bytes).toBe(4 * ENTRY_BYTES);
    table.drop(entry);
    expect(table.bytes).toBe(0);
  });
});
