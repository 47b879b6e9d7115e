import { describe, expect, test } from 'vitest';
import {
  ALIVE,
  createHandClock,
  createNotingTransport,
  createPlainScheduler,
  createSetDriver,
  DEAD,
  gatewayConfig,
  type HandClock,
  nodeConfig,
  notedListener,
  type NotingTransport,
  type PlainScheduler,
  submitSpec,
  turn,
} from '../../../test/integration/runtime-fixture.ts';
import { createMemoryRegistry } from '../../adapters/registry-memory/index.ts';
import type { NodeConfig } from '../../core/config/types.ts';
import type { EngineProbe } from '../../ports/engine-driver.ts';
import type { NodeEndpoint } from '../../ports/node-transport.ts';
import type { NodeRecord, RegistryStore } from '../../ports/registry-store.ts';
import type { Gateway } from '../contract.ts';
import { createGateway } from '../gateway.ts';
import { hashCredential } from './credentials.ts';
import type { GivenNode } from './membership.ts';
import { PROBES_MAX } from './reconciler.ts';
import { NODES_MAX } from './roster.ts';

interface Bench {
  readonly gateway: Gateway;
  readonly scheduler: PlainScheduler;
  readonly clock: HandClock;
  readonly transport: NotingTransport;
  readonly store: RegistryStore;
  readonly saves: NodeRecord[];
}

interface BenchOptions {
  readonly store?: RegistryStore;
  readonly given?: readonly GivenNode[];
  readonly nodes?: readonly NodeConfig[];
  readonly models?: readonly object[];
  readonly probe?: (endpoint: NodeEndpoint) => EngineProbe | Promise<EngineProbe>;
  readonly resolveName?: (host: string) => Promise<readonly string[]>;
}

async function bench(options: BenchOptions = {}): Promise<Bench> {
  const scheduler = createPlainScheduler();
  const clock = createHandClock();
  const transport = createNotingTransport();
  const memory = options.store ?? createMemoryRegistry();
  const saves: NodeRecord[] = [];
  const store: RegistryStore = {
    load: () => memory.load(),
    remove: (id) => memory.remove(id),
    close: () => memory.close(),
    save(record) {
      saves.push(record);
      return memory.save(record);
    },
  };
  const config = gatewayConfig({ models: options.models ?? [] });
  const gateway = await createGateway({
    config: { ...config, nodes: options.nodes ?? [] },
    scheduler,
    store,
    transport,
    drivers: [createSetDriver(options.probe ?? (() => ALIVE))],
    clock,
    givenNodes: options.given ?? [],
    ...(options.resolveName === undefined ? {} : { resolveName: options.resolveName }),
  });
  return { gateway, scheduler, clock, transport, store: memory, saves };
}

async function credentialOf(gateway: Gateway, node: NodeConfig): Promise<string> {
  const result = await gateway.register(node, 'api', '');
  if (result.kind !== 'registered') throw new Error(JSON.stringify(result));
  return result.credential;
}

describe('gateway.register', () => {
  test('gives a credential once, keeps its hash alone, and is durable when it resolves', async () => {
    const { gateway, store } = await bench();
    const credential = await credentialOf(gateway, nodeConfig('a'));
    expect(Buffer.from(credential, 'base64url')).toHaveLength(32);
    const [record] = await store.load();
    expect(record).toMatchObject({
      credentialSha256: hashCredential(credential),
      generation: 1,
      source: 'api',
    });
    expect(JSON.stringify([record, gateway.dump()])).not.toContain(credential);
  });

  test('refuses an id that another credential holds, and renews for its owner with memory kept', async () => {
    const { gateway, store } = await bench();
    const credential = await credentialOf(gateway, nodeConfig('a'));
    expect(await gateway.register(nodeConfig('a'), 'api', '')).toEqual({ kind: 'id-taken' });
    expect(await gateway.register(nodeConfig('a'), 'api', 'wrong')).toEqual({ kind: 'id-taken' });
    await gateway.setCordoned('a', true);
    const renewed = await gateway.register(nodeConfig('a', { slots: 7 }), 'api', credential);
    expect(renewed).toMatchObject({ kind: 'registered', credential: '', node: { cordoned: true, slots: 7 } });
    const [record] = await store.load();
    expect(record).toMatchObject({ generation: 2, memory: { cordoned: true } });
    expect(gateway.heartbeat('a', credential)).toBe(true);
  });

  test('gives one of two simultaneous registrations the id', async () => {
    const { gateway } = await bench();
    const results = await Promise.all([
      gateway.register(nodeConfig('a'), 'api', ''),
      gateway.register(nodeConfig('a'), 'api', ''),
    ]);
    expect(results.map((result) => result.kind).sort()).toEqual(['id-taken', 'registered']);
  });

  test('leaves nothing behind when the registry cannot save', async () => {
    const memory = createMemoryRegistry();
    let isBroken = true;
    const store: RegistryStore = {
      ...memory,
      save: (record) => (isBroken ? Promise.reject(new Error('disk full')) : memory.save(record)),
    };
    const { gateway, transport } = await bench({ store });
    await expect(gateway.register(nodeConfig('a'), 'api', '')).rejects.toThrow('disk full');
    expect(gateway.nodes()).toEqual([]);
    expect(transport.opened.size).toBe(0);
    isBroken = false;
    expect(await gateway.register(nodeConfig('a'), 'api', '')).toMatchObject({ kind: 'registered' });
    isBroken = true;
    const row = gateway.node('a');
    await expect(gateway.register(nodeConfig('a', { slots: 9 }), 'command-line', '')).rejects.toThrow(
      'disk full',
    );
    expect(gateway.node('a')).toEqual(row);
  });

  test('refuses forbidden URLs and protocols by name, also behind a DNS name', async () => {
    const { gateway } = await bench({ resolveName: async () => ['169.254.169.254'] });
    const attempt = (change: Partial<NodeConfig>) => gateway.register(nodeConfig('a', change), 'api', '');
    expect(await attempt({ url: 'http://169.254.169.254' })).toEqual({
      kind: 'refused',
      rule: 'metadata-address',
    });
    expect(await attempt({ url: 'http://gpu.example.com' })).toEqual({
      kind: 'refused',
      rule: 'metadata-address',
    });
    expect(await attempt({ protocol: 'x' as never })).toEqual({ kind: 'refused', rule: 'protocol-unknown' });
    expect(gateway.nodes()).toEqual([]);
  });

  test('refuses by nodes-max at the bound and takes a node again when one has left', async () => {
    const given = Array.from({ length: NODES_MAX }, (_, i) => ({
      node: nodeConfig(`n${i}`),
      source: 'discovered' as const,
    }));
    const { gateway } = await bench({ given });
    expect(await gateway.register(nodeConfig('more'), 'api', '')).toEqual({
      kind: 'refused',
      rule: 'nodes-max',
    });
    await gateway.removeNode('n0');
    expect(await gateway.register(nodeConfig('more'), 'api', '')).toMatchObject({ kind: 'registered' });
  });

  test('asks a node without a model list before it answers', async () => {
    const { gateway } = await bench({ probe: () => ({ ...ALIVE, models: [{ model: 'found' }], slots: 3 }) });
    const { slots: _slots, ...open } = nodeConfig('a', { models: [] });
    const result = await gateway.register(open, 'api', '');
    expect(result).toMatchObject({ kind: 'registered', node: { slots: 3 } });
    expect(gateway.models()).toEqual(['found']);
  });
});

describe('gateway.heartbeat', () => {
  test('writes nothing, takes slots, and makes silence count from the first one', async () => {
    const { gateway, scheduler, saves } = await bench();
    const { slots: _slots, ...open } = nodeConfig('a');
    const credential = await credentialOf(gateway, open);
    await turn();
    const written = saves.length;
    expect(gateway.node('a')?.spec.heartbeats).toBe(false);
    for (let i = 0; i < 100; i += 1) expect(gateway.heartbeat('a', credential, { slots: 5 })).toBe(true);
    expect(gateway.node('a')?.spec).toMatchObject({ heartbeats: true, slots: 5 });
    expect(scheduler.seen.filter((event) => event.kind === 'node-registered')).toHaveLength(2);
    expect(saves).toHaveLength(written);
  });

  test('is refused for an unknown node, another credential, and a node without one', async () => {
    const { gateway } = await bench({ given: [{ node: nodeConfig('cli'), source: 'command-line' }] });
    const credential = await credentialOf(gateway, nodeConfig('a'));
    await credentialOf(gateway, nodeConfig('b'));
    expect(gateway.heartbeat('x', credential)).toBe(false);
    expect(gateway.heartbeat('b', credential)).toBe(false);
    expect(gateway.heartbeat('cli', '')).toBe(false);
    expect(gateway.heartbeat('cli', credential)).toBe(false);
  });

  test.each([0, -1, 1.5, Number.NaN, 1e9])('ignores the absurd number of slots %d', async (slots) => {
    const { gateway } = await bench();
    const credential = await credentialOf(gateway, nodeConfig('a', { slots: 2 }));
    expect(gateway.heartbeat('a', credential, { slots })).toBe(true);
    expect(gateway.node('a')?.slots).toBe(2);
  });
});

describe('a restart', () => {
  test('brings nodes back before the gateway is ready, with cordon, drain, rates and the rest of the sleep', async () => {
    const store = createMemoryRegistry();
    const clock = createHandClock();
    const rates = [{ model: 'm', rate: 0.5, observations: 9 }];
    const record = (id: string, change: Partial<NodeRecord>): NodeRecord => ({
      config: nodeConfig(id),
      source: 'api',
      generation: 3,
      credentialSha256: hashCredential('secret'),
      memory: { cordoned: false, draining: false, ejectedForUs: 0, ejections: 2, rates },
      ejectedUntilMs: 0,
      updatedAtMs: 0,
      ...change,
    });
    await store.save(
      record('cordoned', {
        memory: { cordoned: true, draining: false, ejectedForUs: 0, ejections: 0, rates },
      }),
    );
    await store.save(record('asleep', { ejectedUntilMs: clock.wallMs() + 4_000 }));
    await store.save(record('rested', { ejectedUntilMs: clock.wallMs() - 4_000 }));
    const { gateway, transport } = await bench({ store });
    expect(gateway.ready).toBe(true);
    expect(gateway.node('cordoned')).toMatchObject({ cordoned: true, rates });
    expect(gateway.node('asleep')).toMatchObject({ state: 'ejected', ejectedForMs: 4_000, ejections: 2 });
    expect(gateway.node('rested')).toMatchObject({ state: 'unverified', ejectedForMs: 0 });
    expect([...transport.opened.keys()].sort()).toEqual(['asleep', 'cordoned', 'rested']);
    expect(gateway.heartbeat('rested', 'secret')).toBe(true);
  });

  test('serves models that only the engine named, before it was asked again', async () => {
    const store = createMemoryRegistry();
    const open = nodeConfig('a', { models: [] });
    const first = await bench({ store, probe: () => ({ ...ALIVE, models: [{ model: 'found' }] }) });
    await credentialOf(first.gateway, open);
    await first.gateway.shutdown();
    const second = await bench({ store, probe: () => new Promise(() => {}) });
    expect(second.gateway.resolveModel('found')).toBe('found');
  });

  test('forgets nodes that vanished from the configuration or the command line, and keeps the others', async () => {
    const store = createMemoryRegistry();
    const first = await bench({
      store,
      nodes: [nodeConfig('conf'), nodeConfig('stays')],
      given: [
        { node: nodeConfig('cli'), source: 'command-line' },
        { node: nodeConfig('found'), source: 'discovered' },
      ],
    });
    await credentialOf(first.gateway, nodeConfig('api'));
    await first.gateway.shutdown();
    const second = await bench({ store, nodes: [nodeConfig('stays')] });
    expect(
      second.gateway
        .nodes()
        .map((row) => row.id)
        .sort(),
    ).toEqual(['api', 'found', 'stays']);
    await turn();
    expect((await store.load()).map((record) => record.config.id).sort()).toEqual(['api', 'found', 'stays']);
  });

  test('raises the generation of a configured node only if its configuration changed', async () => {
    const store = createMemoryRegistry();
    await bench({ store, nodes: [nodeConfig('a')] });
    const same = await bench({ store, nodes: [nodeConfig('a')] });
    expect(same.saves).toEqual([]);
    const other = await bench({ store, nodes: [nodeConfig('a', { slots: 8 })] });
    expect(other.saves.map((record) => record.generation)).toEqual([2]);
  });

  test('never writes a key or a certificate into the registry', async () => {
    const store = createMemoryRegistry();
    const node = nodeConfig('a', { key: { value: 'top-secret', origin: 'env K' }, tls: { key: 'private' } });
    const { transport } = await bench({ store, nodes: [node] });
    expect(transport.opened.get('a')?.headers).toEqual(['authorization', 'Bearer top-secret']);
    expect(transport.opened.get('a')?.tls).toEqual({ key: 'private' });
    expect(JSON.stringify(await store.load())).not.toMatch(/top-secret|private/);
  });
});

describe('reconcile', () => {
  test('without any event a dead node becomes suspect and a recovered one active, within 30 s', async () => {
    let answer = ALIVE;
    const { gateway, clock } = await bench({ nodes: [nodeConfig('a')], probe: () => answer });
    const pass = async (seconds: number): Promise<void> => {
      for (let i = 0; i < seconds * 4; i += 1) {
        clock.advance(250);
        await turn();
      }
    };
    await pass(30);
    expect(gateway.node('a')?.state).toBe('active');
    answer = DEAD;
    await pass(30);
    expect(gateway.node('a')?.state).toBe('suspect');
    answer = ALIVE;
    await pass(30);
    expect(gateway.node('a')?.state).toBe('active');
  });

  test('asks again soon after the first failure, and at the usual rhythm while the node stays dead', async () => {
    let answer = ALIVE;
    const asked: number[] = [];
    const { gateway, clock } = await bench({
      nodes: [nodeConfig('a')],
      probe: () => {
        asked.push(clock.nowUs() / 1_000);
        return answer;
      },
    });
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 250) {
        clock.advance(250);
        await turn();
      }
    };
    const { reconcileMs } = gateway.config.scheduler.health;
    await pass(2 * reconcileMs);
    answer = DEAD;
    asked.length = 0;
    await pass(5 * reconcileMs);
    const gaps = asked.slice(1).map((at, i) => at - (asked[i] as number));
    expect(gaps[0]).toBeLessThanOrEqual(reconcileMs / 4 + 250);
    for (const gap of gaps.slice(1)) expect(gap).toBeGreaterThanOrEqual(reconcileMs - 250);
  });

  test('follows an interval that the configuration shortens', async () => {
    let asked = 0;
    const { gateway, clock } = await bench({
      nodes: [nodeConfig('a')],
      probe: () => {
        asked += 1;
        return ALIVE;
      },
    });
    const { config } = gateway;
    const withInterval = (reconcileMs: number) => ({
      ...config,
      scheduler: { ...config.scheduler, health: { ...config.scheduler.health, reconcileMs } },
    });
    gateway.reconfigure(withInterval(3_600_000));
    for (let i = 0; i < 120; i += 1) {
      clock.advance(250);
      await turn();
    }
    const before = asked;
    gateway.reconfigure(withInterval(1_000));
    for (let i = 0; i < 16; i += 1) {
      clock.advance(250);
      await turn();
    }
    expect(asked - before).toBeGreaterThanOrEqual(2);
  });

  test('takes silence for death only while nothing runs there', async () => {
    let answer: EngineProbe = ALIVE;
    const { gateway, clock, scheduler } = await bench({ nodes: [nodeConfig('a')], probe: () => answer });
    const listener = notedListener();
    const { taskId } = gateway.submit(submitSpec(), listener);
    await turn();
    answer = { ...DEAD, silent: true };
    const deaths = (): number =>
      scheduler.seen.filter((event) => event.kind === 'node-probed' && !event.alive).length;
    for (let i = 0; i < 120; i += 1) {
      clock.advance(250);
      await turn();
    }
    expect(deaths()).toBe(0);
    gateway.attemptEnded(taskId, { kind: 'ok' });
    for (let i = 0; i < 120; i += 1) {
      clock.advance(250);
      await turn();
    }
    expect(deaths()).toBeGreaterThan(0);
  });

  test('never has more probes under way than its bound, and gets to everybody', async () => {
    let underway = 0;
    let most = 0;
    const asked = new Set<string>();
    const waiting: (() => void)[] = [];
    const nodes = Array.from({ length: 300 }, (_, i) => nodeConfig(`n${i}`));
    const { clock } = await bench({
      nodes,
      probe: async (endpoint) => {
        asked.add(endpoint.id);
        underway += 1;
        most = Math.max(most, underway);
        await new Promise<void>((resolve) => waiting.push(resolve));
        underway -= 1;
        return ALIVE;
      },
    });
    for (let i = 0; i < 24; i += 1) {
      clock.advance(250);
      await turn();
    }
    expect(most, 'nobody has answered yet').toBe(PROBES_MAX);
    while (waiting.length > 0) {
      for (const answer of waiting.splice(0)) answer();
      await turn();
    }
    expect(asked.size).toBe(300);
    expect(most).toBe(PROBES_MAX);
  });

  test('spreads the first look at a known fleet instead of asking all at once', async () => {
    const nodes = Array.from({ length: 1_000 }, (_, i) => nodeConfig(`n${i}`));
    let asked = 0;
    const { clock } = await bench({
      nodes,
      probe: () => {
        asked += 1;
        return ALIVE;
      },
    });
    clock.advance(250);
    await turn();
    expect(asked).toBeLessThan(120);
  });

  test('tells the scheduler when an engine changes its models, and forgets the old ones', async () => {
    let models = [{ model: 'one' }];
    const { gateway, clock } = await bench({
      nodes: [nodeConfig('a', { models: [] })],
      probe: () => ({ ...ALIVE, models }),
    });
    expect(gateway.models()).toEqual(['one']);
    models = [{ model: 'two' }];
    for (let i = 0; i < 120; i += 1) {
      clock.advance(250);
      await turn();
    }
    expect(gateway.models()).toEqual(['two']);
    expect(gateway.resolveModel('one')).toBeUndefined();
  });
});

describe('persistence', () => {
  test('coalesces what a node learned into one write per half minute', async () => {
    const { gateway, clock, saves } = await bench({ nodes: [nodeConfig('a')] });
    await turn();
    const before = saves.length;
    for (let i = 0; i < 240; i += 1) {
      const { taskId } = gateway.submit(submitSpec(), notedListener());
      await turn();
      gateway.attemptEnded(taskId, { kind: 'ok' });
      clock.advance(250);
      await turn();
    }
    expect(saves.length - before).toBeGreaterThanOrEqual(1);
    expect(saves.length - before).toBeLessThanOrEqual(2);
  });

  test('writes on shutdown what was learned since', async () => {
    const { gateway, saves } = await bench({ nodes: [nodeConfig('a')] });
    await turn();
    const before = saves.length;
    const { taskId } = gateway.submit(submitSpec(), notedListener());
    await turn();
    gateway.attemptEnded(taskId, { kind: 'ok' });
    await gateway.shutdown();
    expect(saves.length - before).toBe(1);
  });

  test('makes a cordon and a drain durable before it says so', async () => {
    const { gateway, store } = await bench({ nodes: [nodeConfig('a')] });
    expect(await gateway.setCordoned('a', true)).toBe(true);
    expect((await store.load())[0]?.memory.cordoned).toBe(true);
    expect(await gateway.setDraining('a', true)).toBe(true);
    expect((await store.load())[0]?.memory).toMatchObject({ cordoned: true, draining: true });
    expect(await gateway.setCordoned('nobody', true)).toBe(false);
  });
});

describe('gateway.removeNode', () => {
  test('forgets an idle node at once and a busy one when its work is done', async () => {
    const { gateway, store, transport } = await bench({ nodes: [nodeConfig('a')] });
    const listener = notedListener();
    const { taskId } = gateway.submit(submitSpec(), listener);
    await turn();
    expect(await gateway.removeNode('a')).toBe(true);
    expect(await store.load()).toEqual([]);
    expect(gateway.node('a')?.draining).toBe(true);
    gateway.attemptEnded(taskId, { kind: 'ok' });
    await turn();
    expect(listener.outcome).toEqual({ kind: 'served' });
    expect(gateway.node('a')).toBeUndefined();
    expect(transport.closed).toEqual(['a']);
    expect(gateway.resolveModel('m')).toBeUndefined();
    expect(await gateway.removeNode('a')).toBe(false);
  });
});

describe('gateway.reconfigure', () => {
  test('registers new nodes, renews changed ones, drains removed ones, leaves registered ones alone', async () => {
    const { gateway, transport } = await bench({
      nodes: [nodeConfig('a'), nodeConfig('b'), nodeConfig('c')],
    });
    await credentialOf(gateway, nodeConfig('api'));
    await gateway.setCordoned('b', true);
    const nodes = [nodeConfig('a'), nodeConfig('b', { slots: 4 }), nodeConfig('d')];
    gateway.reconfigure({ ...gateway.config, nodes });
    expect(
      gateway
        .nodes()
        .map((row) => row.id)
        .sort(),
    ).toEqual(['a', 'api', 'b', 'd']);
    expect(gateway.node('b')).toMatchObject({ slots: 4, cordoned: true });
    expect(transport.closed).toEqual(['c']);
  });

  test('takes back a node that was draining away', async () => {
    const { gateway } = await bench({ nodes: [nodeConfig('a')] });
    const { taskId } = gateway.submit(submitSpec(), notedListener());
    await turn();
    gateway.reconfigure({ ...gateway.config, nodes: [] });
    expect(gateway.node('a')?.draining).toBe(true);
    gateway.reconfigure({ ...gateway.config, nodes: [nodeConfig('a')] });
    expect(gateway.node('a')?.draining).toBe(false);
    gateway.attemptEnded(taskId, { kind: 'ok' });
    await turn();
    expect(gateway.node('a')).toBeDefined();
  });
});

describe('model names', () => {
  const models = [
    { id: 'llama', aliases: ['llama3.2:1b', 'gpt-4'], profile: { kind: 'generic', meanMs: 10 } },
  ];

  test('an engine that serves a model under an alias is asked for it by its own name', async () => {
    const { gateway } = await bench({
      models,
      nodes: [nodeConfig('a', { models: [{ model: 'llama3.2:1b' }] })],
    });
    expect(gateway.resolveModel('gpt-4')).toBe('llama');
    expect(gateway.models()).toEqual(['llama']);
    const listener = notedListener();
    gateway.submit(submitSpec('llama'), listener);
    await turn();
    expect(listener.last).toMatchObject({ nodeId: 'a', upstreamModel: 'llama3.2:1b' });
  });

  test('names of the object prototype and unknown names are unknown', async () => {
    const { gateway } = await bench({ models });
    for (const name of ['__proto__', 'constructor', '', 'nope'])
      expect(gateway.resolveModel(name)).toBeUndefined();
  });
});
