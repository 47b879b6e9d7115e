/**
 * Nodes that state no slots, with a true knee at 1, 4 and 16 tasks at once, beyond which they do a tenth less in all at
 * twice the knee: what the learned limit settles at, and what it serves against every fixed limit.
 */
import { describe, expect, test } from 'vitest';
import { nodeSpec, S, taskSpec } from '../../test/support/specs.ts';
import { createPrng } from '../base/prng.ts';
import { defaultSchedulerConfig } from '../core/config/defaults.ts';
import { VirtualRun } from '../../test/support/virtual-run.ts';

const LENGTH = 900 * S;

interface Setting {
  readonly knee: number;
  /** 0 for a learned limit. */
  readonly slots: number;
  readonly seed: number;
  /** Of what the node can do, by the part of the run that is over. */
  readonly load?: (part: number) => number;
  readonly speed?: (part: number) => number;
}

interface Result {
  /** Work served in time in the second half, over what the node can do. */
  readonly goodput: number;
  /** The limit every ten seconds. */
  readonly limits: readonly number[];
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

function part(limits: readonly number[], from: number, to: number): readonly number[] {
  return limits.slice(Math.round(from * limits.length), Math.round(to * limits.length));
}

function serve({ knee, slots, seed, load = () => 1.5, speed = () => 1 }: Setting): Result {
  const prng = createPrng(seed);
  let doneUs = 0;
  const run = new VirtualRun(defaultSchedulerConfig({ seed, gates: { ladder: 'off' } }), {
    outcome: (task, outcome, now) => {
      if (outcome.kind === 'served' && now > LENGTH / 2) doneUs += task.workUs;
    },
  });
  run.addNode({ spec: nodeSpec('opaque', { slots }), speed: 1, sigma: 0.3, knee, crowdLoss: 0.1 });
  let id = 0;
  const arrive = (): void => {
    id += 1;
    const workUs = Math.round((S / 3) * Math.exp(0.8 * (prng.nextRatio() * 4 - 2)));
    run.submit(taskSpec(id, { tenant: `t${id % 7}`, workUs, deadlineAt: run.now + 30 * S }));
    const gapUs = (-Math.log(1 - prng.nextRatio()) * S) / 2 / (knee * load(run.now / LENGTH));
    if (run.now + gapUs < LENGTH) run.at(Math.round(run.now + gapUs), arrive);
  };
  run.at(1, arrive);
  const limits: number[] = [];
  for (let at = 10 * S; at < LENGTH; at += 10 * S) {
    run.at(at, () => {
      (run.nodes.get('opaque') as { speed: number }).speed = speed(at / LENGTH);
      limits.push(run.scheduler.node('opaque', run.now)?.slots ?? 0);
    });
  }
  run.runUntil(LENGTH + 60 * S);
  return { goodput: doneUs / (LENGTH / 2) / knee, limits };
}

describe('a node without stated slots', () => {
  test.each([
    [1, 1],
    [1, 2],
    [4, 1],
    [4, 2],
    [16, 1],
  ])(
    'with a knee at %i gets a limit near it, and serves nine tenths of the best fixed one, seed %i',
    (knee, seed) => {
      const { goodput, limits } = serve({ knee, slots: 0, seed });
      const settled = median(part(limits, 0.5, 1));
      expect(settled).toBeGreaterThanOrEqual(knee);
      expect(settled).toBeLessThanOrEqual(1.75 * knee);
      const fixed = [knee / 2, knee, 1.25 * knee, 2 * knee].map(
        (slots) => serve({ knee, slots: Math.ceil(slots), seed }).goodput,
      );
      expect(goodput).toBeGreaterThanOrEqual(0.9 * Math.max(...fixed));
    },
  );

  test('keeps its limit through a lull, and serves as before after it', () => {
    const lull = (over: number): number => (over > 0.4 && over < 0.7 ? 0.2 : 1.5);
    const { limits } = serve({ knee: 4, slots: 0, seed: 3, load: lull });
    for (const at of [part(limits, 0.25, 0.4), part(limits, 0.8, 1)]) {
      expect(median(at)).toBeGreaterThanOrEqual(4);
      expect(median(at)).toBeLessThanOrEqual(8);
    }
  });

  test('that is three times slower for a while has its limit back after it', () => {
    const slow = (over: number): number => (over > 0.3 && over < 0.5 ? 1 / 3 : 1);
    const { limits } = serve({ knee: 8, slots: 0, seed: 4, speed: slow });
    const before = median(part(limits, 0.15, 0.3));
    const after = median(part(limits, 0.7, 1));
    expect(after).toBeGreaterThanOrEqual(8);
    expect(after / before).toBeGreaterThan(0.75);
    expect(after / before).toBeLessThan(1.34);
  });
});
