/**
 * Gray node (publicly reported as Layr-Labs/d-inference#523): a node that fails 40 % is never tripped, because the
 * successes in between reset the streak.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type CaseBench,
  createCaseBench,
  IMAGE_MODEL,
  imageNodes,
  imageProfile,
  isServed,
  nodeAt,
  nodeRow,
  sendMany,
} from '../support/case-bench.ts';
import { completion, sendJson } from './edge-fixture.ts';

const SPEEDUP = 36;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

describe('a node that fails 40 % of its requests', () => {
  it('never two in a row: is ejected within 50 requests, and others serve what it did not', async () => {
    let calls = 0;
    // Fails, serves, fails, serves, serves: the longest streak of failures is one.
    const gray = await bench.node((res) => {
      if ([0, 2].includes(calls++ % 5)) sendJson(res, 500, { error: { message: 'broken' } });
      else sendJson(res, 200, completion('gray'));
    });
    const good = await bench.node((res) => sendJson(res, 200, completion('good')));
    const started = await bench.gateway({
      nodes: [nodeAt('gray', gray), nodeAt('good', good)],
      models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 5 } }],
      health: { ejectMs: 60_000 },
      retry: { budgetReserve: 1_000 },
    });
    const client = bench.client(started.dataUrl);
    const sent = await sendMany(client, { count: 200, concurrency: 4, wish: () => ({}) });
    expect(await nodeRow(started, 'gray')).toMatchObject({ state: 'ejected', ejections: 1 });
    expect(calls).toBeGreaterThan(2);
    expect(calls).toBeLessThanOrEqual(50);
    expect(sent.filter(isServed).length).toBe(200);
  });

  it('by chance, as an emulated card among good ones: is ejected within 50 requests', async () => {
    const hardware = { statedHardware: 'A100', trueHardware: 'A100' } as const;
    const fleet = await bench.fleet({
      speedup: SPEEDUP * 4,
      nodes: ['gray', 'good-1', 'good-2'].map((id) => ({
        id,
        kind: 'image',
        model: IMAGE_MODEL,
        ...hardware,
      })),
    });
    await fleet.setFaults('gray', { failRatio: 0.4 });
    const started = await bench.gateway({
      nodes: imageNodes(fleet),
      models: [{ id: IMAGE_MODEL, profile: imageProfile(SPEEDUP * 4) }],
      health: { ejectMs: 60_000 },
    });
    const client = bench.client(started.dataUrl);
    // More at once than the good ones have slots for: else the gray one, ranked down, would hardly be asked.
    await sendMany(client, { count: 200, concurrency: 12, wish: () => ({ model: IMAGE_MODEL }) });
    const gray = fleet.truth().find((node) => node.id === 'gray');
    expect((await nodeRow(started, 'gray')).state).toBe('ejected');
    expect(gray?.received).toBeLessThanOrEqual(50);
    expect((await nodeRow(started, 'good-1')).ejections).toBe(0);
  });
});
