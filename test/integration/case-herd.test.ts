/**
 * Herd (publicly reported as vllm-project/aibrix#2422 and vllm-project/router#177): pick and count are not one step, so
 * simultaneous arrivals all see the same idle node and run there together.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IMAGE_MODELS, imageServiceMs, PIXELS_REFERENCE } from '../../src/emulator/index.ts';
import {
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  IMAGE_MODEL,
  imageNodes,
  imageProfile,
  isServed,
  nodeRow,
  send,
  sendMany,
} from '../support/case-bench.ts';

const SPEEDUP = 6;
const SPEEDS = [1, 2, 4] as const;
const ARRIVALS = 200;
const LEARNING = 90;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

const stepsOf = (index: number): number => 10 + ((index * 37) % 41);

/** Wall time of one image on a node of speed 1. */
function serviceMs(steps: number): number {
  return imageServiceMs(IMAGE_MODELS.A100, { images: 1, steps, pixels: PIXELS_REFERENCE }) / SPEEDUP;
}

/** Longest tasks first, each to the node that is done with it first: at most a few per cent above any schedule. */
function optimumMs(sizes: readonly number[]): number {
  const busyUntil = SPEEDS.map(() => 0);
  for (const size of sizes.toSorted((a, b) => b - a)) {
    const done = busyUntil.map((until, node) => until + size / (SPEEDS[node] ?? 1));
    const best = done.indexOf(Math.min(...done));
    busyUntil[best] = done[best] ?? 0;
  }
  return Math.max(...busyUntil);
}

describe('200 simultaneous arrivals over nodes of speed 1 : 2 : 4', () => {
  it('finish within 15 % of the optimum for their sizes, once the speeds are learned', async () => {
    const fleet = await bench.fleet({
      speedup: SPEEDUP,
      noiseSigma: 0,
      nodes: SPEEDS.map((trueSpeed) => ({
        id: `speed-${trueSpeed}`,
        kind: 'image',
        model: IMAGE_MODEL,
        statedHardware: 'A100',
        trueHardware: 'A100',
        trueSpeed,
      })),
    });
    const started = await bench.gateway({
      models: [{ id: IMAGE_MODEL, profile: imageProfile(SPEEDUP) }],
      nodes: imageNodes(fleet),
      admission: { flowWaitMsMax: 60_000, flowWaitDeadlineShare: 1 },
    });
    const client = bench.client(started.dataUrl);
    const wish = (index: number): { model: string; steps: number; deadlineMs: number } => ({
      model: IMAGE_MODEL,
      steps: stepsOf(index),
      deadlineMs: 60_000,
    });
    await sendMany(client, { count: LEARNING, concurrency: 6, wish });
    const startedAt = performance.now();
    const sent = await Promise.all(Array.from({ length: ARRIVALS }, (_, i) => send(client, wish(i))));
    const tookMs = performance.now() - startedAt;
    expect(sent.filter(isServed).length).toBe(ARRIVALS);
    const bestMs = optimumMs(Array.from({ length: ARRIVALS }, (_, i) => serviceMs(stepsOf(i))));
    const rates = await Promise.all(
      SPEEDS.map(async (speed) => (await nodeRow(started, `speed-${speed}`)).rate),
    );
    expect(tookMs / bestMs, `learned rates: ${rates.join(', ')}`).toBeLessThan(1.15);
    await expectAllReleased(started);
  });
});
