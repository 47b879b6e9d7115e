import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openOverlayStore, type OverlayStore, readCommandLine } from '../../adapters/config-file/index.ts';
import { type ConfigInput, type GatewayConfig, type JsonObject, SETTINGS } from '../../core/config/index.ts';
import type { Gateway } from '../../runtime/contract.ts';
import { mergeConfig } from '../../runtime/config-change.ts';
import { SILENT_LOG } from '../../runtime/log.ts';
import { createLiveConfig, type GoodConfig, type LiveConfig } from './live-config.ts';

function read(more: ConfigInput = {}): GoodConfig {
  const found = readCommandLine({
    environment: {},
    commandLine: { tenants: [{ id: 'acme', keys: [{ id: 'k', sha256: 'a'.repeat(64) }] }], ...more },
  });
  if (found.kind === 'issues') throw new Error(JSON.stringify(found.issues));
  return found;
}

function memoryStore(): OverlayStore {
  const opened = openOverlayStore('');
  if (opened.kind === 'refused') throw new Error(opened.rule);
  return opened.store;
}

interface Bench {
  readonly live: LiveConfig;
  readonly config: GatewayConfig;
  /** What the file says from now on. */
  file: ConfigInput;
}

/** Everything but the gateway itself, which only takes what it is given. */
function createBench(overlays: OverlayStore = memoryStore()): Bench {
  const initial = read();
  const state = { config: initial.config, file: {} };
  const gateway = {
    get config() {
      return state.config;
    },
    reconfigure(next: GatewayConfig) {
      const { config, needsRestart } = mergeConfig(state.config, next);
      state.config = config;
      return { needsRestart };
    },
  } as Gateway;
  const live = createLiveConfig({
    gateway,
    log: SILENT_LOG,
    read: () => read(state.file),
    initial,
    overlays,
    wallMs: () => 1_000,
  });
  return {
    live,
    set file(next: ConfigInput) {
      state.file = next;
    },
    get config() {
      return state.config;
    },
  };
}

/** One number of the table of settings, at one of the ends of its range or between. */
const setting: fc.Arbitrary<JsonObject> = fc
  .tuple(
    fc.constantFrom(...(Object.keys(SETTINGS) as (keyof typeof SETTINGS)[])),
    fc.double({ min: 0, max: 1, noNaN: true }),
  )
  .map(([path, part]) => {
    const { min, max, integer } = SETTINGS[path];
    const value = integer ? Math.floor(min + part * (max - min)) : min + part * (max - min);
    const names = path
      .replace('classes[]', 'classes.critical')
      .replace('tenants[]', 'tenants.acme')
      .replace('models[]', 'models.m')
      .split('.');
    return names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as JsonObject;
  });

describe('createLiveConfig', () => {
  test('restores the configuration exactly when a change is rolled back, after any changes', async () => {
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(setting, { maxLength: 4 }), setting, async (before, patch) => {
        const bench = createBench();
        for (const one of before) await bench.live.change({ patch: one, why: 'before' });
        const { version, overlay } = bench.live.status();
        const config = structuredClone(bench.config);
        const verdict = await bench.live.change({ patch, why: 'try' });
        if (verdict.kind === 'issues') expect(bench.config).toEqual(config);
        else taken += 1;
        await bench.live.rollback({ version });
        expect(bench.config).toEqual(config);
        expect(bench.live.status().overlay).toEqual(overlay);
      }),
      { numRuns: 60 },
    );
    expect(taken, 'some changes were valid').toBeGreaterThan(10);
  });

  test('tells every issue at once, by name and without secrets, and stores nothing', async () => {
    const { live } = createBench();
    const patch = {
      bounds: { tasksMax: -1, tasksMx: 5 },
      classes: { critical: { weight: 'much' }, urgent: { weight: 2 } },
      tenants: { acme: { keys: [{ id: 'k', file: '/etc/shadow' }], weight: 0 } },
      nodes: [{ url: 'http://169.254.169.254' }],
    };
    const verdict = await live.change({ patch, why: 'try' });
    const issues =
      verdict.kind === 'issues'
        ? verdict.issues.map(({ path, rule, received }) => [path.join('.'), rule, received])
        : [];
    expect(issues).toEqual([
      ['nodes', expect.stringContaining('/spillway/v1/nodes'), ''],
      ['tenants.acme.keys', expect.stringContaining('spillway keys'), ''],
      ['classes.critical.weight', 'Expected a number', '"much"'],
      ['bounds.tasksMx', 'Unknown key; did you mean tasksMax?', ''],
      ['bounds.tasksMax', expect.stringMatching(/^Expected a whole number from 1/), '-1'],
      ['tenants.acme.weight', expect.stringMatching(/^Expected a number from/), '0'],
    ]);
    const names = await live.change({
      patch: { bonds: { tasksMax: 5 }, classes: { urgent: { weight: 2 } } },
      why: 'try',
    });
    expect(names.kind === 'issues' ? names.issues.map(({ path }) => path.join('.')) : []).toEqual([
      'bonds',
      'classes.urgent',
    ]);
    expect(JSON.stringify(verdict)).not.toContain('shadow');
    expect(live.status()).toMatchObject({ version: 0, overlay: {} });
  });

  test('refuses a name that nobody knows, and a mapping over a whole list', async () => {
    const { live } = createBench();
    const unknown = await live.change({ patch: { classes: { urgent: { weight: 2 } } }, why: 'try' });
    expect(unknown).toMatchObject({ kind: 'issues', issues: [{ path: ['classes', 'urgent'] }] });
    await live.change({ patch: { classes: [{ name: 'normal' }] }, why: 'one class' });
    const mapping = await live.change({ patch: { classes: { normal: { weight: 2 } } }, why: 'try' });
    expect(mapping).toMatchObject({ kind: 'issues', issues: [{ path: ['classes'] }] });
  });

  test('names what waits for a restart, and takes nothing of it', async () => {
    const bench = createBench();
    const verdict = await bench.live.change({ patch: { seed: 7, server: { connectMs: 77 } }, why: 'try' });
    expect(verdict).toMatchObject({ kind: 'done', version: 1, needsRestart: ['server.connectMs', 'seed'] });
    expect(bench.config.scheduler.seed).not.toBe(7);
    expect(bench.live.status().needsRestart).toEqual(['server.connectMs', 'seed']);
  });

  test('lets one of two win who saw the same version', async () => {
    const { live } = createBench();
    const change = (tasksMax: number): ReturnType<LiveConfig['change']> =>
      live.change({ patch: { bounds: { tasksMax } }, why: 'race', expected: 0 });
    const [first, second] = await Promise.all([change(5), change(6)]);
    expect([first, second]).toMatchObject([
      { kind: 'done', version: 1 },
      { kind: 'stale', version: 1 },
    ]);
  });

  test('takes nothing that could not be stored, and goes on', async () => {
    const store = memoryStore();
    let isFull = true;
    const overlays: OverlayStore = {
      durable: true,
      get state() {
        return store.state;
      },
      commit: (next) => (isFull ? Promise.reject(new Error('ENOSPC')) : store.commit(next)),
    };
    const bench = createBench(overlays);
    const before = bench.config;
    await expect(bench.live.change({ patch: { bounds: { tasksMax: 5 } }, why: 'try' })).rejects.toThrow(
      'ENOSPC',
    );
    expect([bench.config, bench.live.status().version]).toEqual([before, 0]);
    isFull = false;
    expect(await bench.live.change({ patch: { bounds: { tasksMax: 5 } }, why: 'again' })).toMatchObject({
      version: 1,
    });
    expect(bench.config.scheduler.bounds.tasksMax).toBe(5);
  });

  test('makes no version of what changes nothing', async () => {
    const { live } = createBench();
    await live.change({ patch: { bounds: { tasksMax: 5 } }, why: 'once' });
    const again = await live.change({ patch: { bounds: { tasksMax: 5 } }, why: 'twice' });
    expect(again).toMatchObject({ kind: 'done', version: 1, changed: [] });
    expect(live.history()).toHaveLength(1);
  });

  test('takes or refuses whatever comes, and never half of it', async () => {
    const names = [
      'classes',
      'tenants',
      'models',
      'groups',
      'bounds',
      'server',
      'gates',
      'rum',
      'nodes',
      'critical',
    ];
    const key = fc.oneof(
      fc.constantFrom(...names, 'acme', 'weight', 'name', 'limits', 'profile'),
      fc.string({ maxLength: 3 }),
    );
    const value = fc.oneof(
      fc.constant(null),
      fc.integer(),
      fc.boolean(),
      fc.string({ maxLength: 3 }),
      fc.constant([null]),
    );
    const { patch } = fc.letrec<{ patch: JsonObject }>((tie) => ({
      patch: fc
        .array(
          fc.tuple(
            key,
            fc.oneof(
              { maxDepth: 4, depthSize: 'small' },
              value,
              fc.array(tie('patch'), { maxLength: 2 }),
              tie('patch'),
            ),
          ),
          {
            maxLength: 3,
          },
        )
        .map((entries) => Object.fromEntries(entries) as JsonObject),
    }));
    await fc.assert(
      fc.asyncProperty(patch, async (document) => {
        const bench = createBench();
        const { config } = bench;
        const verdict = await bench.live.change({ patch: document, why: 'any' });
        expect(['done', 'issues']).toContain(verdict.kind);
        if (verdict.kind !== 'issues') return;
        expect(verdict.issues.length).toBeGreaterThan(0);
        expect(bench.config).toBe(config);
        expect(bench.live.status()).toMatchObject({ version: 0, overlay: {} });
      }),
      { numRuns: 300 },
    );
  });

  test('lays the newest file below a change that was being stored when the file was read again', async () => {
    const store = memoryStore();
    const written = Promise.withResolvers<void>();
    const overlays: OverlayStore = {
      durable: true,
      get state() {
        return store.state;
      },
      async commit(state) {
        await written.promise;
        await store.commit(state);
      },
    };
    const bench = createBench(overlays);
    const change = bench.live.change({ patch: { placement: { heldMax: 8 } }, why: 'slow disk' });
    bench.file = { bounds: { tasksMax: 77 } };
    await new Promise((resolve) => setImmediate(resolve));
    expect(bench.live.reload()).toMatchObject({ kind: 'changed' });
    expect(bench.config.scheduler.placement.heldMax, 'not yet acknowledged').toBe(16);
    written.resolve();
    await change;
    expect(bench.config.scheduler).toMatchObject({ bounds: { tasksMax: 77 }, placement: { heldMax: 8 } });
  });

  test('lets values lie dormant whose entry left the file, and wakes them when it is back', async () => {
    const bench = createBench();
    const both: ConfigInput = { tenants: [{ id: 'acme' }, { id: 'zeta' }] };
    bench.file = both;
    bench.live.reload();
    await bench.live.change({ patch: { tenants: { zeta: { weight: 9 } } }, why: 'more for zeta' });
    bench.file = { tenants: [{ id: 'acme' }] };
    expect(bench.live.reload()).toMatchObject({ kind: 'changed' });
    expect(bench.live.status().dormant).toEqual(['tenants.zeta']);
    expect(bench.config.tenants).toHaveLength(1);
    const other = await bench.live.change({ patch: { bounds: { tasksMax: 5 } }, why: 'goes on' });
    expect(other).toMatchObject({ kind: 'done', version: 2 });
    bench.file = both;
    bench.live.reload();
    expect(bench.config.tenants[1]).toMatchObject({ id: 'zeta', weight: 9 });
    expect(bench.live.status().dormant).toEqual([]);
  });

  test('keeps the running configuration when the new file does not go with the overlay', async () => {
    const bench = createBench();
    await bench.live.change({ patch: { admission: { marginMin: 1.4 } }, why: 'careful' });
    bench.file = { admission: { marginMax: 1.2 } };
    expect(bench.live.reload()).toMatchObject({
      kind: 'refused',
      issues: [expect.stringMatching(/^overlay \(version 1\): admission\.marginMin: Expected at most/)],
    });
    expect(bench.config.scheduler.admission).toMatchObject({ marginMin: 1.4, marginMax: 1.5 });
  });
});
