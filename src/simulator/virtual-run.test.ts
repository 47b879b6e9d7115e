import { describe, expect, test } from 'vitest';
import { nodeSpec, S, taskSpec } from '../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../core/config/defaults.ts';
import type { Outcome } from '../core/request/outcome.ts';
import type { Scheduler } from '../core/scheduler/contract.ts';
import { createScheduler } from '../core/scheduler/scheduler.ts';
import { EventQueue } from './event-queue.ts';
import { VirtualRun } from '../../test/support/virtual-run.ts';

const CONFIG = defaultSchedulerConfig();

describe('VirtualRun', () => {
  test('drains all effects before it applies the next event: those raised meanwhile wait', () => {
    const inner = createScheduler(CONFIG);
    let depth = 0;
    const guarded: Scheduler = {
      ...inner,
      apply(event, now, out) {
        depth += 1;
        if (depth > 1) throw new Error('An event was applied while effects were being performed');
        inner.apply(event, now, out);
        depth -= 1;
      },
    };
    const run = new VirtualRun(CONFIG, {}, guarded);
    run.addNode({ spec: nodeSpec('a'), speed: 1, sigma: 0 });
    run.submit(taskSpec(1));
    run.submit(taskSpec(2));
    run.apply({ kind: 'cancel', taskId: 1 });
    run.runUntil(5 * S);
    expect(guarded.accounts()).toMatchObject({ cancelled: 1, served: 1 });
  });

  test('runs nodes at their true speed, and ends at the instant it is told', () => {
    const ends: [number, Outcome['kind'], number][] = [];
    const run = new VirtualRun(CONFIG, {
      outcome: (task, outcome, now) => void ends.push([task.id, outcome.kind, now]),
    });
    run.addNode({ spec: nodeSpec('a'), speed: 0.5, sigma: 0 });
    run.submit(taskSpec(1));
    run.runUntil(3 * S);
    expect(ends).toEqual([[1, 'served', 2 * S]]);
    expect(run.now).toBe(3 * S);
    expect(run.running).toBe(0);
    expect(run.workDoneUs.get('a')).toBe(S);
  });

  test('gives equal logs for equal seeds and other ones for other seeds', () => {
    const logOf = (seed: number): readonly string[] => {
      const run = new VirtualRun(defaultSchedulerConfig({ seed }));
      run.keepsLog = true;
      for (const id of 'abcdefghijklmnop') run.addNode({ spec: nodeSpec(id), speed: 1, sigma: 0.2 });
      for (let id = 1; id <= 64; id++) run.submit(taskSpec(id, { tenant: `t${id}` }));
      run.runUntil(60 * S);
      return run.log;
    };
    expect(logOf(1)).toEqual(logOf(1));
    expect(logOf(1)).not.toEqual(logOf(2));
  });
});

describe('EventQueue', () => {
  test('gives actions in order of time, equal times in order of insertion', () => {
    const queue = new EventQueue();
    const seen: string[] = [];
    for (const [at, name] of [
      [2, 'c'],
      [1, 'a'],
      [2, 'd'],
      [1, 'b'],
    ] as const)
      queue.push(at, () => void seen.push(name));
    expect(queue.nextAt()).toBe(1);
    for (let action = queue.pop(); action !== undefined; action = queue.pop()) action();
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
    expect(queue.nextAt()).toBe(Number.POSITIVE_INFINITY);
  });
});
