import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createPrng, type Prng } from '../../base/prng.ts';
import { priorOf } from './hardware.ts';
import { RateCurve } from './rate-curve.ts';

const SIGMA = 0.2;
const RUNS = 200;

function noise(prng: Prng, sigma: number = SIGMA): number {
  const radius = Math.sqrt(-2 * Math.log(1 - prng.nextRatio()));
  return Math.exp(sigma * radius * Math.cos(2 * Math.PI * prng.nextRatio()));
}

describe('RateCurve', () => {
  test.each([
    ['twice too fast', 2],
    ['twice too slow', 0.5],
    ['right', 1],
  ])(
    'is within 15 percent of the truth after 20 tasks with noise 0.2, though its prior is %s',
    (_, factor) => {
      const trueRate = 0.4;
      let within = 0;
      const runs = 200;
      for (let seed = 0; seed < runs; seed++) {
        const prng = createPrng(seed);
        const curve = new RateCurve({ rate: trueRate * factor, span: 8 });
        for (let i = 0; i < 20; i++) {
          const workUs = 200_000 + prng.nextBelow(4_000_000);
          curve.observe(workUs, (workUs / trueRate) * noise(prng), 1);
        }
        if (Math.abs(curve.perTask(1) / trueRate - 1) <= 0.15) within += 1;
      }
      expect(within / runs).toBeGreaterThanOrEqual(0.95);
    },
  );

  /** Runs of a node of that rate after so many tasks, in which its rate is known within a part of the truth. */
  function shareWithin(
    part: number,
    { sigma, tasks }: { readonly sigma: number; readonly tasks: readonly [rate: number, count: number][] },
  ): number {
    let within = 0;
    for (let seed = 0; seed < RUNS; seed++) {
      const prng = createPrng(seed);
      const curve = new RateCurve({ rate: 1, span: 8 });
      for (const [rate, count] of tasks) {
        for (let i = 0; i < count; i++) {
          const workUs = 200_000 + prng.nextBelow(4_000_000);
          curve.observe(workUs, (workUs / rate) * noise(prng, sigma) * Math.exp(-(sigma ** 2) / 2), 1);
        }
      }
      if (Math.abs(curve.perTask(1) / (tasks.at(-1)?.[0] ?? 1) - 1) <= part) within += 1;
    }
    return within / RUNS;
  }

  test('knows a node that goes on as usual within 15 percent, though sizes are guessed within a factor of 1.8', () => {
    expect(shareWithin(0.15, { sigma: 0.58, tasks: [[0.4, 300]] })).toBeGreaterThanOrEqual(0.95);
  });

  test.each([
    { change: 'a third of its pace, as far as rough guesses tell', sigma: 0.58, pace: 1 / 3, part: 0.5 },
    { change: 'half of its pace', sigma: 0.3, pace: 0.5, part: 0.3 },
    { change: 'three quarters of its pace, where times are known well', sigma: 0.1, pace: 0.75, part: 0.1 },
    { change: 'twice its pace', sigma: 0.3, pace: 2, part: 0.3 },
  ])('follows within 20 tasks a node that goes on, after 300, with $change', ({ sigma, pace, part }) => {
    const tasks: [number, number][] = [
      [0.8, 300],
      [0.8 * pace, 20],
    ];
    expect(shareWithin(part, { sigma, tasks })).toBeGreaterThanOrEqual(0.85);
  });

  test('follows a node that is throttled to a third within 20 tasks', () => {
    const curve = new RateCurve(priorOf('A100'));
    for (let i = 0; i < 100; i++) curve.observe(1_000_000, 1_000_000, 1);
    for (let i = 0; i < 20; i++) curve.observe(1_000_000, 3_000_000, 1);
    expect(curve.perTask(1)).toBeLessThan(0.4);
  });

  test('is not biased by tiny tasks with a fixed cost among large ones', () => {
    const curve = new RateCurve({ rate: 1, span: 1_000 });
    for (let i = 0; i < 20; i++) {
      curve.observe(5_000_000, 5_000_000, 1);
      curve.observe(1_000, 50_000, 1);
    }
    expect(curve.perTask(1)).toBeGreaterThan(0.95);
  });

  test('stays within the span of the prior of known hardware, whatever it sees', () => {
    const prior = priorOf('T4');
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            fc.integer({ min: 1, max: 1e12 }),
            fc.integer({ min: 0, max: 1e12 }),
            fc.integer({ min: 1, max: 600 }),
          ),
          { maxLength: 30 },
        ),
        (seen) => {
          const curve = new RateCurve(prior);
          for (const [workUs, timeUs, inflight] of seen) curve.observe(workUs, timeUs, inflight);
          for (const inflight of [1, 2, 3, 7, 64, 512]) {
            const rate = curve.perTask(inflight);
            expect(rate).toBeGreaterThan(0);
            expect(rate).toBeLessThanOrEqual(prior.rate * 8);
          }
        },
      ),
    );
  });

  test('knows an unseen concurrency from the nearest one seen, a little slower per octave', () => {
    const curve = new RateCurve({ rate: 1, span: 8 });
    for (let i = 0; i < 40; i++) curve.observe(1_000_000, 1_000_000, 1);
    const ratios = [2, 4, 8].map((inflight) => curve.perTask(inflight) / curve.perTask(inflight / 2));
    for (const ratio of ratios) {
      expect(ratio).toBeLessThan(1);
      expect(ratio).toBeGreaterThan(0.95);
    }
  });

  test('is never faster beside others than alone, whatever the noise of the measurements says', () => {
    const curve = new RateCurve({ rate: 1, span: 8 });
    for (let i = 0; i < 40; i++) {
      curve.observe(1_000_000, 1_000_000, 1);
      curve.observe(1_000_000, 800_000, 8);
    }
    expect(curve.perTask(8)).toBeLessThanOrEqual(curve.perTask(1));
  });

  test('credits an engine without stated slots only with the concurrency it has shown', () => {
    const curve = new RateCurve({ rate: 1, span: 8 });
    for (let i = 0; i < 40; i++) curve.observe(1_000_000, 2_000_000, 4);
    expect(curve.total(256, { isStated: false })).toBeCloseTo(2, 1);
    expect(curve.total(4, { isStated: true })).toBeCloseTo(2, 1);
  });

  test('goes on after a restart from what it had learned', () => {
    const curve = new RateCurve(priorOf('A100'));
    curve.restore(0.3, 50);
    expect(curve.perTask(1)).toBeCloseTo(0.3);
    expect(curve.observations).toBe(50);
    curve.observe(1_000_000, 10_000_000, 1);
    expect(curve.perTask(1)).toBeGreaterThan(0.27);
  });

  test('takes one task for what one task tells where little was learned before a restart', () => {
    const curve = new RateCurve(priorOf('A100'));
    curve.restore(0.3, 1);
    curve.observe(1_000_000, 10_000_000, 1);
    expect(curve.perTask(1)).toBeCloseTo(0.2);
  });

  test('counts on its prior in doubt, until the first task tells', () => {
    const curve = new RateCurve(priorOf('A100'));
    for (let i = 0; i < 100; i++) curve.observe(300_000, 1_000_000, 1);
    curve.doubt();
    expect(curve.perTask(1)).toBe(1);
    curve.observe(500_000, 1_000_000, 1);
    expect(curve.perTask(1)).toBeCloseTo(0.5);
  });
});

describe('priorOf', () => {
  test('finds hardware however it is written, and trusts unknown hardware with the reference speed, loosely', () => {
    expect(priorOf('rtx 4090')).toEqual(priorOf('RTX_4090'));
    expect(priorOf('t4').rate).toBeLessThan(priorOf('A100').rate);
    expect(priorOf('constructor')).toEqual(priorOf(''));
    expect(priorOf('').span).toBeGreaterThan(priorOf('T4').span);
  });
});
