import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openOverlayStore, sha256Hex } from '../../src/adapters/config-file/index.ts';
import { readConfig } from '../../src/adapters/config-file/read-config.ts';
import { createLiveConfig, type LiveConfig } from '../../src/apps/gateway/live-config.ts';
import { type StartedGateway, startGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { RuntimeLog } from '../../src/runtime/log.ts';
import { call, chat, createFixture, type Fixture } from './cli-fixture.ts';

let fixture: Fixture;

beforeEach(() => {
  fixture = createFixture();
});

afterEach(() => fixture.end());

interface Live {
  readonly started: StartedGateway;
  readonly live: LiveConfig;
  /** Messages with their fields, as one line each. */
  readonly logged: string[];
  nodeIds(): string[];
}

async function start(file: string): Promise<Live> {
  const logged: string[] = [];
  const note = (fields: Readonly<Record<string, unknown>>, message: string): void => {
    logged.push(`${message} ${JSON.stringify(fields)}`);
  };
  const log: RuntimeLog = { info: note, warn: note, error: note };
  const read = (): ReturnType<typeof readConfig> =>
    readConfig({ file, environment: {}, commandLine: { server: { port: 0 } } });
  const initial = read();
  if (initial.kind === 'issues') throw new Error(JSON.stringify(initial.issues));
  const opened = openOverlayStore('');
  if (opened.kind === 'refused') throw new Error(opened.rule);
  const overlays = opened.store;
  const own: { live?: LiveConfig } = {};
  const started = await startGateway(initial.config, {
    log,
    configControl: (gateway) =>
      (own.live = createLiveConfig({ gateway, log, read, initial, overlays, wallMs: Date.now })),
  });
  fixture.onEnd(() => started.stop());
  const live = own.live as LiveConfig;
  await live.watch();
  fixture.onEnd(() => live.close());
  return {
    started,
    live,
    logged,
    nodeIds: () =>
      started.gateway
        .nodes()
        .map((node) => node.id)
        .toSorted(),
  };
}

function config(name: string, text: string): string {
  const file = join(fixture.folder, name);
  writeFileSync(file, text);
  return file;
}

const node = (id: string): string => `  - { id: ${id}, url: "http://127.0.0.1:9", models: [m] }\n`;
const eventually = { timeout: 15_000, interval: 20 };

describe('live reload', () => {
  test('takes nodes that were added and drains those that were removed', async () => {
    const file = config('c.yaml', `nodes:\n${node('a')}${node('b')}`);
    const { nodeIds } = await start(file);
    writeFileSync(file, `nodes:\n${node('b')}${node('c')}`);
    await vi.waitUntil(() => nodeIds().join() === 'b,c', eventually);
  });

  test('sees a file that is renamed over, again and again', async () => {
    const file = config('c.yaml', `nodes:\n${node('a')}`);
    const { nodeIds } = await start(file);
    for (const id of ['b', 'c', 'd']) {
      renameSync(config('next.yaml', `nodes:\n${node(id)}`), file);
      await vi.waitUntil(() => nodeIds().join() === id, eventually);
    }
  });

  test('sees the swap of a mounted ConfigMap', async () => {
    const publish = (version: string, id: string): void => {
      mkdirSync(join(fixture.folder, version));
      config(join(version, 'c.yaml'), `nodes:\n${node(id)}`);
      symlinkSync(version, join(fixture.folder, '..data_tmp'));
      renameSync(join(fixture.folder, '..data_tmp'), join(fixture.folder, '..data'));
    };
    publish('..v1', 'a');
    symlinkSync('..data/c.yaml', join(fixture.folder, 'c.yaml'));
    const { nodeIds } = await start(join(fixture.folder, 'c.yaml'));
    publish('..v2', 'b');
    await vi.waitUntil(() => nodeIds().join() === 'b', eventually);
    publish('..v3', 'c');
    await vi.waitUntil(() => nodeIds().join() === 'c', eventually);
  });

  test('keeps the running configuration when the new one is invalid, and says every issue', async () => {
    const file = config('c.yaml', `nodes:\n${node('a')}`);
    const { nodeIds, logged } = await start(file);
    writeFileSync(file, 'nodes: [{ url: nope }]\nbonds: {}');
    await vi.waitUntil(() => logged.some((line) => line.includes('is invalid')), eventually);
    const line = logged.find((entry) => entry.includes('is invalid'));
    expect(line).toMatch(/c\.yaml:1:16: nodes\[0\]\.url.*c\.yaml:2:1: bonds: Unknown key/);
    expect(nodeIds()).toEqual(['a']);
    writeFileSync(file, `nodes:\n${node('b')}`);
    await vi.waitUntil(() => nodeIds().join() === 'b', eventually);
  });

  test('names what waits for a restart and takes the rest', async () => {
    const file = config('c.yaml', `server: { host: 127.0.0.1 }\nseed: 1\nnodes:\n${node('a')}`);
    const { live, started, logged } = await start(file);
    const before = started.gateway.config.server.host;
    writeFileSync(file, `server: { host: localhost, earlyCommitMs: 50 }\nseed: 2\nnodes:\n${node('a')}`);
    live.reload();
    expect(started.gateway.config.server).toMatchObject({ host: before, earlyCommitMs: 50 });
    expect(logged.some((line) => /wait for a restart.*server\.host.*seed/.test(line))).toBe(true);
    expect(live.status().origins['server.earlyCommitMs']).toMatch(/c\.yaml:1$/);
    expect(live.status().origins['server.port']).toBe('command line');
  });

  test('swaps keys: the new one opens, the old one closes', async () => {
    const stub = await fixture.stub();
    const tenants = (secret: string): string =>
      `tenants: [{ id: acme, keys: [{ id: k, sha256: ${sha256Hex(secret)} }] }]\nnodes: [{ id: a, url: "${stub.url}", models: [stub-model] }]\n`;
    const file = config('c.yaml', tenants('old'));
    const { started } = await start(file);
    expect((await chat(started.dataUrl, { token: 'old' })).status).toBe(200);
    writeFileSync(file, tenants('new'));
    await vi.waitUntil(
      async () => (await chat(started.dataUrl, { token: 'new' })).status === 200,
      eventually,
    );
    expect((await chat(started.dataUrl, { token: 'old' })).status).toBe(401);
  });

  test('loses no request that waits or runs', async () => {
    const stub = await fixture.stub();
    const text = (extra: string): string =>
      `nodes: [{ id: a, url: "${stub.url}", models: [stub-model], slots: 1 }]\n${extra}`;
    const file = config('c.yaml', text(''));
    const { started, live } = await start(file);
    stub.holding = true;
    const running = chat(started.dataUrl);
    await vi.waitUntil(() => stub.calls === 1, { timeout: 20_000 });
    const waiting = chat(started.dataUrl);
    await vi.waitUntil(() => started.gateway.queue().depth === 1, { timeout: 20_000 });
    writeFileSync(file, text('bounds: { tasksMax: 500 }\nplacement: { heldMax: 8 }\n'));
    expect(live.reload()).toMatchObject({ kind: 'changed', needsRestart: [] });
    stub.release();
    expect([(await running).status, (await waiting).status]).toEqual([200, 200]);
    const shown = await call(`${started.adminUrl}/spillway/v1/config`, { token: started.adminToken });
    expect(shown.json).toMatchObject({
      config: { scheduler: { bounds: { tasksMax: 500 } } },
      origins: { 'bounds.tasksMax': expect.stringMatching(/c\.yaml:2$/) },
    });
  });

  test('does nothing when the file was written without a change', async () => {
    const file = config('c.yaml', `nodes:\n${node('a')}`);
    const { live } = await start(file);
    writeFileSync(file, `# a comment\nnodes:\n${node('a')}`);
    expect(live.reload()).toEqual({ kind: 'unchanged' });
  });
});
