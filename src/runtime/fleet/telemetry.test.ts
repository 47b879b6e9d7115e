import { describe, expect, test } from 'vitest';
import {
  ALIVE,
  createHandClock,
  createNotingTransport,
  createPlainScheduler,
  createSetDriver,
  gatewayConfig,
  nodeConfig,
  turn,
} from '../../../test/integration/runtime-fixture.ts';
import { createMemoryRegistry } from '../../adapters/registry-memory/index.ts';
import { createGateway } from '../gateway.ts';
import { createTelemetryState, noteEngine, STALE_AFTER_MS, telemetryOf, type ToldNode } from './telemetry.ts';

describe('telemetry of hosts', () => {
  test('is asked for every five seconds where it is configured, and told to the scheduler when it says something', async () => {
    const asked: [string, number][] = [];
    let fails = false;
    const telemetry = { url: 'http://host-1:9400/metrics', gpus: ['0'] };
    const metadata = { url: 'http://169.254.169.254/metrics', gpus: [] };
    const scheduler = createPlainScheduler();
    const clock = createHandClock();
    const nodes = [
      nodeConfig('plain'),
      { ...nodeConfig('told'), telemetry },
      { ...nodeConfig('bad'), telemetry: metadata },
    ];
    await createGateway({
      config: { ...gatewayConfig({}), nodes },
      scheduler,
      store: createMemoryRegistry(),
      transport: createNotingTransport(),
      drivers: [createSetDriver(() => ALIVE)],
      clock,
      telemetry: {
        async read({ url }) {
          asked.push([url, clock.nowUs() / 1_000_000]);
          if (fails) throw new Error('no answer');
          return { memory: { memoryUse: 0.5 }, accelerators: [] };
        },
      },
    });
    for (let passed = 0; passed < 20_000; passed += 250) {
      clock.advance(250);
      await turn();
      if (passed === 10_000) fails = true;
    }
    expect(new Set(asked.map(([url]) => url)), 'no page that must not be fetched').toEqual(
      new Set([telemetry.url]),
    );
    expect(asked).toHaveLength(4);
    const told = scheduler.seen.filter((event) => event.kind === 'node-memory');
    expect(told.length).toBeLessThan(asked.length);
    expect(told[0]).toEqual({ kind: 'node-memory', nodeId: 'told', memory: { memoryUse: 0.5 } });
  });
});

function toldNode(change: Partial<ToldNode> = {}): ToldNode {
  const url = 'http://host-1:9400/metrics';
  return {
    inflight: 0,
    telemetry: createTelemetryState(),
    config: { telemetry: { url, gpus: [] } },
    ...change,
  };
}

const clocks = (nowMs: number, intervalMs = 10_000): Parameters<typeof telemetryOf>[2] => ({
  now: nowMs * 1_000,
  wallMs: 1_700_000_000_000 + nowMs,
  intervalMs,
});

describe('telemetryOf', () => {
  test('is nothing before anything was told, and stale after its age', () => {
    const node = toldNode();
    expect(telemetryOf(node, [node], clocks(0))).toBeUndefined();
    node.telemetry.host = { what: [{ id: '0', busy: 1 }], at: 0 };
    expect(telemetryOf(node, [node], clocks(STALE_AFTER_MS))?.host).toMatchObject({
      at: 1_700_000_000_000,
      isStale: false,
    });
    expect(telemetryOf(node, [node], clocks(STALE_AFTER_MS + 1))?.host?.isStale).toBe(true);
    const rarely = telemetryOf(node, [node], clocks(STALE_AFTER_MS + 1, 60_000));
    expect([rarely?.host?.isStale, rarely?.staleAfterMs]).toEqual([false, 180_000]);
  });

  test('adds up the work of nodes that share a device', () => {
    const gpus = (...names: string[]): ToldNode['config'] => ({
      telemetry: { url: 'http://host-1:9400/metrics', gpus: names },
    });
    const node = toldNode({ inflight: 1, config: gpus('0') });
    node.telemetry.host = { what: [], at: 0 };
    const partner = toldNode({ inflight: 2, config: gpus('0', '1') });
    partner.telemetry.steadySince = 5_000_000;
    const apart = toldNode({ inflight: 4, config: gpus('7') });
    const all = toldNode({ inflight: 8 });
    expect(telemetryOf(node, [node, partner, apart], clocks(8_000))?.ours).toEqual({
      inflight: 3,
      steadyUs: 3_000_000,
    });
    expect(telemetryOf(node, [node, partner, apart, all], clocks(8_000))?.ours?.inflight).toBe(11);
  });

  test('says nothing of ours where more nodes name one page than a host has', () => {
    const nodes = Array.from({ length: 65 }, () => toldNode({ inflight: 1 }));
    const [node] = nodes as [ToldNode];
    node.telemetry.host = { what: [], at: 0 };
    expect(telemetryOf(node, nodes, clocks(0))?.ours).toBeUndefined();
  });
});

describe('noteEngine', () => {
  const ratioAfter = (
    ...accounts: readonly (readonly [hits: number, queries: number])[]
  ): number | undefined => {
    const state = createTelemetryState();
    for (const [prefixHits, prefixQueries] of accounts) noteEngine(state, { prefixHits, prefixQueries }, 0);
    return state.prefixHitRatio;
  };

  test('tells the hits of prompts between the last two looks that saw any', () => {
    expect(ratioAfter([50, 100])).toBeUndefined();
    expect(ratioAfter([50, 100], [110, 200])).toBe(0.6);
    expect(ratioAfter([50, 100], [110, 200], [110, 200])).toBe(0.6);
  });

  test('begins anew when the engine was started again', () => {
    expect(ratioAfter([50, 100], [110, 200], [1, 2])).toBeUndefined();
    expect(ratioAfter([50, 100], [110, 200], [1, 2], [2, 4])).toBe(0.5);
  });
});
