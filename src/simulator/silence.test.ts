/** Learned bounds on silence in virtual time: what an hour of noise is cut, and what a hung node costs. */
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../test/support/depth.ts';
import { nodeSpec, S, taskSpec } from '../../test/support/specs.ts';
import { createPrng } from '../base/prng.ts';
import { defaultSchedulerConfig } from '../core/config/defaults.ts';
import { VirtualRun } from '../../test/support/virtual-run.ts';

interface HourResult {
  readonly attempts: number;
  readonly cut: number;
  readonly ends: Readonly<Record<string, number>>;
}

/** A mixed fleet under noise: service of sigma 0.3, sizes estimated with sigma 0.5, load 0.5, 1, 3 and 0.8 times its capacity. */
function hour(seed: number, lengthUs: number, fault?: (run: VirtualRun) => void): HourResult {
  const prng = createPrng(seed);
  const ends: Record<string, number> = {};
  let attempts = 0;
  const run = new VirtualRun(defaultSchedulerConfig({ seed }), {
    outcome: (_task, outcome) => {
      const name = 'reason' in outcome ? outcome.reason : outcome.kind;
      ends[name] = (ends[name] ?? 0) + 1;
    },
    assigned: () => void (attempts += 1),
  });
  const sigma = Math.hypot(0.3, 0.5);
  run.addNode({ spec: nodeSpec('a', { hardware: 'A100' }), speed: 1, sigma });
  run.addNode({ spec: nodeSpec('b', { hardware: 'A100' }), speed: 0.9, sigma });
  run.addNode({ spec: nodeSpec('c', { hardware: 'T4' }), speed: 0.15, sigma });
  run.addNode({ spec: nodeSpec('d'), speed: 0.4, sigma });
  run.addNode({ spec: nodeSpec('e', { slots: 8 }), speed: 0.5, sigma, knee: 4, crowdLoss: 0.2 });
  const capacity = 1 + 0.9 + 0.15 + 0.4 + 2;
  const loads = [0.5, 1, 3, 0.8];
  const deadlines = { critical: 60 * S, normal: 120 * S, low: 600 * S };
  const names = ['critical', 'normal', 'low'] as const;
  let id = 0;
  const arrive = (): void => {
    const className = names[++id % 3] as (typeof names)[number];
    const workUs = Math.round((S / 2) * Math.exp(0.8 * (prng.nextRatio() * 4 - 2)));
    const deadlineAt = run.now + deadlines[className];
    run.submit(taskSpec(id, { tenant: `t${id % 7}`, className, workUs, deadlineAt }));
    const load = loads[Math.floor((4 * run.now) / lengthUs)] as number;
    const gapUs = (-Math.log(1 - prng.nextRatio()) * 0.75 * S) / (capacity * load);
    if (run.now + gapUs < lengthUs) run.at(Math.round(run.now + gapUs), arrive);
  };
  run.at(1, arrive);
  run.at(lengthUs / 2, () => fault?.(run));
  run.runUntil(lengthUs + 600 * S);
  const cut = run.scheduler.gates().find(({ gate }) => gate === 'timeouts')?.refused ?? 0;
  return { attempts, cut, ends };
}

describe('over an hour of virtual time', () => {
  test.each([1, 2, 3].slice(0, drawsOf(3)))(
    'healthy noisy traffic is cut in less than one attempt in a thousand, seed %i',
    (seed) => {
      const { attempts, cut } = hour(seed, 3_600 * S);
      expect(attempts).toBeGreaterThan(14_000);
      expect(cut / attempts).toBeLessThan(0.001);
    },
  );

  test.each([1, 2].slice(0, drawsOf(2)))(
    'a node that hangs costs a few retries, and hardly anybody an answer, seed %i',
    (seed) => {
      const hang = (run: VirtualRun): void => {
        (run.nodes.get('b') as { hangs?: boolean }).hangs = true;
      };
      const { cut, ends } = hour(seed, 1_200 * S, hang);
      expect(cut).toBeGreaterThanOrEqual(3);
      expect(cut).toBeLessThan(20);
      expect(ends['node-timeout'] ?? 0).toBeLessThan(cut / 2);
    },
  );
});
