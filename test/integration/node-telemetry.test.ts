/** What a host says of its accelerators, read over a socket from a scripted exporter, beside what we know of our work. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createHostTelemetry } from '../../src/adapters/engines/index.ts';
import { createMemoryRegistry } from '../../src/adapters/registry-memory/index.ts';
import { createScheduler } from '../../src/core/scheduler/index.ts';
import { type WireNode, wireNode } from '../../src/edge/admin/views.ts';
import type { Gateway } from '../../src/runtime/contract.ts';
import { createGateway } from '../../src/runtime/gateway.ts';
import { type CaseBench, createCaseBench, within } from '../support/case-bench.ts';
import { call, createFixture, type Fixture } from './cli-fixture.ts';
import { sendJson } from './edge-fixture.ts';
import {
  ALIVE,
  createHandClock,
  createNotingTransport,
  createSetDriver,
  gatewayConfig,
  type HandClock,
  nodeConfig,
  notedListener,
  submitSpec,
} from './runtime-fixture.ts';

let bench: CaseBench;
let fixture: Fixture;

beforeEach(() => {
  bench = createCaseBench();
  fixture = createFixture();
});

afterEach(async () => {
  await bench.end();
  await fixture.end();
});

interface Exporter {
  readonly url: string;
  busyPercent: number;
  temperature: number;
  isGone: boolean;
  /** Lines of a node exporter, made at each look. */
  pressure: () => string;
  readonly reads: number;
}

/** Plays the page of a DCGM exporter with one GPU of ours and one of somebody else. */
async function exporter(): Promise<Exporter> {
  const state = { busyPercent: 0, temperature: 50, isGone: false, reads: 0, pressure: () => '' };
  const server = createServer((_req, res) => {
    state.reads += 1;
    if (state.isGone) return void res.writeHead(503).end();
    res.end(
      `DCGM_FI_DEV_GPU_UTIL{gpu="0"} ${state.busyPercent}\nDCGM_FI_DEV_GPU_UTIL{gpu="1"} 50\n` +
        `DCGM_FI_DEV_GPU_TEMP{gpu="0"} ${state.temperature}\nDCGM_FI_DEV_FB_USED{gpu="0"} 300\n` +
        `DCGM_FI_DEV_FB_FREE{gpu="0"} 100\nDCGM_FI_DEV_XID_ERRORS{gpu="0"} 0\n${state.pressure()}`,
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  bench.onEnd(() => void server.close());
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics` });
}

describe('a host and our own count', () => {
  /** Real pages, and a clock under the test's hand: what takes minutes to settle takes none. */
  async function start(page: Exporter): Promise<{ readonly gateway: Gateway; readonly clock: HandClock }> {
    const clock = createHandClock();
    const config = gatewayConfig({});
    const gateway = await createGateway({
      config: { ...config, nodes: [{ ...nodeConfig('g'), telemetry: { url: page.url, gpus: ['0'] } }] },
      scheduler: createScheduler(config.scheduler),
      store: createMemoryRegistry(),
      transport: createNotingTransport(),
      drivers: [createSetDriver(() => ALIVE)],
      telemetry: createHostTelemetry(),
      clock,
    });
    bench.onEnd(() => gateway.shutdown());
    return { gateway, clock };
  }

  /** Lets time pass, and pages be read, until the node's finding is the one. */
  async function finds(
    { gateway, clock }: Awaited<ReturnType<typeof start>>,
    kind: string | undefined,
  ): Promise<WireNode> {
    const look = (): WireNode => {
      clock.advance(1_000);
      return wireNode(gateway.node('g') ?? expect.unreachable());
    };
    let node = look();
    await within(10_000, `the finding is ${kind}`, () => {
      node = look();
      return node.telemetry?.finding?.kind === kind && node.telemetry !== null;
    });
    return node;
  }

  test('tell together that somebody else uses the node, or that our work hangs', async () => {
    const page = await exporter();
    const started = await start(page);
    expect((await finds(started, 'agrees')).telemetry?.host?.accelerators).toMatchObject([
      { id: '0', busy: 0, engineActive: null, temperatureC: 50, memoryUsedBytes: 300 * 1_048_576 },
    ]);
    page.busyPercent = 97;
    const used = await finds(started, 'used-by-others');
    expect(used.telemetry?.finding?.says).toContain('(97 %)');
    const { gateway } = started;
    const { taskId } = gateway.submit(
      submitSpec('m', { receivedAt: gateway.now(), deadlineUs: 3_600_000_000 }),
      notedListener(),
    );
    expect((await finds(started, 'agrees')).inflight).toBe(1);
    page.busyPercent = 1;
    expect((await finds(started, 'works-in-vain')).telemetry?.finding?.says).toMatch(/^1 of ours run there/);
    gateway.attemptEnded(taskId, { kind: 'ok' });
  });

  test('tell together that the host starves the engine, until it does not any more', async () => {
    const page = await exporter();
    const started = await start(page);
    const waiting = { part: 0.8, seconds: 100, at: 0 };
    // The page is written a moment before it is read: the part is right to that moment.
    page.pressure = () => {
      const now = started.clock.nowUs() / 1e6;
      waiting.seconds += (now - waiting.at) * waiting.part;
      waiting.at = now;
      return `node_pressure_cpu_waiting_seconds_total ${waiting.seconds}\n`;
    };
    const starved = await finds(started, 'starved');
    expect(starved.telemetry?.finding?.says).toMatch(
      /^Something waited for a CPU of its host 80 % of the time/,
    );
    expect(starved.telemetry?.host?.pressure).toMatchObject({
      cpuWaiting: expect.closeTo(0.8, 1),
      ioStalled: null,
    });
    waiting.part = 0.1;
    expect((await finds(started, 'agrees')).telemetry?.host?.pressure?.cpuWaiting).toBeCloseTo(0.1, 1);
  });

  test('tell nothing any more when the page is gone for long enough', async () => {
    const page = await exporter();
    const started = await start(page);
    page.temperature = 90;
    await finds(started, 'hot');
    page.isGone = true;
    const node = await finds(started, undefined);
    expect(node.telemetry).toMatchObject({ host: { stale: true, accelerators: [] }, finding: null });
  });
});

describe('GET /nodes/{id}', () => {
  test('tells what host and engine say, unknown as null, and nodes --wide shows it', async () => {
    const page = await exporter();
    page.temperature = 91;
    const engine = await bench.vllm((res) => sendJson(res, 200, {}));
    engine.load = { running: 5, waiting: 2, cacheUse: 0.25 };
    const plain = await bench.node((res) => sendJson(res, 200, {}));
    const started = await bench.gateway({
      nodes: [
        { id: 'told', url: engine.url, protocol: 'vllm', telemetry: { url: page.url, gpus: ['0'] } },
        { id: 'untold', url: plain.url },
      ],
    });
    const get = async (id: string): Promise<WireNode> => {
      const url = `${started.adminUrl}/spillway/v1/nodes/${id}`;
      return (await call(url, { token: started.adminToken })).json as unknown as WireNode;
    };
    await within(10_000, 'both told', async () => {
      const { telemetry } = await get('told');
      return telemetry?.host !== null && telemetry?.engine !== null && telemetry !== null;
    });
    expect((await get('told')).telemetry).toMatchObject({
      staleAfterMs: 30_000,
      host: {
        stale: false,
        accelerators: [{ id: '0', temperatureC: 91, powerW: null, memoryActive: null, xid: 0 }],
      },
      engine: { stale: false, running: 5, waiting: 2, cacheUse: 0.25, prefixHitRatio: null },
      finding: { kind: 'hot', says: 'Its warmest device is at 91 °C: expect it to slow down' },
    });
    expect((await get('untold')).telemetry).toBeNull();
    const metrics = await call(`${started.adminUrl}/metrics`, { token: started.adminToken });
    expect(metrics.text).toContain('spillway_node_telemetry_memory_ratio{node="told"} 0.75\n');
    expect(metrics.text).not.toMatch(/spillway_node_telemetry\w+\{node="untold"/);
    const { stdout } = await fixture.cli([
      'nodes',
      '--wide',
      ...['--url', started.adminUrl, '--token', started.adminToken],
    ]);
    expect(stdout).toMatch(/^told +\S+ +0\/\S+ +0 % +75 % +91 °C +5\+2 +25 % +\?$/m);
    expect(stdout).toMatch(/^untold +\S+ +0\/\S+ +\? +\? +\? +\? +\? +\?$/m);
    expect(stdout).toMatch(/^told: Its warmest device is at 91 °C/m);
  });
});
