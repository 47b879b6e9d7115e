/**
 * Writes nodes to the registry. Two roads:
 *
 * - `saveNow`: what somebody was promised durable (a registration, a cordon, a drain). Resolves after the commit.
 * - `saveSoon`: what a node's health and rates became. Coalesced per node, and never more often than its interval:
 *   an ejection is worth a write at once, a learned rate waits. Heartbeats never come here.
 *
 * At most one coalesced write per node is under way; the number of nodes bounds everything kept here.
 */
import { type DurationUs, type MonoUs, type NodeId, US_PER_S } from '../../base/units.ts';
import type { NodeMemory } from '../../core/scheduler/events.ts';
import type { RegistryStore } from '../../ports/registry-store.ts';
import type { RuntimeClock } from '../clock.ts';
import { type RuntimeLog, reasonOf } from '../log.ts';
import { type FleetNode, recordOf } from './fleet-node.ts';

/** Least time between two writes of one node's health. */
const HEALTH_SAVE_US: DurationUs = 2 * US_PER_S;
/** Least time between two writes of one node's rates: losing half a minute of learning costs little. */
const RATE_SAVE_US: DurationUs = 30 * US_PER_S;

export interface RecordKeeperOptions {
  readonly store: RegistryStore;
  readonly clock: RuntimeClock;
  readonly log: RuntimeLog;
  readonly memoryOf: (nodeId: NodeId) => NodeMemory;
}

export interface RecordKeeper {
  saveNow(node: FleetNode): Promise<void>;
  /** Health changed: written at once if the last write is old enough, else at the next `sweep`. */
  saveSoon(node: FleetNode): void;
  remove(nodeId: NodeId): Promise<void>;
  /** Writes what is due. Called by the fleet's own timer. */
  sweep(nodes: Iterable<FleetNode>): void;
  /** Writes everything that differs, and nothing unasked afterwards: the store is about to close. */
  flush(nodes: Iterable<FleetNode>): Promise<void>;
  writeErrors(): number;
}

export function createRecordKeeper(options: RecordKeeperOptions): RecordKeeper {
  const { store, clock, log } = options;
  let errors = 0;
  let isEnding = false;

  function write(node: FleetNode, now: MonoUs): Promise<void> {
    node.savedAt = now;
    node.saveDue = false;
    node.learnedSince = false;
    return store.save(recordOf(node, options.memoryOf(node.id), clock.wallMs()));
  }

  async function writeUnasked(node: FleetNode, now: MonoUs): Promise<void> {
    try {
      await write(node, now);
    } catch (thrown) {
      errors += 1;
      node.saveDue = true;
      log.error({ node: node.id, reason: reasonOf(thrown) }, 'The registry could not save a node');
    }
  }

  return {
    saveNow: (node) => write(node, clock.nowUs()),
    saveSoon(node) {
      const now = clock.nowUs();
      node.saveDue = true;
      if (!isEnding && now - node.savedAt >= HEALTH_SAVE_US) void writeUnasked(node, now);
    },
    remove: (nodeId) => store.remove(nodeId),
    sweep(nodes) {
      if (isEnding) return;
      const now = clock.nowUs();
      for (const node of nodes) {
        if (node.leaving) continue;
        const waitUs = node.saveDue ? HEALTH_SAVE_US : RATE_SAVE_US;
        if ((node.saveDue || node.learnedSince) && now - node.savedAt >= waitUs) void writeUnasked(node, now);
      }
    },
    async flush(nodes) {
      isEnding = true;
      const now = clock.nowUs();
      const writes: Promise<void>[] = [];
      for (const node of nodes) {
        if (!node.leaving && (node.saveDue || node.learnedSince)) writes.push(writeUnasked(node, now));
      }
      await Promise.all(writes);
    },
    writeErrors: () => errors,
  };
}
