import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteRegistry } from '../../src/adapters/registry-sqlite/registry-sqlite.ts';
import { registryStoreSuite } from './suite.ts';

let folder = '';

registryStoreSuite({
  name: 'sqlite',
  isDurable: true,
  fresh() {
    folder = mkdtempSync(join(tmpdir(), 'spillway-registry-'));
    return createSqliteRegistry(folder);
  },
  reopen: () => createSqliteRegistry(folder),
  clean: () => rmSync(folder, { recursive: true, force: true }),
});
