/**
 * What every registry store must do, run by each adapter's test. `open` is called again after `close` to read back
 * what was written; a store that lasts only as long as its process says `isDurable: false` and skips those.
 */
import { afterEach, describe, expect, test } from 'vitest';
import type { NodeRecord, RegistryStore } from '../../src/ports/registry-store.ts';

export interface RegistryStoreSubject {
  readonly name: string;
  readonly isDurable: boolean;
  /** Starts with nothing remembered. */
  fresh(): RegistryStore;
  /** The same place again, after `close` of the one before. */
  reopen(): RegistryStore;
  clean(): void;
}

const MANY = 10_000;

function nodeRecord(id: string, change: Partial<NodeRecord> = {}): NodeRecord {
  return {
    config: {
      id,
      url: `http://127.0.0.1:9000/${id}`,
      protocol: 'openai',
      models: [{ model: 'm', contextTokensMax: 4096, capabilities: ['tools'] }],
      slots: 2,
      hardware: 'A100',
      labels: { zone: 'a' },
      headers: {},
    },
    source: 'api',
    discovered: { models: [{ model: 'm' }], slots: 2 },
    generation: 1,
    credentialSha256: 'ab'.repeat(32),
    memory: {
      cordoned: true,
      draining: false,
      ejectedForUs: 0,
      ejections: 3,
      failures: { score: 4.1588, window: 786_433, count: 20 },
      breakers: [
        {
          model: 'm',
          scope: 'node',
          openForUs: 4_000_000,
          opens: 2,
          isTrial: true,
          failures: { score: 0, window: 3, count: 2 },
        },
        { model: 'm', scope: 'everywhere', openForUs: 0, opens: 1, isTrial: true },
      ],
      strikes: [{ fingerprint: 't/0123456789abcdef', forUs: 599_000_000 }],
      rates: [{ model: 'm', rate: 0.731, observations: 12 }],
    },
    ejectedUntilMs: 1_700_000_000_123,
    updatedAtMs: 1_700_000_000_000,
    ...change,
  };
}

export function registryStoreSuite(subject: RegistryStoreSubject): void {
  describe(`registry store: ${subject.name}`, () => {
    const opened: RegistryStore[] = [];
    const fresh = (): RegistryStore => track(subject.fresh());
    const track = (store: RegistryStore): RegistryStore => {
      opened.push(store);
      return store;
    };

    afterEach(async () => {
      for (const store of opened.splice(0)) await store.close();
      subject.clean();
    });

    test('starts empty', async () => {
      expect(await fresh().load()).toEqual([]);
    });

    test('loads a record as it was saved, every field', async () => {
      const store = fresh();
      await store.save(nodeRecord('a'));
      expect(await store.load()).toEqual([nodeRecord('a')]);
    });

    test('overwrites a record of the same generation and of a later one', async () => {
      const store = fresh();
      await store.save(nodeRecord('a', { ejectedUntilMs: 1 }));
      await store.save(nodeRecord('a', { ejectedUntilMs: 2 }));
      expect((await store.load())[0]?.ejectedUntilMs).toBe(2);
      await store.save(nodeRecord('a', { generation: 2, ejectedUntilMs: 3 }));
      expect((await store.load())[0]).toMatchObject({ generation: 2, ejectedUntilMs: 3 });
    });

    test('ignores a write of an older generation', async () => {
      const store = fresh();
      await store.save(nodeRecord('a', { generation: 5, ejectedUntilMs: 5 }));
      await store.save(nodeRecord('a', { generation: 4, ejectedUntilMs: 4 }));
      expect((await store.load())[0]).toMatchObject({ generation: 5, ejectedUntilMs: 5 });
    });

    test('removes a record, and removing an unknown one does nothing', async () => {
      const store = fresh();
      await store.save(nodeRecord('a'));
      await store.remove('b');
      await store.remove('a');
      expect(await store.load()).toEqual([]);
    });

    test('keeps the order of writes that were not awaited one by one', async () => {
      const store = fresh();
      await Promise.all([
        store.save(nodeRecord('a')),
        store.remove('a'),
        store.save(nodeRecord('b')),
        store.save(nodeRecord('b', { ejectedUntilMs: 9 })),
      ]);
      expect(await store.load()).toEqual([nodeRecord('b', { ejectedUntilMs: 9 })]);
    });

    test('takes ids that look like statements, paths or other scripts', async () => {
      const store = fresh();
      const ids = ["'; DROP TABLE nodes; --", '../../etc', '__proto__', 'ノード'];
      for (const id of ids) await store.save(nodeRecord(id));
      expect((await store.load()).map((record) => record.config.id).sort()).toEqual([...ids].sort());
    });

    test(`takes ${MANY} records at once`, async () => {
      const store = fresh();
      await Promise.all(Array.from({ length: MANY }, (_, i) => store.save(nodeRecord(`node-${i}`))));
      expect(await store.load()).toHaveLength(MANY);
    });

    test('may be closed twice', async () => {
      const store = fresh();
      await store.close();
      await expect(store.close()).resolves.toBeUndefined();
    });

    if (!subject.isDurable) return;

    test('loads after it was closed and opened again', async () => {
      const store = fresh();
      const saved = store.save(nodeRecord('a'));
      await store.close();
      await saved;
      expect(await track(subject.reopen()).load()).toEqual([nodeRecord('a')]);
    });
  });
}
