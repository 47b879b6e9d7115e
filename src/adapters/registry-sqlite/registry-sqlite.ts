/**
 * The durable registry: SQLite behind a worker thread, with group commit.
 *
 * Writes that come while a commit is under way form the next one, so a thousand registrations at once cost a few
 * disk flushes, and a single write waits for one. A write resolves after its commit. Order is kept: a removal after
 * a save removes. At `PENDING_WRITES_MAX` waiting writes a save is refused with `registry-busy`.
 */
import { chmodSync, mkdirSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { NodeRecord, RegistryStore } from '../../ports/registry-store.ts';
import type { RegistryWrite, WorkerReply, WorkerRequest } from './messages.ts';
import { RegistryError } from './registry-error.ts';

/** Writes that wait for their commit. One record is about 1 KB. */
export const PENDING_WRITES_MAX = 20_000;
/** Writes in one transaction: keeps a commit below some ten milliseconds. */
const BATCH_MAX = 2_000;

export const REGISTRY_FILE = 'registry.sqlite';
/** The thread makes little garbage; the default would keep ten times as much memory for it. */
const YOUNG_GENERATION_MB = 2;
const FOLDER_MODE = 0o700;

interface Pending {
  readonly write: RegistryWrite;
  readonly resolve: () => void;
  readonly reject: (error: RegistryError) => void;
}

interface Asked {
  readonly resolve: (reply: WorkerReply) => void;
}

/** Opens, or creates, the registry in this folder. Problems with the file show at `load` or at the first write. */
export function createSqliteRegistry(folder: string): RegistryStore {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  // The folder also holds the admin token; an existing one is narrowed as well.
  chmodSync(folder, FOLDER_MODE);
  return openStore(join(folder, REGISTRY_FILE));
}

function openStore(path: string): RegistryStore {
  const worker = startWorker(path);
  const asked: Asked[] = [];
  const pending: Pending[] = [];
  let committing = false;
  let closing: Promise<void> | undefined;
  let ended = '';

  worker.on('message', (reply: WorkerReply) => asked.shift()?.resolve(reply));
  worker.on('error', (error) => fail(error instanceof Error ? error.message : String(error)));
  worker.on('exit', () => fail('its thread ended'));

  function fail(reason: string): void {
    if (ended === '') ended = reason;
    const reply: WorkerReply = { kind: 'failed', code: 'registry-closed', detail: ended };
    for (const one of asked.splice(0)) one.resolve(reply);
    for (const one of pending.splice(0)) one.reject(errorOf(reply));
  }

  function ask(request: WorkerRequest): Promise<WorkerReply> {
    if (ended !== '') return Promise.resolve({ kind: 'failed', code: 'registry-closed', detail: ended });
    return new Promise((resolve) => {
      asked.push({ resolve });
      worker.postMessage(request);
    });
  }

  /** Commits what waits, batch after batch, until nothing does. */
  async function commit(): Promise<void> {
    committing = true;
    // One turn of grace, so that writes of the same turn share the first commit.
    await Promise.resolve();
    while (pending.length > 0) {
      const batch = pending.splice(0, BATCH_MAX);
      const reply = await ask({ kind: 'write', writes: batch.map((one) => one.write) });
      for (const one of batch) {
        if (reply.kind === 'done') one.resolve();
        else one.reject(errorOf(reply));
      }
    }
    committing = false;
  }

  function enqueue(write: RegistryWrite): Promise<void> {
    if (closing !== undefined) return Promise.reject(closedError());
    if (pending.length >= PENDING_WRITES_MAX) {
      const rule = `at most ${PENDING_WRITES_MAX} writes wait`;
      return Promise.reject(new RegistryError('registry-busy', `Could not save to the registry: ${rule}`));
    }
    return new Promise((resolve, reject) => {
      pending.push({ write, resolve, reject });
      if (!committing) void commit();
    });
  }

  async function close(): Promise<void> {
    while (committing) await ask({ kind: 'write', writes: [] });
    await ask({ kind: 'close' });
    ended = 'it was closed';
    await worker.terminate();
  }

  return {
    async load() {
      const reply = await ask({ kind: 'load' });
      if (reply.kind !== 'loaded') throw errorOf(reply);
      return reply.records.map((text) => JSON.parse(text) as NodeRecord);
    },
    save(record) {
      const { config, generation, updatedAtMs } = record;
      const text = JSON.stringify(record);
      return enqueue({
        kind: 'save',
        id: config.id,
        generation,
        record: text,
        updatedAtMs: Math.round(updatedAtMs),
      });
    },
    remove: (nodeId) => enqueue({ kind: 'remove', id: nodeId }),
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/** Source and build differ in the extension only. */
function startWorker(path: string): Worker {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const compileCache = getCompileCacheDir();
  return new Worker(new URL(`./worker.${extension}`, import.meta.url), {
    workerData: path,
    // A thread does not inherit the cache of compiled code; with it, it starts sooner and in less memory.
    ...(compileCache === undefined ? {} : { env: { NODE_COMPILE_CACHE: compileCache } }),
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
}

function errorOf(reply: WorkerReply): RegistryError {
  if (reply.kind !== 'failed')
    return new RegistryError('registry-corrupt', 'The registry gave an unexpected answer');
  return new RegistryError(reply.code, `Could not use the registry: ${reply.detail}`);
}

function closedError(): RegistryError {
  return new RegistryError('registry-closed', 'Could not save to the registry: it was closed');
}
