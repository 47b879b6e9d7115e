import { createMemoryRegistry } from '../../src/adapters/registry-memory/registry-memory.ts';
import { registryStoreSuite } from './suite.ts';

registryStoreSuite({
  name: 'memory',
  isDurable: false,
  fresh: createMemoryRegistry,
  reopen: createMemoryRegistry,
  clean() {},
});
