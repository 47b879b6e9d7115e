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

/** What is read at one instant, and the text that comes of it. */
export type Reading = () => readonly Chunks[];

/** Each reading has a turn of its own, and so has each slice of text. */
export async function writeInSlices(readings: readonly Reading[], options: SliceOptions): Promise<string> {
  const text: string[] = [];
  for (const read of readings) {
    const parts = read();
    await options.turn();
    await writeParts(parts, text, options);
    await options.turn();
  }
  return text.join('');
}

async function writeParts(
  parts: readonly Chunks[],
  text: string[],
  { sliceMs, nowMs, turn }: SliceOptions,
): Promise<void> {
  let sliceEndsAt = nowMs() + sliceMs;
  for (const part of parts) {
    for (const chunk of part) {
      text.push(chunk);
      if (nowMs() < sliceEndsAt) continue;
      await turn();
      sliceEndsAt = nowMs() + sliceMs;
    }
  }
}
