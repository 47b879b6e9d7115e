/** Nodes that keep what they computed of prompts, through the whole scheduler. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import { PREFIX_BLOCKS_MAX, type TaskPrefix, type TaskSpec } from '../request/task.ts';

const TALK: TaskPrefix = { blocks: [1, 2, 3, 4], workUsPerBlock: 0.2 * S };

function world(nodes: readonly string[]): CheckedScheduler {
  const checked = new CheckedScheduler(defaultSchedulerConfig({ health: { slowStartTasks: 0 } }));
  for (const id of nodes)
    checked.apply({ kind: 'node-registered', node: nodeSpec(id, { prefixBlocks: 100 }) });
  return checked;
}

function talk(checked: CheckedScheduler, id: number, change: Partial<TaskSpec> = {}): string | undefined {
  checked.submit(taskSpec(id, { prefix: TALK, deadlineAt: checked.now + 60 * S, ...change }));
  return checked.permits.get(id)?.nodeId;
}

function serve(checked: CheckedScheduler, id: number, timeUs: number): void {
  checked.advance(timeUs);
  checked.end(id);
}

describe('a node that keeps prompts', () => {
  test('is not taken for a faster one because of what it saves', () => {
    const checked = world(['a']);
    for (let id = 1; id <= 30; id++) {
      talk(checked, id);
      serve(checked, id, id === 1 ? S : 0.2 * S);
    }
    const { rates } = checked.scheduler.node('a', checked.now) ?? { rates: [] };
    for (const { rate } of rates) expect(rate).toBeCloseTo(1, 2);
  });

  test('is expected to be free sooner for what it saves', () => {
    const checked = world(['a']);
    talk(checked, 1);
    serve(checked, 1, S);
    talk(checked, 2);
    expect(checked.scheduler.explain(2, checked.now)?.etaMs).toBeCloseTo(200, 0);
  });

  test('meets a deadline by half of what it should save, and by no more', () => {
    // Alone it takes 1 s, where all is kept 0.2 s, and 0.6 s is what is counted on.
    const ends = [0.95, 0.55].map((deadline) => {
      const checked = world(['a']);
      talk(checked, 1);
      serve(checked, 1, S);
      return talk(checked, 2, { deadlineAt: checked.now + deadline * S }) ?? checked.outcomes.get(2)?.kind;
    });
    expect(ends).toEqual(['a', 'rejected']);
  });

  test('gets what begins otherwise like any other node', () => {
    const checked = world(['a', 'b']);
    checked.submit(taskSpec(50));
    checked.submit(taskSpec(51));
    serve(checked, 50, S);
    checked.end(51);
    const first = talk(checked, 1);
    serve(checked, 1, S);
    const others = new Set<string | undefined>();
    for (let id = 2; id <= 20; id++) {
      others.add(talk(checked, id, { prefix: { blocks: [id * 100], workUsPerBlock: 0.9 * S } }));
      serve(checked, id, S);
    }
    expect(others).toEqual(new Set(['a', 'b']));
    expect(talk(checked, 21)).toBe(first);
  });

  test('gets a prompt although it is slower, where others would stand still for it', () => {
    const sentTo = [0, 1].map((beside) => {
      const checked = world([]);
      for (const [id, rate] of [
        ['slow', 0.75],
        ['fast', 1],
      ] as const) {
        const memory = { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0 };
        const node = nodeSpec(id, { slots: 4, prefixBlocks: 100, models: [{ model: 'm' }, { model: id }] });
        const rates = [{ model: '', rate, observations: 50 }];
        checked.apply({ kind: 'node-registered', node, memory: { ...memory, rates } });
        // Proven: what is new takes one task at a time.
        for (let warm = 1; warm <= 4; warm++) {
          const taskId = warm + (id === 'slow' ? 1_000 : 2_000);
          checked.submit(taskSpec(taskId, { model: id, deadlineAt: checked.now + 60 * S }));
          serve(checked, taskId, S / rate);
        }
      }
      const begins = { blocks: [1], workUsPerBlock: 0.2 * S };
      talk(checked, 1, { model: 'slow', prefix: begins });
      serve(checked, 1, S / 0.75);
      for (let at = 0; at < beside; at++) {
        checked.submit(taskSpec(100 + at, { model: 'slow', deadlineAt: checked.now + 60 * S }));
        checked.submit(taskSpec(200 + at, { model: 'fast', deadlineAt: checked.now + 60 * S }));
      }
      return talk(checked, 2, { prefix: begins });
    });
    expect(sentTo).toEqual(['fast', 'slow']);
  });

  test('is forgotten when it leaves, and believed to keep what its new statement says', () => {
    const checked = world(['a', 'b']);
    const first = talk(checked, 1) as string;
    serve(checked, 1, S);
    checked.apply({ kind: 'node-removed', nodeId: first });
    checked.apply({ kind: 'node-registered', node: nodeSpec(first, { prefixBlocks: 100 }) });
    const other = first === 'a' ? 'b' : 'a';
    checked.apply({ kind: 'node-registered', node: nodeSpec(other, { prefixBlocks: 0 }) });
    const counts = new Map<string | undefined, number>();
    for (let id = 2; id <= 3; id++) {
      const nodeId = talk(checked, id);
      counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
    }
    expect(counts.get(first)).toBe(1);
  });
});

describe('Scheduler.keepsPrompts', () => {
  test('is about the nodes of the model, as they last said', () => {
    const checked = world(['a']);
    const tell = (id: string, prefixBlocks: number, model = 'm'): void =>
      checked.apply({ kind: 'node-registered', node: nodeSpec(id, { prefixBlocks, models: [{ model }] }) });
    const keeps = (): readonly boolean[] => ['m', 'n'].map((model) => checked.scheduler.keepsPrompts(model));
    expect(keeps()).toEqual([true, false]);
    // Others of both models, which keep none: the models stay, whatever becomes of the first node.
    tell('b', 0);
    tell('c', 0, 'n');
    expect(keeps()).toEqual([true, false]);
    tell('a', 0);
    expect(keeps()).toEqual([false, false]);
    tell('a', 8);
    expect(keeps()).toEqual([true, false]);
    tell('a', 8, 'n');
    expect(keeps()).toEqual([false, true]);
    checked.apply({ kind: 'node-removed', nodeId: 'a' });
    expect(keeps()).toEqual([false, false]);
  });
});

describe('a task of more blocks than are considered', () => {
  test('is taken by its beginning, and a saving that is no number saves nothing', () => {
    const checked = world(['a']);
    const blocks = Array.from({ length: 2 * PREFIX_BLOCKS_MAX }, (_, at) => at);
    talk(checked, 1, { prefix: { blocks, workUsPerBlock: Number.NaN } });
    serve(checked, 1, S);
    talk(checked, 2, { prefix: { blocks, workUsPerBlock: Number.NaN } });
    expect(checked.scheduler.explain(2, checked.now)?.etaMs).toBeCloseTo(1_000, 0);
  });
});
