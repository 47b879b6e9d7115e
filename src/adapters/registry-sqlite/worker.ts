/**
 * The thread that owns the database file. It answers one message at a time, so a batch is one transaction and one
 * disk flush, and nothing on the gateway's own thread ever waits for a disk.
 *
 * WAL with synchronous=FULL: a commit survives the kill of the process and the loss of power. The registry is
 * written a few times a minute, so the flush costs nothing that matters. The file is locked exclusively: two
 * gateways on one folder would overwrite each other's memory, so the second one is told.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { RegistryErrorCode, RegistryWrite, WorkerReply, WorkerRequest } from './messages.ts';

/** Raised with every change of the tables; a file with a higher one is refused, never guessed at. */
const SCHEMA_VERSION = 1;
/** Time for a predecessor that is being killed to let go of the file. */
const BUSY_MS = 2_000;

const SCHEMA = `
  CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    record TEXT NOT NULL,
    updated_at_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`;

const SAVE = `
  INSERT INTO nodes (id, generation, record, updated_at_ms) VALUES (?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET
    generation = excluded.generation, record = excluded.record, updated_at_ms = excluded.updated_at_ms
  WHERE excluded.generation >= nodes.generation`;

interface OpenRegistry {
  readonly database: DatabaseSync;
  readonly save: StatementSync;
  readonly remove: StatementSync;
  readonly load: StatementSync;
}

class SchemaNewer extends Error {}

function open(path: string): OpenRegistry {
  const database = new DatabaseSync(path);
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('PRAGMA journal_mode = WAL');
    database.exec('PRAGMA synchronous = FULL');
    migrate(database);
  } catch (thrown) {
    database.close();
    throw thrown;
  }
  return {
    database,
    save: database.prepare(SAVE),
    remove: database.prepare('DELETE FROM nodes WHERE id = ?'),
    load: database.prepare('SELECT record FROM nodes ORDER BY id'),
  };
}

function migrate(database: DatabaseSync): void {
  // Takes the exclusive lock now rather than at the first write.
  database.exec('BEGIN EXCLUSIVE');
  try {
    const row = database.prepare('PRAGMA user_version').get();
    const version = Number(row?.['user_version'] ?? 0);
    if (version > SCHEMA_VERSION) {
      throw new SchemaNewer(`Schema version ${version}, this program knows ${SCHEMA_VERSION}`);
    }
    if (version === 0) {
      database.exec(SCHEMA);
      database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    }
    database.exec('COMMIT');
  } catch (thrown) {
    database.exec('ROLLBACK');
    throw thrown;
  }
}

function write(registry: OpenRegistry, writes: readonly RegistryWrite[]): void {
  registry.database.exec('BEGIN IMMEDIATE');
  try {
    for (const one of writes) {
      if (one.kind === 'save') registry.save.run(one.id, one.generation, one.record, one.updatedAtMs);
      else registry.remove.run(one.id);
    }
    registry.database.exec('COMMIT');
  } catch (thrown) {
    if (registry.database.isTransaction) registry.database.exec('ROLLBACK');
    throw thrown;
  }
}

/** SQLite's primary result codes, from its documentation. */
function codeOf(thrown: unknown): RegistryErrorCode {
  if (thrown instanceof SchemaNewer) return 'registry-schema-newer';
  const errcode =
    typeof thrown === 'object' && thrown !== null && 'errcode' in thrown ? Number(thrown.errcode) & 0xff : 0;
  if (errcode === 5 || errcode === 6) return 'registry-locked';
  if (errcode === 11 || errcode === 26) return 'registry-corrupt';
  return 'registry-unwritable';
}

function answer(state: { registry: OpenRegistry | undefined }, request: WorkerRequest): WorkerReply {
  try {
    if (request.kind === 'close') {
      state.registry?.database.close();
      state.registry = undefined;
      return { kind: 'done' };
    }
    state.registry ??= open(String(workerData));
    if (request.kind === 'write') {
      write(state.registry, request.writes);
      return { kind: 'done' };
    }
    return { kind: 'loaded', records: state.registry.load.all().map((row) => String(row['record'])) };
  } catch (thrown) {
    return {
      kind: 'failed',
      code: codeOf(thrown),
      detail: thrown instanceof Error ? thrown.message : String(thrown),
    };
  }
}

const state: { registry: OpenRegistry | undefined } = { registry: undefined };
const port = parentPort;
port?.on('message', (request: WorkerRequest) => {
  port.postMessage(answer(state, request));
  if (request.kind === 'close') port.close();
});
