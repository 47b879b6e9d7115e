/**
 * What is remembered of nodes over a restart.
 *
 * An implementation MUST resolve a write only after it is durable, MAY group writes into one commit, and MUST load
 * what was resolved before, also after the process was killed.
 */
import type { NodeId, WallMs } from '../base/units.ts';
import type { NodeConfig } from '../core/config/types.ts';
import type { ModelOffer } from '../core/request/needs.ts';
import type { NodeMemory } from '../core/scheduler/events.ts';

/** How a node came to be known. */
export type NodeSource = 'command-line' | 'config' | 'discovered' | 'api';

export interface NodeRecord {
  /** Never holds a secret's value: credentials of configured nodes come from the configuration again. */
  readonly config: Omit<NodeConfig, 'key' | 'tls'>;
  readonly source: NodeSource;
  /** What the engine said of itself where the configuration leaves it open, so that it serves at once after a restart. */
  readonly discovered?: { readonly models?: readonly ModelOffer[]; readonly slots?: number };
  /** Raised at each registration; a write of an older generation is ignored. */
  readonly generation: number;
  /** SHA-256 of the node's own credential, or '' for nodes that have none. */
  readonly credentialSha256: string;
  readonly memory: NodeMemory;
  /** Wall time of the ejection's end, or 0: durations do not survive a restart, instants do. */
  readonly ejectedUntilMs: WallMs;
  readonly updatedAtMs: WallMs;
}

export interface RegistryStore {
  load(): Promise<readonly NodeRecord[]>;
  save(record: NodeRecord): Promise<void>;
  remove(nodeId: NodeId): Promise<void>;
  close(): Promise<void>;
}
