/**
 * Black hole (publicly reported as Layr-Labs/d-inference#507 and alibaba/higress#3255): a node that refuses or fails
 * fast looks least loaded and swallows the traffic.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { EmulatedFleet, FaultChange } from '../../src/emulator/index.ts';
import {
  type CaseBench,
  createCaseBench,
  IMAGE_MODEL,
  imageNodes,
  imageProfile,
  isServed,
  nodeRow,
  sendMany,
  within,
} from '../support/case-bench.ts';

const SPEEDUP = 36;
const REQUESTS = 90;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

async function start(): Promise<{ fleet: EmulatedFleet; started: StartedGateway }> {
  const kind = 'image';
  const hardware = { statedHardware: 'A100', trueHardware: 'A100' } as const;
  const fleet = await bench.fleet({
    speedup: SPEEDUP,
    nodes: ['good-1', 'good-2', 'hole'].map((id) => ({ id, kind, model: IMAGE_MODEL, ...hardware })),
  });
  const started = await bench.gateway({
    models: [{ id: IMAGE_MODEL, profile: imageProfile(SPEEDUP) }],
    nodes: imageNodes(fleet),
    // Reconciled often, so that a green health page has every chance to bring the node back.
    // A refusal closes the room only for a moment: what keeps the node out must be its record.
    health: { reconcileMs: 200, suspectLeaseMs: 1_000, ejectMs: 30_000, ejectMsMax: 30_000, refusedMs: 20 },
  });
  return { fleet, started };
}

describe('a node that answers at once and serves nothing', () => {
  it.each<[string, FaultChange]>([
    ['refuses with 503', { refuseStatus: 503 }],
    ['refuses with 429', { refuseStatus: 429 }],
    ['fails with 500', { failRatio: 1 }],
    ['answers 200 with garbage', { garbage: true }],
  ])('%s: is out of rotation within 10 requests although its health page is green', async (_title, fault) => {
    const { fleet, started } = await start();
    await fleet.setFaults('hole', fault);
    const client = bench.client(started.dataUrl);
    const wish = (): { model: string } => ({ model: IMAGE_MODEL });
    const sent = await sendMany(client, { count: REQUESTS, concurrency: 3, wish });
    const hole = fleet.truth().find((node) => node.id === 'hole');
    expect(hole?.received, 'it was tried').toBeGreaterThan(0);
    expect(hole?.received).toBeLessThanOrEqual(10);
    expect(await fetch(`${fleet.nodes[2]?.url}/health`).then((page) => page.status)).toBe(200);
    await within(2_000, 'the row says so', async () => (await nodeRow(started, 'hole')).state === 'ejected');
    expect(sent.filter(isServed).length, 'others serve what it did not').toBe(REQUESTS);
  });

  it('gains no speed by it: what failed is no observation', async () => {
    const { fleet, started } = await start();
    const wish = (): { model: string } => ({ model: IMAGE_MODEL });
    const client = bench.client(started.dataUrl);
    await sendMany(client, { count: 30, concurrency: 3, wish });
    const before = await nodeRow(started, 'hole');
    expect(before.rate).not.toBeNull();
    await fleet.setFaults('hole', { failRatio: 1 });
    await sendMany(client, { count: 30, concurrency: 3, wish });
    const after = await nodeRow(started, 'hole');
    expect(after.rates).toEqual(before.rates);
    expect(after.health).toBeLessThan(before.health);
  });
});
