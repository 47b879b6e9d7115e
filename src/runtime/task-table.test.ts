import { describe, expect, test } from 'vitest';
import { FAILURES_MAX, FINISHED_MAX, SPARE_ROWS_MAX, TaskRow, TaskTable } from './task-table.ts';
import type { TaskListener } from './contract.ts';
import { TenantUsage } from './tenant-usage.ts';

const SPEC = {
  className: 'normal',
  tenant: 't',
  model: 'm',
  receivedAt: 1_000,
  workUs: 5,
  deadlineUs: 10,
  deadlineWished: false,
  stream: false,
};

const LISTENER: TaskListener = { assigned() {}, abort() {}, finished() {} };

describe('TaskRow.renew', () => {
  test('makes a row that went through everything like a new one', () => {
    const row = new TaskRow(1, SPEC, LISTENER);
    Object.assign(row, {
      outcome: { kind: 'served' },
      verdict: { kind: 'served' },
      permit: true,
      cancelled: true,
      admittedUs: 1,
      decidedUs: 2,
      sentUs: 3,
      firstByteUs: 4,
      doneUs: 5,
      nodeId: 'n',
      attempts: 2,
      runsModel: 'small',
    });
    row.attemptFailed('reset', 1);
    row.lookedAt({ index: 0, alternative: { how: 'cache' }, verdict: 'taken', because: 'queue-full' });
    const fresh = new TaskRow(2, { ...SPEC, model: 'other' }, undefined);
    // Everything that a request may change was changed, so that what is not reset would be seen.
    for (const [name, value] of Object.entries(fresh))
      if (!(name in SPEC)) expect(Reflect.get(row, name), name).not.toEqual(value);
    row.renew(2, { ...SPEC, model: 'other' }, undefined);
    expect(row).toEqual(fresh);
  });
});

describe('TaskTable.begin', () => {
  test('takes the row that left the ring, and no id of a forgotten request finds it', () => {
    const table = new TaskTable(new TenantUsage(0));
    const refusal = { reason: 'unknown-model', tenant: 't', model: 'm', receivedAt: 0 } as const;
    const forgotten = table.noteRefused(refusal, 7);
    const row = table.find(forgotten);
    const second = table.noteRefused(refusal, 7);
    for (let i = 1; i < FINISHED_MAX; i++) table.noteRefused(refusal, 7);
    const id = table.nextId();
    expect(table.begin(id, SPEC, LISTENER)).toBe(row);
    expect(table.find(forgotten)).toBeUndefined();
    expect(table.find(second)).toMatchObject({ outcome: { kind: 'rejected' } });
    expect(table.find(table.publicId(id))).toMatchObject({ id, outcome: undefined, className: 'normal' });
  });

  test('keeps no more spare rows than its bound when a burst of live ones ends', () => {
    const table = new TaskTable(new TenantUsage(0));
    const burst = FINISHED_MAX + 2 * SPARE_ROWS_MAX;
    const rows = Array.from({ length: burst }, () => table.begin(table.nextId(), SPEC, LISTENER));
    for (const row of rows) {
      row.outcome = { kind: 'served' };
      table.retire(row);
    }
    const again = new Set(rows);
    const reused = Array.from({ length: 2 * SPARE_ROWS_MAX }, () =>
      table.begin(table.nextId(), SPEC, LISTENER),
    );
    expect(reused.filter((row) => again.has(row))).toHaveLength(SPARE_ROWS_MAX);
  });
});

describe('TaskRow.attemptFailed', () => {
  test('keeps what failed where, and the newest at the bound', () => {
    const row = new TaskRow(1, SPEC, undefined);
    expect(row.failures).toBeUndefined();
    for (let attempt = 1; attempt <= FAILURES_MAX + 2; attempt++) {
      row.nodeId = `n${attempt}`;
      row.attempts = attempt;
      row.attemptFailed('reset', attempt * 2_000);
    }
    expect(row.failures?.length).toBe(FAILURES_MAX);
    expect(row.failures?.[0]).toEqual({ nodeId: 'n1', attempt: 1, failure: 'reset', endedMs: 2 });
    expect(row.failures?.at(-1)?.attempt).toBe(FAILURES_MAX + 2);
  });
});

describe('TaskTable.publicId', () => {
  test('never begins with a hyphen, and differs from table to table', () => {
    const ids = Array.from({ length: 2_000 }, () => new TaskTable(new TenantUsage(0)).publicId(1));
    expect(ids.filter((id) => id.startsWith('-'))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('TaskTable.list', () => {
  const refusal = { reason: 'unknown-model', tenant: 't', model: 'm', receivedAt: 0 } as const;

  test('tells live ones with the oldest first and ended ones with the newest first, each up to its limit', () => {
    const table = new TaskTable(new TenantUsage(0));
    const rows = Array.from({ length: 4 }, () => table.begin(table.nextId(), SPEC, LISTENER));
    for (const row of rows.slice(2)) row.permit = true;
    for (let i = 0; i < 3; i++) table.noteRefused(refusal, 7);
    const ids = (state: 'queued' | 'running' | 'ended', limit: number): number[] =>
      table.list(state, limit).map((row) => row.id);
    expect([ids('queued', 9), ids('running', 9), ids('ended', 9)]).toEqual([
      [1, 2],
      [3, 4],
      [7, 6, 5],
    ]);
    expect([ids('queued', 1), ids('running', 1), ids('ended', 2)]).toEqual([[1], [3], [7, 6]]);
  });

  test('goes on telling the newest first when the ring of ended ones has come round', () => {
    const table = new TaskTable(new TenantUsage(0));
    for (let i = 0; i < FINISHED_MAX + 3; i++) table.noteRefused(refusal, 7);
    const last = FINISHED_MAX + 3;
    expect(table.list('ended', 4).map((row) => row.id)).toEqual([last, last - 1, last - 2, last - 3]);
    expect(table.list('ended', 2 * FINISHED_MAX)).toHaveLength(FINISHED_MAX);
  });
});

describe('TaskTable.noteRefused', () => {
  test('shares the ring of finished requests and never counts as live', () => {
    const table = new TaskTable(new TenantUsage(0));
    const refusal = { reason: 'unknown-model', tenant: 't', model: 'x'.repeat(500), receivedAt: 0 } as const;
    const first = table.noteRefused(refusal, 7);
    expect(table.find(first)).toMatchObject({
      outcome: { kind: 'rejected', reason: 'unknown-model' },
      doneUs: 7,
    });
    expect(table.find(first)?.model.length).toBe(201);
    for (let i = 1; i < FINISHED_MAX; i++) table.noteRefused(refusal, 7);
    expect(table.find(first)).toBeDefined();
    table.noteRefused(refusal, 7);
    expect(table.find(first)).toBeUndefined();
    expect([table.live, [...table.liveRows()].length]).toEqual([0, 0]);
  });
});
