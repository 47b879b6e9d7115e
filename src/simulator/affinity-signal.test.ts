import { expect, test } from 'vitest';
import { nodeSpec, S, taskSpec } from '../../test/support/specs.ts';
import { VirtualRun } from '../../test/support/virtual-run.ts';
import { defaultSchedulerConfig } from '../core/config/index.ts';
import { Signals } from '../core/signals/index.ts';

const TALKS = 40;
const BLOCKS = 20;

/** Four nodes that keep prompts, and forty conversations whose next turn comes every four seconds. */
function conversations(): { readonly run: VirtualRun; readonly states: Map<number, string> } {
  const run = new VirtualRun(defaultSchedulerConfig({}));
  const signals = new Signals();
  const states = new Map<number, string>();
  for (const id of ['a', 'b', 'c', 'd'])
    run.addNode({ spec: nodeSpec(id, { slots: 4, prefixBlocks: 10_000 }), speed: 1, sigma: 0 });
  let id = 0;
  const turn = (talk: number): void => {
    const blocks = Array.from({ length: BLOCKS }, (_, at) => talk * 1_000 + at);
    run.submit(
      taskSpec(++id, {
        workUs: 0.4 * S,
        deadlineAt: run.now + 30 * S,
        tenant: `t${talk}`,
        prefix: { blocks, workUsPerBlock: 15_000 },
      }),
    );
    run.at(run.now + 4 * S, () => turn(talk));
  };
  for (let talk = 0; talk < TALKS; talk++) run.at(talk * 100_000, () => turn(talk));
  const look = (): void => {
    signals.observe(run.scheduler.sample(run.now));
    const found = signals.view().detectors.find(({ signal }) => signal === 'affinity-loss');
    states.set(run.now / S, found?.state ?? 'missing');
    run.at(run.now + S, look);
  };
  run.at(S, look);
  return { run, states };
}

test('affinity-loss is found after the nodes that kept the prompts left, and those that came keep none', () => {
  const { run, states } = conversations();
  run.runUntil(200 * S);
  for (const id of ['a', 'b', 'c', 'd']) {
    run.addNode({ spec: nodeSpec(`new-${id}`, { slots: 4 }), speed: 1, sigma: 0 });
    run.apply({ kind: 'node-draining', nodeId: id, draining: true });
  }
  expect([...states.values()]).not.toContain('active');
  run.runUntil(280 * S);
  expect(states.get(280)).toBe('active');
});

test('affinity-loss is silent after a change that conversations survive', () => {
  const { run, states } = conversations();
  run.runUntil(200 * S);
  run.apply({ kind: 'node-draining', nodeId: 'd', draining: true });
  run.runUntil(300 * S);
  expect([...states.values()]).not.toContain('active');
});

test('affinity-loss is blind where no node keeps prompts', () => {
  const signals = new Signals();
  const run = new VirtualRun(defaultSchedulerConfig({}));
  signals.observe(run.scheduler.sample(S));
  expect(signals.view().detectors).toContainEqual(
    expect.objectContaining({
      signal: 'affinity-loss',
      state: 'blind',
      why: 'No node is known to keep prompts',
    }),
  );
});
