import { describe, expect, test } from 'vitest';
import { JournalWorld } from '../../../test/support/journal-world.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../../core/config/index.ts';
import { readRun, type RecordedRun } from './recorded-run.ts';
import { whatIf, type WhatIfRow } from './what-if.ts';

/** One second on each node, whatever is estimated; a task comes every `everyMs`, in turn of two classes. */
function recorded(everyMs: number): JournalWorld {
  const world = new JournalWorld(defaultSchedulerConfig({ admission: { flowWaitMsMax: 60_000 } }));
  for (const id of ['n0', 'n1']) world.apply({ kind: 'node-registered', node: nodeSpec(id) });
  let id = 0;
  for (let atMs = 0; atMs < 60_000; atMs += 100) {
    if (atMs % everyMs === 0 && atMs < 30_000) {
      id += 1;
      const className = id % 2 === 0 ? 'critical' : 'normal';
      world.submit(taskSpec(id, { className, deadlineAt: world.now + 8 * S }));
      if (id === 3) world.apply({ kind: 'cancel', taskId: id });
    }
    world.advance(100 * MS);
    for (const [taskId, permit] of [...world.permits]) {
      if (permit.isAborted) world.end(taskId, { kind: 'aborted' });
      else if (world.now - permit.takenAt >= S) world.end(taskId);
    }
  }
  return world;
}

const totals = (rows: readonly WhatIfRow[], policy: string): Record<string, number> => {
  const own = rows.filter((row) => row.policy === policy);
  const sum = (pick: (row: WhatIfRow) => number): number => own.reduce((total, row) => total + pick(row), 0);
  return {
    requests: sum((row) => row.requests),
    answered: sum((row) => row.answered),
    inTime: sum((row) => row.inTime),
    cancelled: sum((row) => row.cancelled),
  };
};

describe('whatIf', () => {
  test('comes to what was recorded under the recorded policy, and to something else under another', async () => {
    const run = (await readRun(recorded(200).lines())) as RecordedRun;
    const rows = whatIf(run, ['spillway', 'round-robin']);
    const own = totals(rows, 'recorded');
    const simulated = totals(rows, 'spillway');
    expect(own['requests']).toBe(150);
    expect(own['cancelled']).toBe(1);
    expect(simulated['requests']).toBe(150);
    expect(simulated['cancelled']).toBe(1);
    // The test's clock looks every tenth of a second; what differs is within a few requests.
    expect(Math.abs((simulated['inTime'] ?? 0) - (own['inTime'] ?? 0))).toBeLessThanOrEqual(4);
    expect(totals(rows, 'round-robin')['inTime']).toBeLessThan((simulated['inTime'] ?? 0) - 4);
  });

  test('gives a request on a node where it never ran its work at the rate that was learned there', async () => {
    const run = (await readRun(recorded(2_000).lines())) as RecordedRun;
    expect(run.nodes.map(({ spec, inflightMax }) => [spec.id, inflightMax])).toEqual([
      ['n0', 1],
      ['n1', 0],
    ]);
    for (const { rates } of run.nodes) expect([...rates.values()][0] ?? 1).toBeCloseTo(1, 0);
    const rows = whatIf({ ...run, services: new Map() }, ['round-robin']);
    const second = rows.findLast(({ policy }) => policy === 'round-robin');
    expect(second?.responseMs.p50).toBeGreaterThan(800);
    expect(second?.responseMs.p50).toBeLessThan(1_300);
  });

  test('cannot begin in the middle', async () => {
    const lines = recorded(10_000).lines();
    const head = lines[0]?.text.replace('"segment":1', '"segment":2') ?? '';
    expect(await readRun([{ ...(lines[0] as (typeof lines)[number]), text: head }, ...lines.slice(1)])).toBe(
      undefined,
    );
  });
});
