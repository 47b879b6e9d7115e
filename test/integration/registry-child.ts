/**
 * A gateway to be killed: registers nodes over the API's road, cordons one, gets one ejected by its failures, and
 * says so once all of it is durable. Its parent kills it without warning.
 */
import { createEngineDrivers } from '../../src/adapters/engines/index.ts';
import { createSqliteRegistry } from '../../src/adapters/registry-sqlite/index.ts';
import { createScheduler } from '../../src/core/scheduler/scheduler.ts';
import type { RegistryStore } from '../../src/ports/registry-store.ts';
import { createGateway } from '../../src/runtime/gateway.ts';
import {
  createNotingTransport,
  gatewayConfig,
  nodeConfig,
  notedListener,
  submitSpec,
} from './runtime-fixture.ts';

const [folder = '', count = '0'] = process.argv.slice(2);
const config = gatewayConfig();
const sqlite = createSqliteRegistry(folder);
const ejectionSaved = Promise.withResolvers<void>();
const store: RegistryStore = {
  ...sqlite,
  async save(record) {
    await sqlite.save(record);
    if (record.config.id === 'failing' && record.ejectedUntilMs > 0) ejectionSaved.resolve();
  },
};
const gateway = await createGateway({
  config,
  scheduler: createScheduler(config.scheduler),
  store,
  transport: createNotingTransport(),
  drivers: createEngineDrivers(),
});

const nodes = Array.from({ length: Number(count) }, (_, i) => nodeConfig(`node-${i}`));
const results = await Promise.all(nodes.map((node) => gateway.register(node, 'api', '')));
await gateway.register(nodeConfig('held'), 'api', '');
await gateway.setCordoned('held', true);
await gateway.register(nodeConfig('failing', { models: [{ model: 'only-there' }], slots: 100 }), 'api', '');

for (let i = 0; i < 50 && gateway.node('failing')?.state !== 'ejected'; i += 1) {
  const listener = notedListener();
  const { taskId } = gateway.submit(submitSpec('only-there', { receivedAt: gateway.now() }), listener);
  await Promise.resolve();
  gateway.attemptEnded(taskId, { kind: 'failed', failure: 'server-error', retryable: false });
  await Promise.resolve();
}
await ejectionSaved.promise;
const [first] = results;
const credential = first?.kind === 'registered' ? first.credential : '';
process.stdout.write(`${JSON.stringify({ state: gateway.node('failing')?.state, credential })}\n`);
// Stays until it is killed.
setInterval(() => {}, 60_000);
