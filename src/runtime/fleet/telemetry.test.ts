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
          return { memoryUse: 0.5 };
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
