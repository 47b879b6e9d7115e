/**
 * Bodies that broke nodes. One that broke two distinct healthy nodes is poison: it is refused at the door until the
 * marks expire, whether its attempts were of one submission or of several. A body that is served after all was not the
 * cause. The table is bounded, the oldest entry leaves first.
 */
import type { DurationUs, MonoUs, NodeId } from '../../base/units.ts';

export const POISON_MARKS_MAX = 4_096;
/** Distinct healthy nodes that one body may break. */
export const BROKEN_NODES_MAX = 2;
/** How long a body is remembered. */
export const STRIKE_US: DurationUs = 600_000_000;

interface Entry {
  /** Nodes that it broke, BROKEN_NODES_MAX at most. */
  readonly nodeIds: NodeId[];
  until: MonoUs;
}

/** A body that broke a node, and for how long that counts. */
export interface Strike {
  readonly fingerprint: string;
  readonly forUs: DurationUs;
}

export class PoisonMarks {
  readonly #entries: Map<string, Entry> = new Map();
  #marked = 0;

  /** Bodies that are remembered, poison or not. */
  get size(): number {
    return this.#entries.size;
  }

  /** How many are poison: while there are none, no fingerprint needs to be worked out. */
  get marked(): number {
    return this.#marked;
  }

  /** The body broke a healthy node. Extends the memory of it; tells whether it is poison now. */
  strike({ fingerprint, forUs }: Strike, nodeId: NodeId, now: MonoUs): boolean {
    if (fingerprint === '') return false;
    const known = this.#fresh(fingerprint, now);
    const entry: Entry = known ?? { nodeIds: [], until: 0 };
    const wasMarked = isMarked(entry);
    if (!wasMarked && !entry.nodeIds.includes(nodeId)) entry.nodeIds.push(nodeId);
    entry.until = Math.max(entry.until, now + forUs);
    this.#entries.delete(fingerprint);
    this.#entries.set(fingerprint, entry);
    if (isMarked(entry) && !wasMarked) this.#marked += 1;
    if (this.#entries.size > POISON_MARKS_MAX) this.forgive(this.#entries.keys().next().value as string);
    return isMarked(entry);
  }

  isMarked(fingerprint: string, now: MonoUs): boolean {
    if (this.#marked === 0 || fingerprint === '') return false;
    const entry = this.#fresh(fingerprint, now);
    return entry !== undefined && isMarked(entry);
  }

  /** It was served: the nodes broke by something else. */
  forgive(fingerprint: string): void {
    const entry = this.#entries.get(fingerprint);
    if (entry === undefined) return;
    this.#entries.delete(fingerprint);
    if (isMarked(entry)) this.#marked -= 1;
  }

  /** Which of these bodies still count as having broken the node, and for how long. */
  strikesOf(nodeId: NodeId, fingerprints: readonly string[], now: MonoUs): readonly Strike[] {
    const strikes: Strike[] = [];
    for (const fingerprint of fingerprints) {
      const entry = this.#entries.get(fingerprint);
      if (entry === undefined || entry.until <= now || !entry.nodeIds.includes(nodeId)) continue;
      strikes.push({ fingerprint, forUs: entry.until - now });
    }
    return strikes;
  }

  #fresh(fingerprint: string, now: MonoUs): Entry | undefined {
    const entry = this.#entries.get(fingerprint);
    if (entry === undefined || entry.until > now) return entry;
    this.forgive(fingerprint);
    return undefined;
  }
}

function isMarked(entry: Entry): boolean {
  return entry.nodeIds.length >= BROKEN_NODES_MAX;
}
