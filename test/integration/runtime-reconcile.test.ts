/**
 * Missed event (vllm-project/production-stack#1091, gpustack/gpustack#6231: a dead node used for 22 hours, a
 * recovered one never): with the real scheduler, real drivers and real sockets, the periodic look alone converges
 * both ways. The interval is shortened; that three intervals fit into 30 s is the default's own test.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { createEngineDrivers } from '../../src/adapters/engines/index.ts';
import { createMemoryRegistry } from '../../src/adapters/registry-memory/index.ts';
import type { NodeConfig } from '../../src/core/config/types.ts';
import { createScheduler } from '../../src/core/scheduler/scheduler.ts';
import type { Gateway } from '../../src/runtime/contract.ts';
import { createGateway } from '../../src/runtime/gateway.ts';
import {
  createNotingTransport,
  gatewayConfig,
  nodeConfig,
  notedListener,
  submitSpec,
} from './runtime-fixture.ts';

const servers: Server[] = [];
const gateways: Gateway[] = [];

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.shutdown();
  for (const server of servers.splice(0)) await stop(server);
});

function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

async function listen(
  pages: Record<string, () => [number, string]>,
  port = 0,
): Promise<{ server: Server; port: number }> {
  const server = createServer((request, response) => {
    const [status, body] = pages[request.url ?? '']?.() ?? [404, ''];
    response.writeHead(status).end(body);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

async function start(nodes: readonly NodeConfig[], reconcileMs: number): Promise<Gateway> {
  const config = gatewayConfig({
    health: { reconcileMs, suspectLeaseMs: Math.max(10_000, reconcileMs), slowStartTasks: 1 },
    server: { drainMs: 100 },
  });
  const gateway = await createGateway({
    config: { ...config, nodes },
    scheduler: createScheduler(config.scheduler),
    store: createMemoryRegistry(),
    transport: createNotingTransport(),
    drivers: createEngineDrivers(),
  });
  gateways.push(gateway);
  return gateway;
}

const becomes = (gateway: Gateway, state: string): Promise<void> =>
  vi.waitFor(() => expect(gateway.node('a')?.state).toBe(state), { timeout: 20_000, interval: 20 });

/** Runs one request to its end, so that the node is verified by its work. */
async function serve(gateway: Gateway): Promise<void> {
  const listener = notedListener();
  const { taskId } = gateway.submit(submitSpec('m', { receivedAt: gateway.now() }), listener);
  await vi.waitFor(() => expect(listener.last?.nodeId).toBe('a'));
  gateway.attemptEnded(taskId, { kind: 'ok' });
  await vi.waitFor(() => expect(listener.outcome).toEqual({ kind: 'served' }));
}

test('a node that dies leaves and one that recovers returns, with no event at all', async () => {
  const pages = { '/v1/models': (): [number, string] => [200, '{"data":[{"id":"m"}]}'] };
  const { server, port } = await listen(pages);
  const gateway = await start([nodeConfig('a', { url: `http://127.0.0.1:${port}` })], 100);
  await serve(gateway);
  await becomes(gateway, 'active');
  await stop(server);
  await becomes(gateway, 'suspect');
  await listen(pages, port);
  await becomes(gateway, 'active');
  await serve(gateway);
});

test.each([401, 404, 429, 503])(
  'a node whose list answers HTTP %i stays: busy is not dead',
  async (status) => {
    let asked = 0;
    const { port } = await listen({
      '/v1/models': () => {
        asked += 1;
        return [status, ''];
      },
    });
    const gateway = await start([nodeConfig('a', { url: `http://127.0.0.1:${port}` })], 50);
    await vi.waitFor(() => expect(asked).toBeGreaterThan(4), { timeout: 20_000, interval: 20 });
    expect(gateway.node('a')?.state).toBe('unverified');
    await serve(gateway);
  },
);

test('an engine that batches is read every second while it works for us, and closes its room by its own word', async () => {
  let waiting = 0;
  let reads = 0;
  const { port } = await listen({
    '/health': () => [200, ''],
    '/v1/models': () => [200, '{"data":[{"id":"m","max_model_len":4096}]}'],
    '/metrics': () => {
      reads += 1;
      return [
        200,
        `vllm:num_requests_running{model_name="m"} 1\nvllm:num_requests_waiting{model_name="m"} ${waiting}\n`,
      ];
    },
  });
  const { slots: _slots, ...open } = nodeConfig('a', {
    url: `http://127.0.0.1:${port}`,
    protocol: 'vllm',
    models: [],
  });
  const gateway = await start([open], 600_000);
  expect(gateway.node('a')?.spec).toMatchObject({
    batching: true,
    models: [{ model: 'm', contextTokensMax: 4096 }],
  });
  await serve(gateway);
  const first = notedListener();
  const { taskId } = gateway.submit(submitSpec('m', { receivedAt: gateway.now() }), first);
  await vi.waitFor(() => expect(first.last).toBeDefined());
  waiting = 3;
  const before = reads;
  await vi.waitFor(() => expect(reads).toBeGreaterThan(before + 1), { timeout: 20_000, interval: 20 });
  const second = notedListener();
  gateway.submit(submitSpec('m', { receivedAt: gateway.now() }), second);
  await Promise.resolve();
  expect(second.last, 'the engine says that work waits inside it').toBeUndefined();
  waiting = 0;
  await vi.waitFor(() => expect(second.last).toBeDefined(), { timeout: 20_000, interval: 20 });
  gateway.attemptEnded(taskId, { kind: 'ok' });
  gateway.attemptEnded(taskId + 1, { kind: 'ok' });
});
