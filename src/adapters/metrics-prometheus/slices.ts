/**
 * Long text in short turns. A page of a thousand nodes takes tens of milliseconds to write, in which no request would be
 * answered: after each slice the event loop has its turn.
 */
import type { Chunks } from './families.ts';

export interface SliceOptions {
  /** Longest time to write at a stretch. */
  readonly sliceMs: number;
  /** A clock that never goes back. */
  nowMs(): number;
  /** Gives the event loop its turn. */
  turn(): Promise<void>;
}

export async function writeInSlices(parts: Iterable<Chunks>, options: SliceOptions): Promise<string> {
  const text: string[] = [];
  // What is written was read in this turn, which may have taken a slice already.
  await options.turn();
  let sliceEndsAt = options.nowMs() + options.sliceMs;
  for (const part of parts) {
    for (const chunk of part) {
      text.push(chunk);
      if (options.nowMs() < sliceEndsAt) continue;
      await options.turn();
      sliceEndsAt = options.nowMs() + options.sliceMs;
    }
  }
  return text.join('');
}
