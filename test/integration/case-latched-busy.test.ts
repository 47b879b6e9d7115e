/**
 * Latched busy mark (publicly reported as ai-dynamo/dynamo#14213): after a burst the workers stay marked busy, and idle
 * ones refuse for fifteen minutes, because only completed work would clear the mark.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  IMAGE_MODEL,
  imageNodes,
  imageProfile,
  sendMany,
  nodeAt,
  within,
  type Wish,
} from '../support/case-bench.ts';
import { completion, sendJson } from './edge-fixture.ts';

const SPEEDUP = 36;
/** The first request after the load must be served within this time. */
const SERVED_MS = 2_000;
const HARDWARE = { statedHardware: 'A100', trueHardware: 'A100' } as const;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

describe('the first request after a burst is served within two seconds', () => {
  it('although every node has said that it is full', async () => {
    const fleet = await bench.fleet({
      speedup: SPEEDUP,
      nodes: ['a', 'b', 'c'].map((id) => ({ id, kind: 'image', model: IMAGE_MODEL, ...HARDWARE })),
    });
    const started = await bench.gateway({
      models: [{ id: IMAGE_MODEL, profile: imageProfile(SPEEDUP) }],
      nodes: imageNodes(fleet),
    });
    const client = bench.client(started.dataUrl);
    const wish = (): { model: string; deadlineMs: number } => ({ model: IMAGE_MODEL, deadlineMs: 2_000 });
    const burst = sendMany(client, { count: 600, concurrency: 200, wish });
    await within(5_000, 'the burst runs', () => fleet.truth().every((node) => node.served > 0));
    for (const node of fleet.nodes) await node.setFaults({ refuseStatus: 503 });
    await within(5_000, 'every node refuses', () => fleet.truth().every((node) => node.refused > 0));
    await burst;
    for (const node of fleet.nodes) await node.setFaults({ refuseStatus: 0 });
    expect(await firstAfter(started.dataUrl, { model: IMAGE_MODEL })).toMatchObject({ status: 200 });
    await expectAllReleased(started);
  });

  it('although the last reading of its engine said that work waits', async () => {
    let isHeld = false;
    let finish: (() => void) | undefined;
    const node = await bench.vllm((res) => {
      const answer = (): void => sendJson(res, 200, completion('hello'));
      if (isHeld) finish = answer;
      else answer();
    });
    const { models: _models, slots: _slots, ...open } = nodeAt('n1', node, { protocol: 'vllm' });
    const started = await bench.gateway({
      nodes: [{ ...open, models: [{ model: 'tiny' }] }],
      // Far away, so that nothing but a look after the burst can tell.
      health: { reconcileMs: 600_000, suspectLeaseMs: 600_000 },
    });
    expect((await ask(started.dataUrl)).status).toBe(200);
    // The first look at a known fleet is over; the next is ten minutes away.
    await within(10_000, 'the node was probed', () => node.seen.some((row) => row.url === '/v1/models'));
    isHeld = true;
    const last = ask(started.dataUrl);
    // Only then is the engine full, or a look at it could keep the request from it.
    await within(10_000, 'the node has the request', () => finish !== undefined);
    isHeld = false;
    node.load = { running: 8, waiting: 3, cacheUse: 0.99 };
    const before = node.reads;
    await within(10_000, 'the gateway reads that work waits', () => node.reads > before + 1);
    finish?.();
    expect((await last).status).toBe(200);
    // After its answer, so that no look for its sake can see it.
    node.load = { running: 0, waiting: 0, cacheUse: 0 };
    expect(await firstAfter(started.dataUrl, {})).toMatchObject({ status: 200 });
    await expectAllReleased(started);
  });
});

/** The answer to one request, or what says that it did not come in time. */
async function firstAfter(dataUrl: string, wish: Wish): Promise<unknown> {
  let answer: unknown;
  void ask(dataUrl, wish).then((given) => {
    answer = given;
  });
  await within(SERVED_MS, 'the first request after the load is answered', () => answer !== undefined);
  return answer;
}
