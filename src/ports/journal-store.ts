/**
 * Where a journal is kept. Writing happens behind: nothing here waits, and a store that cannot keep up says so instead of
 * holding back who writes.
 */
import type { Bytes } from '../base/units.ts';

export interface JournalStoreCounters {
  readonly segments: number;
  readonly bytesWritten: Bytes;
  /** Taken and not written yet. */
  readonly bufferedBytes: Bytes;
  /** Lines that were taken and could not be written. */
  readonly linesLost: number;
}

export interface JournalStore {
  /**
   * Takes whole lines, as UTF-8, for the segment under way. False, and nothing of it is kept, when the buffer is full or an earlier
   * write failed: then the segment has a gap, and the next lines belong into another one.
   */
  append(text: Uint8Array, lines: number): boolean;
  /** What is appended next begins a segment. False while what was taken before still fills the buffer. */
  nextSegment(): boolean;
  counters(): JournalStoreCounters;
  /** Resolves when what was taken is written, or could not be. */
  close(): Promise<void>;
}
