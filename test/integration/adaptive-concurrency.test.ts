/**
 * The learned limit on tasks at once over real sockets: an emulated engine that states no slots and whose load page nobody
 * reads. It serves what fits side by side at one pace, and lets the rest wait inside it.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { GateMode } from '../../src/core/config/types.ts';
import {
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  isServed,
  nodeRow,
  sendMany,
  TEXT_MODEL,
  type Wish,
} from '../support/case-bench.ts';

const SPEEDUP = 60;
const KNEE = 2;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

async function opaque(mode: GateMode): Promise<StartedGateway> {
  const hardware = { statedHardware: 'A100', trueHardware: 'A100' } as const;
  const fleet = await bench.fleet({
    speedup: SPEEDUP,
    nodes: [{ id: 'opaque', kind: 'text', model: TEXT_MODEL, sequencesMax: KNEE, ...hardware }],
  });
  const [node] = fleet.nodes;
  return bench.gateway({
    nodes: [{ id: 'opaque', url: node?.url ?? '', protocol: 'openai', models: [{ model: TEXT_MODEL }] }],
    models: [{ id: TEXT_MODEL, profile: { kind: 'generic', meanMs: 40 } }],
    gates: { concurrency: mode },
    placement: { slotsDefault: 16 },
    admission: { flowWaitMsMax: 60_000 },
  });
}

const wish = (): Wish => ({ model: TEXT_MODEL, deadlineMs: 60_000, body: { max_tokens: 30 } });

describe('an engine that states no slots and tells no load', () => {
  it('is held to about what it does at once, and the rest waits in the gateway', async () => {
    const started = await opaque('on');
    const client = bench.client(started.dataUrl);
    const sent = await sendMany(client, { count: 500, concurrency: 24, wish });
    expect(sent.filter(isServed).length).toBe(500);
    const { concurrency, slots } = await nodeRow(started, 'opaque');
    expect(concurrency).toMatchObject({ holds: true });
    expect(concurrency?.settled).toBeGreaterThanOrEqual(1);
    expect(concurrency?.settled).toBeLessThanOrEqual(3 * KNEE);
    expect(slots).toBe(concurrency?.limit);
    await expectAllReleased(started);
  });

  it('in shadow takes the fixed number, and shows what it would be held to', async () => {
    const started = await opaque('shadow');
    const client = bench.client(started.dataUrl);
    await sendMany(client, { count: 30, concurrency: 1, wish });
    const sent = await sendMany(client, { count: 300, concurrency: 24, wish });
    expect(sent.filter(isServed).length).toBe(300);
    const { concurrency, slots } = await nodeRow(started, 'opaque');
    expect([slots, concurrency?.holds]).toEqual([16, false]);
    const gate = started.gateway.gates().find((row) => row.gate === 'concurrency');
    expect(gate).toMatchObject({ refused: 0 });
    expect(gate?.wouldRefuse).toBeGreaterThan(0);
  });
});
