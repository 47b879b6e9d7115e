/**
 * What preemption is worth: a fleet of twenty nodes kept full by long tasks of the lowest class, and a light first class
 * whose deadline is shorter than what runs usually has left. With and without, and what was thrown away for it.
 */
import { describe, expect, test } from 'vitest';
import { nodeSpec, S, taskSpec } from '../../test/support/specs.ts';
import { createPrng } from '../base/prng.ts';
import { defaultSchedulerConfig } from '../core/config/defaults.ts';
import { VirtualRun } from '../../test/support/virtual-run.ts';

const LENGTH = 600 * S;
const NODES = 20;

interface Result {
  /** Of the first class, the part that was served in time. */
  readonly attained: number;
  /** Work of aborted attempts that had no outcome, over work that was done. */
  readonly lost: number;
  readonly preemptions: number;
  readonly lowServed: number;
}

function serve(mode: 'on' | 'off', seed: number): Result {
  const prng = createPrng(seed);
  const startedAt = new Map<number, number>();
  let [asked, attained, lostUs, doneUs, lowServed] = [0, 0, 0, 0, 0];
  const run = new VirtualRun(
    defaultSchedulerConfig({ seed, gates: { preemption: mode, ladder: 'off', timeouts: 'off' } }),
    {
      assigned(task, _node, now) {
        const before = startedAt.get(task.id);
        if (before !== undefined) lostUs += run.lastAbortAt(task.id) - before;
        startedAt.set(task.id, now);
      },
      outcome(task, outcome, now) {
        const isServed = outcome.kind === 'served';
        if (isServed) doneUs += task.workUs;
        if (outcome.kind === 'evicted' && outcome.reason === 'preempted')
          lostUs += run.lastAbortAt(task.id) - (startedAt.get(task.id) ?? now);
        if (task.className === 'critical') {
          asked += 1;
          if (isServed && now <= task.deadlineAt) attained += 1;
        } else if (isServed) lowServed += 1;
      },
    },
  );
  for (let index = 0; index < NODES; index += 1)
    run.addNode({ spec: nodeSpec(`n${index}`), speed: 1, sigma: 0.1 });
  let id = 0;
  const arrive = (className: string, everyUs: number, workUs: number, ttlUs: number): void => {
    id += 1;
    run.submit(taskSpec(id, { className, tenant: `t${id % 5}`, workUs, deadlineAt: run.now + ttlUs }));
    const gapUs = -Math.log(1 - prng.nextRatio()) * everyUs;
    if (run.now + gapUs < LENGTH)
      run.at(Math.round(run.now + gapUs), () => arrive(className, everyUs, workUs, ttlUs));
  };
  run.at(1, () => arrive('low', S / 2, 10 * S, 120 * S));
  run.at(60 * S, () => arrive('critical', 5 * S, S / 2, S));
  run.runUntil(LENGTH + 200 * S);
  const { queued, ended } = run.scheduler.preemptions();
  return { attained: attained / asked, lost: lostUs / doneUs, preemptions: queued + ended, lowServed };
}

describe('a full fleet of long tasks', () => {
  test.each([1, 2, 3])(
    'serves a light first class by preemption, and throws away at most 0.5 %%, seed %i',
    (seed) => {
      const [on, off] = [serve('on', seed), serve('off', seed)];
      expect(off.preemptions).toBe(0);
      expect(on.preemptions).toBeGreaterThan(10);
      expect(on.attained).toBeGreaterThan(off.attained + 0.1);
      expect(on.lost).toBeLessThanOrEqual(0.005);
      expect(on.lowServed).toBeGreaterThan(0.97 * off.lowServed);
    },
  );
});
