import { describe, expect, test } from 'vitest';
import { FAILURES_MAX, FINISHED_MAX, TaskRow, TaskTable } from './task-table.ts';
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
