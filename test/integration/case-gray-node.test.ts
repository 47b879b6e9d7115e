/**
 * Gray node (publicly reported as Layr-Labs/d-inference#523): a node that fails 40 % is never tripped, because the
 * successes in between reset the streak.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HttpClient } from '../../src/apps/demo/http-client.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { EmulatedFleet } from '../../src/emulator/index.ts';
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
  type Wish,
  within,
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

describe('a node that is worse than it was', () => {
  /** Tasks of about 0.1 s: long enough for the pace of a node to be judged. */
  const CALM_SPEEDUP = 12;

  async function threeCards(): Promise<{
    fleet: EmulatedFleet;
    started: StartedGateway;
    client: HttpClient;
  }> {
    const hardware = { statedHardware: 'A100', trueHardware: 'A100' } as const;
    const fleet = await bench.fleet({
      speedup: CALM_SPEEDUP,
      nodes: ['bad', 'good-1', 'good-2'].map((id) => ({
        id,
        kind: 'image',
        model: IMAGE_MODEL,
        ...hardware,
      })),
    });
    const started = await bench.gateway({
      nodes: imageNodes(fleet),
      models: [{ id: IMAGE_MODEL, profile: imageProfile(CALM_SPEEDUP) }],
      health: { ejectMs: 1_000, ejectMsMax: 1_000 },
    });
    return { fleet, started, client: bench.client(started.dataUrl) };
  }

  const askedOf = (fleet: EmulatedFleet): number =>
    fleet.truth().find((node) => node.id === 'bad')?.received ?? 0;

  it('three times slower: is ejected within 50 requests, nobody is harmed, and it comes back', async () => {
    const { fleet, started, client } = await threeCards();
    const wish = (): { model: string } => ({ model: IMAGE_MODEL });
    await sendMany(client, { count: 90, concurrency: 3, wish });
    expect((await nodeRow(started, 'bad')).ejections).toBe(0);
    const before = askedOf(fleet);
    await fleet.setFaults('bad', { slowFactor: 3 });
    let sent = 0;
    for (; sent < 150 && (await nodeRow(started, 'bad')).ejections === 0; sent += 3) {
      const answers = await sendMany(client, { count: 3, concurrency: 3, wish });
      expect(answers.every(isServed)).toBe(true);
    }
    expect(await nodeRow(started, 'bad')).toMatchObject({ ejections: 1 });
    expect(askedOf(fleet) - before).toBeLessThanOrEqual(50);
    await fleet.setFaults('bad', { slowFactor: 1 });
    // More at once than the good ones take: as long as they suffice, nobody needs a node that was slow.
    await within(20_000, 'it is active again', async () => {
      await sendMany(client, { count: 12, concurrency: 12, wish });
      return (await nodeRow(started, 'bad')).state === 'active';
    });
    for (const id of ['good-1', 'good-2']) expect((await nodeRow(started, id)).ejections).toBe(0);
  });

  it('that hangs: is ejected within ten requests, and comes back when it answers again', async () => {
    const { fleet, started, client } = await threeCards();
    const wish = (): Wish => ({ model: IMAGE_MODEL, deadlineMs: 1_500 });
    await sendMany(client, { count: 60, concurrency: 3, wish });
    const before = askedOf(fleet);
    await fleet.setFaults('bad', { hang: true });
    let harmed = 0;
    let sent = 0;
    for (; sent < 400 && (await nodeRow(started, 'bad')).ejections === 0; sent += 3) {
      const answers = await sendMany(client, { count: 3, concurrency: 3, wish });
      harmed += answers.filter((answer) => !isServed(answer)).length;
    }
    expect(await nodeRow(started, 'bad')).toMatchObject({ ejections: 1 });
    expect(askedOf(fleet) - before).toBeLessThanOrEqual(10);
    expect(harmed).toBeLessThanOrEqual(10);
    await fleet.setFaults('bad', { hang: false });
    await within(20_000, 'it is active again', async () => {
      await sendMany(client, { count: 3, concurrency: 3, wish });
      return (await nodeRow(started, 'bad')).state === 'active';
    });
  });
});
