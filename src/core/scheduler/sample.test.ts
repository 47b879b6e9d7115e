import { describe, expect, test } from 'vitest';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/index.ts';
import { TENANT_ROWS_MAX, WAITING_ROWS_MAX, WATCHED_NODES_MAX } from '../signals/index.ts';
import type { Scheduler } from './contract.ts';
import { SILENT_SINK } from './effects.ts';
import { createScheduler } from './index.ts';

const OFF = { ...defaultSchedulerConfig({}).gates, 'flow-wait': 'off', ladder: 'off' } as const;

function started(nodes: number, models: readonly string[] = ['m']): Scheduler {
  const scheduler = createScheduler(defaultSchedulerConfig({ gates: OFF }));
  for (let at = 0; at < nodes; at++) {
    const node = nodeSpec(`n${at}`, { models: models.map((model) => ({ model })) });
    scheduler.apply({ kind: 'node-registered', node }, 0, SILENT_SINK);
  }
  return scheduler;
}

describe('a sample', () => {
  test(`has rows of ${WATCHED_NODES_MAX} nodes, and sums over all`, () => {
    const sample = started(WATCHED_NODES_MAX + 50).sample(S);
    expect(sample.nodes).toHaveLength(WATCHED_NODES_MAX);
    expect(sample.nodesTotal).toBe(WATCHED_NODES_MAX + 50);
    expect(sample.openNodes).toBe(WATCHED_NODES_MAX + 50);
    expect(sample.slots).toBe(WATCHED_NODES_MAX + 50);
  });

  test(`has ${WAITING_ROWS_MAX} lines of those that wait longest, and ${TENANT_ROWS_MAX} tenants`, () => {
    const models = Array.from({ length: 60 }, (_, at) => `m${at}`);
    const scheduler = started(1, models);
    for (const [at, model] of models.entries()) {
      const task = taskSpec(at + 1, { model, tenant: `t${at}`, deadlineAt: 600 * S });
      scheduler.apply({ kind: 'submit', task }, at * 1_000, SILENT_SINK);
    }
    const { waiting, tenants } = scheduler.sample(2 * S);
    expect(waiting).toHaveLength(WAITING_ROWS_MAX);
    // The first one runs.
    expect(waiting[0]?.model).toBe('m1');
    expect(waiting.map(({ oldestWaitUs }) => oldestWaitUs)).toEqual(
      waiting.map(({ oldestWaitUs }) => oldestWaitUs).toSorted((a, b) => b - a),
    );
    expect(tenants).toHaveLength(TENANT_ROWS_MAX);
  });

  test('counts who is inside until outcome and permit are back, and for how long', () => {
    const scheduler = started(1);
    scheduler.apply({ kind: 'submit', task: taskSpec(1) }, 0, SILENT_SINK);
    scheduler.apply({ kind: 'submit', task: taskSpec(2) }, S, SILENT_SINK);
    expect(scheduler.sample(2 * S)).toMatchObject({ inside: 2, insideUs: 3 * S, left: 0, permits: 1 });
    scheduler.apply({ kind: 'cancel', taskId: 1 }, 2 * S, SILENT_SINK);
    // Its node still has it.
    expect(scheduler.sample(3 * S)).toMatchObject({ inside: 2, insideUs: 5 * S, left: 0 });
    scheduler.apply({ kind: 'attempt-ended', taskId: 1, result: { kind: 'aborted' } }, 3 * S, SILENT_SINK);
    expect(scheduler.sample(4 * S)).toMatchObject({ inside: 1, insideUs: 6 * S, left: 1, stayedUs: 3 * S });
    expect(scheduler.sample(4 * S).classes.find(({ name }) => name === 'normal')).toMatchObject({
      arrived: 2,
      dispatched: 2,
      waitS: 2,
      running: 1,
      cancelled: 1,
    });
  });

  test('tells how long the stages of workflows waited and ran, and which asked for which', () => {
    const scheduler = started(1);
    const stages = [
      { name: 'plan', parent: '' },
      { name: 'draw', parent: 'plan' },
      { name: 'never', parent: 'plan' },
    ];
    for (const [at, stage] of stages.entries())
      scheduler.apply({ kind: 'submit', task: taskSpec(at + 1, { stage }) }, 0, SILENT_SINK);
    expect(scheduler.sample(S).stages).toBeUndefined();
    const result = { kind: 'ok' } as const;
    scheduler.apply({ kind: 'attempt-ended', taskId: 1, result }, 2 * S, SILENT_SINK);
    scheduler.apply({ kind: 'cancel', taskId: 3 }, 3 * S, SILENT_SINK);
    scheduler.apply({ kind: 'attempt-ended', taskId: 2, result }, 5 * S, SILENT_SINK);
    expect(scheduler.sample(6 * S).stages).toMatchObject({
      stages: [
        { name: 'plan', ended: 1, waitS: 0, execS: 2 },
        { name: 'never', ended: 1, waitS: 3, execS: 0 },
        { name: 'draw', ended: 1, waitS: 2, execS: 3 },
      ],
      edges: [
        { parent: 'plan', name: 'never', ended: 1 },
        { parent: 'plan', name: 'draw', ended: 1 },
      ],
    });
  });

  test('tells who could have served what waits, and why it does not', () => {
    const scheduler = started(2);
    for (const nodeId of ['n0', 'n1'])
      scheduler.apply({ kind: 'node-reading', nodeId, reading: { waiting: 1 } }, 0, SILENT_SINK);
    scheduler.apply({ kind: 'submit', task: taskSpec(1) }, 0, SILENT_SINK);
    const [row] = scheduler.sample(3 * S).waiting;
    expect(row).toMatchObject({
      className: 'normal',
      depth: 1,
      oldestWaitUs: 3 * S,
      idle: { reasons: ['reading-full'], nodes: 2 },
    });
  });
});
