import { describe, expect, test } from 'vitest';
import {
  ALIVE,
  createHandClock,
  createNotingTransport,
  createPlainScheduler,
  createSetDriver,
  gatewayConfig,
  type HandClock,
  nodeConfig,
  notedListener,
  type PlainScheduler,
  submitSpec,
  turn,
} from '../../test/integration/runtime-fixture.ts';
import { createMemoryRegistry } from '../adapters/registry-memory/registry-memory.ts';
import type { RegistryStore } from '../ports/registry-store.ts';
import type { Gateway } from './contract.ts';
import { createGateway } from './gateway.ts';
import { FINISHED_MAX } from './task-table.ts';

interface Bench {
  readonly gateway: Gateway;
  readonly scheduler: PlainScheduler;
  readonly clock: HandClock;
  readonly calls: string[];
}

async function bench(nodes = 1): Promise<Bench> {
  const scheduler = createPlainScheduler();
  const clock = createHandClock();
  const calls: string[] = [];
  const memory = createMemoryRegistry();
  const store: RegistryStore = {
    ...memory,
    async close() {
      calls.push('store.close');
    },
  };
  const gateway = await createGateway({
    config: gatewayConfig(),
    scheduler,
    store,
    transport: createNotingTransport(calls),
    drivers: [createSetDriver(() => ALIVE)],
    clock,
    givenNodes: Array.from({ length: nodes }, (_, i) => ({
      node: nodeConfig(`n${i}`),
      source: 'command-line' as const,
    })),
  });
  return { gateway, scheduler, clock, calls };
}

describe('gateway.submit', () => {
  test('never calls the listener inside the call, and calls it in the same turn', async () => {
    const { gateway } = await bench();
    const listener = notedListener();
    gateway.submit(submitSpec(), listener);
    expect(listener.calls).toEqual([]);
    await Promise.resolve();
    expect(listener.calls).toEqual(['assigned n0 1']);
  });

  test('gives public ids that cannot be guessed from a task number', async () => {
    const { gateway } = await bench();
    const other = await bench();
    const { publicId } = gateway.submit(submitSpec(), notedListener());
    await turn();
    expect(publicId).toMatch(/^[\w-]{12}\.1$/);
    expect(gateway.request(publicId)?.state).toBe('running');
    expect(other.gateway.request(publicId)).toBeUndefined();
    expect(gateway.request(`${publicId} `)).toBeUndefined();
  });

  test('performs all effects of an event before the next event is applied', async () => {
    const { gateway, scheduler } = await bench();
    const order: string[] = [];
    const first = notedListener();
    first.assigned = () => {
      expect(scheduler.applying).toBe(false);
      order.push('assigned');
      gateway.attemptSent(1);
      gateway.attemptEnded(1, { kind: 'ok' });
      expect(first.outcome, 'the end is applied after the effects').toBeUndefined();
      gateway.submit(submitSpec(), notedListener());
    };
    gateway.submit(submitSpec(), first);
    await turn();
    expect(order).toEqual(['assigned']);
    expect(first.outcome).toEqual({ kind: 'served' });
    expect(scheduler.seen.slice(-4).map((event) => event.kind)).toEqual([
      'submit',
      'attempt-sent',
      'attempt-ended',
      'submit',
    ]);
  });
});

describe('gateway.attemptEnded', () => {
  test('is forwarded once per assignment; doubles and strays are counted and ignored', async () => {
    const { gateway, scheduler } = await bench();
    const { taskId } = gateway.submit(submitSpec(), notedListener());
    gateway.attemptEnded(taskId, { kind: 'ok' });
    await turn();
    gateway.attemptEnded(taskId, { kind: 'ok' });
    gateway.attemptEnded(taskId, { kind: 'ok' });
    gateway.attemptEnded(9_999, { kind: 'ok' });
    await turn();
    expect(scheduler.seen.filter((event) => event.kind === 'attempt-ended')).toHaveLength(1);
    expect(gateway.dump()).toMatchObject({ runtime: { permitsReleasedTwice: 3, liveRequests: 0 } });
  });

  test('of an earlier attempt does not release the later one', async () => {
    const { gateway } = await bench();
    const listener = notedListener();
    const { taskId } = gateway.submit(submitSpec(), listener);
    await turn();
    gateway.attemptEnded(taskId, { kind: 'failed', failure: 'reset', retryable: true }, 1);
    await turn();
    expect(listener.last?.attempt).toBe(2);
    gateway.attemptEnded(taskId, { kind: 'failed', failure: 'reset', retryable: true }, 1);
    await turn();
    expect(gateway.node('n0')?.inflight).toBe(1);
    gateway.attemptEnded(taskId, { kind: 'ok' }, 2);
    await turn();
    expect(listener.outcome).toEqual({ kind: 'served' });
  });
});

describe('a listener that throws', () => {
  test('on assignment fails its own request as node-failed and frees the node for the next', async () => {
    const { gateway } = await bench();
    const bad = notedListener();
    bad.assigned = () => {
      throw new Error('boom');
    };
    const next = notedListener();
    const { publicId } = gateway.submit(submitSpec(), bad);
    gateway.submit(submitSpec(), next);
    await turn();
    expect(bad.outcome).toMatchObject({ kind: 'failed', reason: 'node-failed' });
    expect(gateway.request(publicId)).toMatchObject({ state: 'failed', reason: 'node-failed' });
    expect(next.calls).toEqual(['assigned n0 1']);
    expect(gateway.dump()).toMatchObject({ runtime: { listenerErrors: 1 } });
  });

  test('on abort and on finish loses neither the permit nor the loop', async () => {
    const { gateway } = await bench();
    const bad = notedListener();
    bad.abort = () => {
      throw new Error('boom');
    };
    bad.finished = () => {
      throw new Error('boom');
    };
    const { taskId } = gateway.submit(submitSpec(), bad);
    await turn();
    gateway.cancel(taskId);
    await turn();
    expect(gateway.node('n0')?.inflight).toBe(0);
    expect(gateway.dump()).toMatchObject({ runtime: { listenerErrors: 2, liveRequests: 0 } });
  });
});

describe('gateway.request', () => {
  test('tells the timeline of a finished request in milliseconds since it was received', async () => {
    const { gateway, clock } = await bench();
    const { taskId, publicId } = gateway.submit(submitSpec(), notedListener());
    await turn();
    clock.advance(5);
    gateway.attemptSent(taskId);
    clock.advance(10);
    gateway.attemptFirstByte(taskId);
    clock.advance(20);
    gateway.attemptEnded(taskId, { kind: 'ok' });
    await turn();
    const view = gateway.request(publicId);
    expect(view).toMatchObject({ state: 'served', nodeId: 'n0', attempts: 1 });
    expect(view?.timeline).toMatchObject({ admitted: 0, decided: 0, sent: 5, firstByte: 15, done: 35 });
  });

  test('explains a live request and forgets the oldest finished one at the bound', async () => {
    const { gateway } = await bench();
    const first = gateway.submit(submitSpec(), notedListener());
    await turn();
    expect(gateway.request(first.publicId)?.live?.state).toBe('running');
    gateway.attemptEnded(first.taskId, { kind: 'ok' });
    const serve = async (): Promise<string> => {
      const { taskId, publicId } = gateway.submit(submitSpec(), notedListener());
      await Promise.resolve();
      gateway.attemptEnded(taskId, { kind: 'ok' });
      await Promise.resolve();
      return publicId;
    };
    for (let i = 0; i < FINISHED_MAX - 1; i += 1) await serve();
    expect(gateway.request(first.publicId)?.state).toBe('served');
    const last = await serve();
    expect(gateway.request(last)?.state).toBe('served');
    expect(gateway.request(first.publicId)).toBeUndefined();
  });
});

describe('the wake timer', () => {
  test('ticks when the scheduler asked for it and not before', async () => {
    const { gateway, scheduler, clock } = await bench();
    scheduler.wakeAt = gateway.now() + 50_000;
    gateway.submit(submitSpec(), notedListener());
    await turn();
    clock.advance(49);
    expect(scheduler.seen.some((event) => event.kind === 'tick')).toBe(false);
    clock.advance(2);
    expect(scheduler.seen.some((event) => event.kind === 'tick')).toBe(true);
  });
});

describe('gateway.shutdown', () => {
  test('is not ready first, refuses what waits at once, waits for what runs, closes the store last', async () => {
    const { gateway, calls } = await bench();
    const running = notedListener();
    const waiting = notedListener();
    const { taskId } = gateway.submit(submitSpec(), running);
    gateway.submit(submitSpec(), waiting);
    await turn();
    const done = gateway.shutdown();
    expect(gateway.ready).toBe(false);
    expect(waiting.outcome).toMatchObject({ kind: 'evicted', reason: 'shutting-down' });
    const late = notedListener();
    gateway.submit(submitSpec(), late);
    await turn();
    expect(late.outcome).toMatchObject({ kind: 'rejected', reason: 'shutting-down' });
    expect(calls).toEqual([]);
    gateway.attemptEnded(taskId, { kind: 'ok' });
    await done;
    expect(running.outcome).toEqual({ kind: 'served' });
    expect(calls).toEqual(['transport.shutdown', 'store.close']);
  });

  test('refuses who comes after the end as well, and leaves no timer behind', async () => {
    const { gateway, clock } = await bench();
    await gateway.shutdown();
    const late = notedListener();
    gateway.submit(submitSpec(), late);
    await turn();
    expect(late.outcome).toMatchObject({ kind: 'rejected', reason: 'shutting-down' });
    expect(clock.timers).toBe(0);
  });

  test('cuts what still runs at the drain limit, and tells the client that a retry helps', async () => {
    const { gateway, clock, calls } = await bench();
    const listener = notedListener();
    const { taskId } = gateway.submit(submitSpec(), listener);
    listener.abort = () => gateway.attemptEnded(taskId, { kind: 'aborted' });
    await turn();
    const done = gateway.shutdown();
    clock.advance(gateway.config.server.drainMs);
    await done;
    expect(listener.outcome).toMatchObject({
      kind: 'failed',
      reason: 'node-failed',
      hint: { retryable: true },
    });
    expect(calls.at(-1)).toBe('store.close');
  });
});

describe('gateway.reconfigure', () => {
  test('names what waits for a restart and keeps it in force', async () => {
    const { gateway } = await bench();
    const next = gatewayConfig({ server: { port: 9999, stallMs: 1234 } });
    const { needsRestart } = gateway.reconfigure(next);
    expect(needsRestart).toEqual(['server.port']);
    expect(gateway.config.server.port).toBe(8480);
    expect(gateway.config.server.stallMs).toBe(1234);
  });
});
