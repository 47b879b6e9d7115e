/**
 * Amnesia (Layr-Labs/d-inference#512: a bad node reconnects and is clean): what was acknowledged of nodes survives
 * the death of the process, without any chance to say goodbye.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createEngineDrivers } from '../../src/adapters/engines/index.ts';
import { createSqliteRegistry, RegistryError } from '../../src/adapters/registry-sqlite/index.ts';
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

const CHILD = fileURLToPath(new URL('registry-child.ts', import.meta.url));
const NODES = 1_000;

let folder = '';
const children: ChildProcess[] = [];
const gateways: Gateway[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-kill-'));
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const gateway of gateways.splice(0)) await gateway.shutdown();
  rmSync(folder, { recursive: true, force: true });
});

interface Told {
  readonly state: string;
  readonly credential: string;
}

/** Runs a gateway in a process of its own until all it was asked is durable, then kills it. */
async function runAndKill(): Promise<Told> {
  const child = spawn(process.execPath, [CHILD, folder, String(NODES)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    child.once('exit', (code) => reject(new Error(`The child ended by itself with code ${code}`)));
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
  return JSON.parse(line) as Told;
}

async function start(): Promise<Gateway> {
  const config = gatewayConfig();
  const gateway = await createGateway({
    config,
    scheduler: createScheduler(config.scheduler),
    store: createSqliteRegistry(folder),
    transport: createNotingTransport(),
    drivers: createEngineDrivers(),
  });
  gateways.push(gateway);
  return gateway;
}

test('after kill -9 the known nodes serve at once as unverified; cordoned and ejected still are', async () => {
  const told = await runAndKill();
  expect(told.state).toBe('ejected');
  const gateway = await start();
  expect(gateway.ready).toBe(true);
  expect(gateway.nodes()).toHaveLength(NODES + 2);
  expect(gateway.node('node-7')?.state).toBe('unverified');
  expect(gateway.node('held')).toMatchObject({ state: 'cordoned', cordoned: true });
  expect(gateway.node('failing')).toMatchObject({ state: 'ejected', ejections: 1 });

  const listener = notedListener();
  const { taskId } = gateway.submit(submitSpec('m', { receivedAt: gateway.now() }), listener);
  await Promise.resolve();
  expect(listener.calls, 'assigned in the same turn').toHaveLength(1);
  expect(listener.last?.nodeId).toMatch(/^node-/);
  gateway.attemptEnded(taskId, { kind: 'ok' });

  expect(gateway.heartbeat('node-0', told.credential), 'a credential outlives the process').toBe(true);
  expect(await gateway.register(nodeConfig('node-0'), 'api', 'stolen')).toEqual({ kind: 'id-taken' });
});

test('a second gateway on the same folder is told that it is locked, and the first goes on', async () => {
  const gateway = await start();
  await gateway.register(nodeConfig('a'), 'api', '');
  const second = createSqliteRegistry(folder);
  await expect(second.load()).rejects.toMatchObject({ code: 'registry-locked', retryable: true });
  await second.close();
  await gateway.register(nodeConfig('b'), 'api', '');
  expect(gateway.nodes()).toHaveLength(2);
});

test('a file of a newer version is refused and left as it is', async () => {
  const path = join(folder, 'registry.sqlite');
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 99');
  database.close();
  const store = createSqliteRegistry(folder);
  await expect(store.load()).rejects.toMatchObject({ code: 'registry-schema-newer', retryable: false });
  await store.close();
  const after = new DatabaseSync(path);
  expect(after.prepare('PRAGMA user_version').get()).toEqual({ user_version: 99 });
  after.close();
});

test('a file that is no database is refused as corrupt, never overwritten', async () => {
  const path = join(folder, 'registry.sqlite');
  const text = 'this was written by somebody else, and is long enough to look like a page';
  writeFileSync(path, text);
  const store = createSqliteRegistry(folder);
  await expect(store.load()).rejects.toBeInstanceOf(RegistryError);
  await expect(store.load()).rejects.toMatchObject({ code: 'registry-corrupt' });
  await store.close();
  expect(readFileSync(path, 'utf8')).toBe(text);
});

test('writes after the close, and writes beyond the bound, are refused by code', async () => {
  const store = createSqliteRegistry(folder);
  const record = {
    config: nodeConfig('a'),
    source: 'api',
    generation: 1,
    credentialSha256: '',
    memory: { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0, rates: [] },
    ejectedUntilMs: 0,
    updatedAtMs: 0,
  } as const;
  const writes = await Promise.allSettled(Array.from({ length: 20_001 }, () => store.save(record)));
  const refused = writes.filter((write) => write.status === 'rejected');
  expect(refused.map((write) => (write.reason as RegistryError).code)).toEqual(['registry-busy']);
  await store.close();
  await expect(store.save(record)).rejects.toMatchObject({ code: 'registry-closed' });
});

test('the folder is for the owner alone', async () => {
  const store = createSqliteRegistry(join(folder, 'inner', 'state'));
  await store.load();
  await store.close();
  expect(statSync(join(folder, 'inner', 'state')).mode & 0o777).toBe(0o700);
});
