/**
 * Blocks of prompts whose keys and values an engine keeps after use. A prompt that begins with blocks that are kept skips
 * their prefill. The least recently used block leaves; within a prompt the last blocks count as older than the first ones,
 * because without its beginning a block is of no use (vLLM frees them in that order too).
 *
 * Rows of numbers linked in order of use: looking up, touching and putting out cost O(1) each.
 */
import type { PrefixStats } from './machine.ts';

const NONE = -1;

export class PrefixCache {
  readonly #blocksMax: number;
  readonly #rowOf: Map<number, number> = new Map();
  readonly #ids: Float64Array;
  readonly #older: Int32Array;
  readonly #newer: Int32Array;
  #oldest = NONE;
  #newest = NONE;
  #blocksAsked = 0;
  #blocksHit = 0;

  constructor(blocksMax: number) {
    this.#blocksMax = blocksMax;
    this.#ids = new Float64Array(blocksMax);
    this.#older = new Int32Array(blocksMax).fill(NONE);
    this.#newer = new Int32Array(blocksMax).fill(NONE);
  }

  get stats(): PrefixStats {
    return { blocksAsked: this.#blocksAsked, blocksHit: this.#blocksHit };
  }

  get size(): number {
    return this.#rowOf.size;
  }

  /** Looks a prompt up and keeps all of its blocks; returns how many from its beginning were there before. */
  use(blocks: readonly number[]): number {
    let hit = 0;
    while (hit < blocks.length && this.#rowOf.has(blocks[hit] as number)) hit += 1;
    this.#blocksAsked += blocks.length;
    this.#blocksHit += hit;
    // Touched from the last to the first; of a prompt that is larger than the cache the beginning is kept.
    const kept = Math.min(blocks.length, this.#blocksMax);
    for (let at = kept - 1; at >= 0; at--) this.#touch(blocks[at] as number);
    return hit;
  }

  /** The process died. The counts go on. */
  clear(): void {
    this.#rowOf.clear();
    this.#oldest = NONE;
    this.#newest = NONE;
  }

  #touch(id: number): void {
    const known = this.#rowOf.get(id);
    if (known !== undefined) this.#unlink(known);
    const row = known ?? this.#freeRow();
    this.#ids[row] = id;
    this.#rowOf.set(id, row);
    this.#older[row] = this.#newest;
    this.#newer[row] = NONE;
    if (this.#newest !== NONE) this.#newer[this.#newest] = row;
    this.#newest = row;
    if (this.#oldest === NONE) this.#oldest = row;
  }

  #freeRow(): number {
    if (this.#rowOf.size < this.#blocksMax) return this.#rowOf.size;
    const row = this.#oldest;
    this.#rowOf.delete(this.#ids[row] as number);
    this.#unlink(row);
    return row;
  }

  #unlink(row: number): void {
    const older = this.#older[row] as number;
    const newer = this.#newer[row] as number;
    if (older === NONE) this.#oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
  }
}
