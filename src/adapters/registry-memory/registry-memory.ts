/** A registry that lasts as long as the process: for runs without a state folder, and for tests. */
import type { NodeId } from '../../base/units.ts';
import type { NodeRecord, RegistryStore } from '../../ports/registry-store.ts';

export function createMemoryRegistry(): RegistryStore {
  const records = new Map<NodeId, NodeRecord>();
  return {
    load: async () => [...records.values()],
    async save(record) {
      const known = records.get(record.config.id);
      if (known !== undefined && known.generation > record.generation) return;
      records.set(record.config.id, record);
    },
    async remove(nodeId) {
      records.delete(nodeId);
    },
    async close() {},
  };
}
