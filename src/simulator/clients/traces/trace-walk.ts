/**
 * The entries of a trace, spliced: its parts one after the other, each as often as told, on a time that starts at 0. Nothing is
 * copied; a walk is a place in the trace.
 */
import type { DurationUs } from '../../../base/units.ts';
import type { TracePart } from '../../scenario/types.ts';

export class TraceWalk<Entry extends { readonly atUs: DurationUs }> {
  readonly #entries: readonly Entry[];
  readonly #parts: readonly TracePart[];
  #part = 0;
  #repeat = 0;
  #next = 0;
  /** Where the present repetition begins on the spliced time. */
  #beganAtUs: DurationUs = 0;
  /** How often the walk has begun a stretch anew, which tells equal entries apart. */
  pass = 0;
  /** Of the present entry, on the spliced time. */
  atUs: DurationUs = 0;
  /** Undefined after the last, and before the first step. */
  entry: Entry | undefined;

  constructor(entries: readonly Entry[], parts: readonly TracePart[]) {
    this.#entries = entries;
    this.#parts = parts.length > 0 ? parts : [WHOLE];
    this.#next = firstFrom(entries, this.#parts[0]?.fromUs ?? 0);
  }

  /** Goes to the next entry. */
  step(): void {
    for (;;) {
      const part = this.#parts[this.#part];
      if (part === undefined) {
        this.entry = undefined;
        return;
      }
      const entry = this.#entries[this.#next];
      if (entry !== undefined && entry.atUs < part.untilUs) {
        this.#next += 1;
        this.entry = entry;
        this.atUs = this.#beganAtUs + entry.atUs - part.fromUs;
        return;
      }
      this.#leave(part);
    }
  }

  /** To the next repetition, or to the next part; a stretch without entries is only time. */
  #leave(part: TracePart): void {
    const lengthUs = part.untilUs - part.fromUs;
    const first = firstFrom(this.#entries, part.fromUs);
    const isEmpty = (this.#entries[first]?.atUs ?? Number.POSITIVE_INFINITY) >= part.untilUs;
    const passed = isEmpty ? part.repeats - this.#repeat : 1;
    this.#beganAtUs += passed * lengthUs;
    this.#repeat += passed;
    this.pass += 1;
    if (this.#repeat >= part.repeats) {
      this.#part += 1;
      this.#repeat = 0;
    }
    this.#next = firstFrom(this.#entries, this.#parts[this.#part]?.fromUs ?? 0);
  }
}

const WHOLE: TracePart = Object.freeze({ fromUs: 0, untilUs: Number.POSITIVE_INFINITY, repeats: 1 });

/** Position of the first entry at or after an instant. */
function firstFrom(entries: readonly { readonly atUs: DurationUs }[], fromUs: DurationUs): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle]?.atUs ?? 0) < fromUs) low = middle + 1;
    else high = middle;
  }
  return low;
}
