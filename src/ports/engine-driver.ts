/**
 * What an engine tells of itself: whether it lives, what it serves, how loaded it is.
 * A driver MUST treat what an engine does not say as unknown, never as zero, and MUST NOT take longer than `timeoutMs`.
 */
import type { DurationMs, Ratio } from '../base/units.ts';
import type { ModelOffer } from '../core/request/needs.ts';
import type { EngineReading } from '../core/scheduler/events.ts';
import type { NodeEndpoint } from './node-transport.ts';

/** The load that the scheduler goes by, and what only people look at. */
export interface EngineAccount extends EngineReading {
  /** Prompt tokens or blocks that were asked for of the engine's prefix cache, and found, since its start. */
  readonly prefixQueries?: number;
  readonly prefixHits?: number;
  /** The same as a share, where the engine tells only that. */
  readonly prefixHitRatio?: Ratio;
}

export interface EngineProbe {
  /** Whether anything answered, also if the answer was "busy" or "loading". */
  readonly alive: boolean;
  /** Set when a connection was made and nothing came back in time: hung, or too busy to answer its own probe. */
  readonly silent?: boolean;
  /** Whether it would take work now; a server that still loads its model is alive and not ready. */
  readonly ready: boolean;
  /** Absent: the engine did not say. */
  readonly models?: readonly ModelOffer[];
  readonly slots?: number;
  readonly reading?: EngineAccount;
  /** For people: version or the reason why not alive. */
  readonly detail: string;
}

export interface EngineDriver {
  /** Name as in the configuration's `protocol`. */
  readonly protocol: string;
  readonly batching: boolean;
  /** Whether closing the connection frees the engine's slot. */
  readonly abortFreesSlot: boolean;
  /** MUST NOT reject. */
  probe(endpoint: NodeEndpoint, timeoutMs: DurationMs): Promise<EngineProbe>;
  /** Load alone, cheap enough for every second; undefined when the engine did not say. MUST NOT reject. */
  read?(endpoint: NodeEndpoint, timeoutMs: DurationMs): Promise<EngineAccount | undefined>;
}
