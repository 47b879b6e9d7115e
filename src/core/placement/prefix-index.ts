/**
 * Which node is believed to hold which block of which prompt. Engines keep the keys and values of prompts that they have
 * computed; a prompt that begins with blocks that are kept skips their prefill. No engine says what it keeps, so it is
 * reckoned: each node has as many blocks as it states, and the least recently used one leaves.
 *
 * A block's id covers everything before it (a chained hash), so equal ids are equal beginnings. A prompt's blocks are used
 * from its last to its first: the first one is always the newest, and leaves last.
 *
 * Invariants: who holds a block holds all blocks before it, which makes both searches binary; a node holds no more than its
 * capacity; capacities sum to no more than `PREFIX_ENTRIES_MAX` (where nodes state more, each has its part); the order in
 * which holders are found is that of their last use, never that of a Map.
 *
 * Rows of numbers, linked twice: by use within a node, and by use among the holders of a block. Use costs O(blocks), a
 * look-up O(blocks) at the worst, whatever the number of nodes.
 */

/** Blocks of all nodes together: some 50 MB, and eight nodes of 65,000 blocks each. */
export const PREFIX_ENTRIES_MAX = 524_288;
/** Nodes that one look-up gives. */
export const PREFIX_HOLDERS_MAX = 4;

const NONE = -1;
const ROWS_AT_FIRST = 1_024;

/** What one node is believed to hold. */
export interface PrefixHolder<Owner> {
  readonly owner: Owner;
  /** Blocks that it said it keeps. */
  stated: number;
  /** Blocks that it may hold here. */
  capacity: number;
  /** Its row of each block. */
  readonly rows: Map<number, number>;
  oldest: number;
  newest: number;
}

export class PrefixIndex<Owner> {
  readonly #entriesMax: number;
  readonly #holders: Set<PrefixHolder<Owner>> = new Set();
  /** Row of the holder that used the block last. */
  readonly #firstOf: Map<number, number> = new Map();
  #blocks: Float64Array = new Float64Array(ROWS_AT_FIRST);
  #older: Int32Array = new Int32Array(ROWS_AT_FIRST);
  #newer: Int32Array = new Int32Array(ROWS_AT_FIRST);
  /** Holders of the same block that used it before and after this one. */
  #before: Int32Array = new Int32Array(ROWS_AT_FIRST);
  #after: Int32Array = new Int32Array(ROWS_AT_FIRST);
  readonly #ownerOf: PrefixHolder<Owner>[] = [];
  readonly #found: PrefixHolder<Owner>[] = [];
  #size = 0;
  #changes = 0;
  /** Rows that were used and are free, linked by `#older`. */
  #free = NONE;
  #rowsUsed = 0;

  constructor(entriesMax: number = PREFIX_ENTRIES_MAX) {
    this.#entriesMax = entriesMax;
  }

  /** Blocks of all nodes together. */
  get size(): number {
    return this.#size;
  }

  /** Grows whenever a node said what it keeps, or left: what was worked out of its owners before may not hold any more. */
  get changes(): number {
    return this.#changes;
  }

  /** A node that keeps so many blocks. O(nodes), and what others must give up for it. */
  join(owner: Owner, stated: number): PrefixHolder<Owner> {
    const holder = { owner, stated, capacity: 0, rows: new Map(), oldest: NONE, newest: NONE };
    this.#holders.add(holder);
    this.#changes += 1;
    this.#share();
    return holder;
  }

  /** Whether some node that keeps prompts is one of these. O(nodes) where none is: see `changes`. */
  someOwner(isOne: (owner: Owner) => boolean): boolean {
    for (const { owner, stated } of this.#holders) if (stated > 0 && isOne(owner)) return true;
    return false;
  }

  /** It keeps another number of blocks than it said before. */
  restate(holder: PrefixHolder<Owner>, stated: number): void {
    this.#changes += 1;
    if (holder.stated === stated) return;
    holder.stated = stated;
    this.#share();
  }

  leave(holder: PrefixHolder<Owner>): void {
    this.forget(holder);
    this.#holders.delete(holder);
    this.#changes += 1;
    this.#share();
  }

  /** It may have restarted: nothing is believed of it any more. O(blocks that it held). */
  forget(holder: PrefixHolder<Owner>): void {
    while (holder.oldest !== NONE) this.#evict(holder);
  }

  /** The node computes a prompt of these blocks. Of one longer than its capacity the beginning is kept. */
  use(holder: PrefixHolder<Owner>, blocks: readonly number[]): void {
    for (let at = Math.min(blocks.length, holder.capacity) - 1; at >= 0; at--)
      this.#touch(holder, blocks[at] as number);
  }

  /** How many of the blocks, from the first on, the node is believed to hold. O(log blocks). */
  matched({ rows }: PrefixHolder<Owner>, blocks: readonly number[]): number {
    let held = 0;
    let missing = blocks.length + 1;
    while (missing - held > 1) {
      const middle = (held + missing) >> 1;
      if (rows.has(blocks[middle - 1] as number)) held = middle;
      else missing = middle;
    }
    return held;
  }

  /**
   * The holders of most of the blocks, at most `PREFIX_HOLDERS_MAX`: most first, of equal ones who used them last. Valid
   * until the next look-up.
   */
  longest(blocks: readonly number[]): readonly PrefixHolder<Owner>[] {
    const found = this.#found;
    found.length = 0;
    for (let at = this.#depthOf(blocks) - 1; at >= 0; at--) {
      let row = this.#firstOf.get(blocks[at] as number) ?? NONE;
      for (; row !== NONE; row = this.#before[row] as number) {
        const holder = this.#ownerOf[row] as PrefixHolder<Owner>;
        if (found.includes(holder)) continue;
        found.push(holder);
        if (found.length === PREFIX_HOLDERS_MAX) return found;
      }
    }
    return found;
  }

  /** How many blocks anybody holds from the first on. */
  #depthOf(blocks: readonly number[]): number {
    let held = 0;
    let missing = blocks.length + 1;
    while (missing - held > 1) {
      const middle = (held + missing) >> 1;
      if (this.#firstOf.has(blocks[middle - 1] as number)) held = middle;
      else missing = middle;
    }
    return held;
  }

  /** Shares the entries out in proportion to what nodes state. */
  #share(): void {
    let sum = 0;
    for (const { stated } of this.#holders) sum += stated;
    const part = sum <= this.#entriesMax ? 1 : this.#entriesMax / sum;
    for (const holder of this.#holders) {
      holder.capacity = Math.floor(holder.stated * part);
      while (holder.rows.size > holder.capacity) this.#evict(holder);
    }
  }

  #touch(holder: PrefixHolder<Owner>, block: number): void {
    let row = holder.rows.get(block);
    if (row === undefined) {
      if (holder.rows.size >= holder.capacity) this.#evict(holder);
      row = this.#newRow(holder, block);
    } else {
      this.#unlink(holder, row);
    }
    this.#older[row] = holder.newest;
    this.#newer[row] = NONE;
    if (holder.newest === NONE) holder.oldest = row;
    else this.#newer[holder.newest] = row;
    holder.newest = row;
    const first = this.#firstOf.get(block) ?? NONE;
    this.#before[row] = first;
    this.#after[row] = NONE;
    if (first !== NONE) this.#after[first] = row;
    this.#firstOf.set(block, row);
  }

  #newRow(holder: PrefixHolder<Owner>, block: number): number {
    let row = this.#free;
    if (row === NONE) {
      row = this.#rowsUsed++;
      if (row === this.#blocks.length) this.#grow();
    } else {
      this.#free = this.#older[row] as number;
    }
    this.#blocks[row] = block;
    this.#ownerOf[row] = holder;
    holder.rows.set(block, row);
    this.#size += 1;
    return row;
  }

  #evict(holder: PrefixHolder<Owner>): void {
    const row = holder.oldest;
    this.#unlink(holder, row);
    holder.rows.delete(this.#blocks[row] as number);
    this.#older[row] = this.#free;
    this.#free = row;
    this.#size -= 1;
  }

  /** Takes a row out of both of its lists. */
  #unlink(holder: PrefixHolder<Owner>, row: number): void {
    const older = this.#older[row] as number;
    const newer = this.#newer[row] as number;
    if (older === NONE) holder.oldest = newer;
    else this.#newer[older] = newer;
    if (newer === NONE) holder.newest = older;
    else this.#older[newer] = older;
    const before = this.#before[row] as number;
    const after = this.#after[row] as number;
    if (before !== NONE) this.#after[before] = after;
    if (after !== NONE) this.#before[after] = before;
    else if (before === NONE) this.#firstOf.delete(this.#blocks[row] as number);
    else this.#firstOf.set(this.#blocks[row] as number, before);
  }

  #grow(): void {
    const rows = this.#blocks.length * 2;
    const wider = (narrow: Int32Array): Int32Array => {
      const wide = new Int32Array(rows);
      wide.set(narrow);
      return wide;
    };
    const blocks = new Float64Array(rows);
    blocks.set(this.#blocks);
    this.#blocks = blocks;
    this.#older = wider(this.#older);
    this.#newer = wider(this.#newer);
    this.#before = wider(this.#before);
    this.#after = wider(this.#after);
  }
}
