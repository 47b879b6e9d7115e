/**
 * A journal in files: one folder, segments in order, the oldest removed beyond a bound on all of them. Text is taken at
 * once and written behind, one write at a time; each write ends with a line that holds the checksum of what it wrote, so
 * that a reader tells a damaged journal from one that was cut by a crash.
 *
 * A write that fails (a full disk) ends the segment: what waits is counted as lost, and nothing is taken until the next
 * segment begins.
 */
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Bytes } from '../../base/units.ts';
import type { JournalStore, JournalStoreCounters } from '../../ports/journal-store.ts';
import { segmentName, segmentsIn } from './segments.ts';

/** Text that is taken and not written yet. */
export const BUFFER_BYTES_MAX: Bytes = 16 * 1024 * 1024;
/** The journal names tenants and tells what each of them sent: it is nobody else's. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

export interface JournalFileOptions {
  readonly folder: string;
  /** Names this process: segments of one run belong together. Sorts by age. */
  readonly run: string;
  /** All segments in the folder, those of earlier runs included. */
  readonly bytesMax: Bytes;
  readonly onError?: (reason: string) => void;
}

type Job =
  | { readonly kind: 'segment' }
  | { readonly kind: 'text'; readonly text: Uint8Array; readonly lines: number };

export function createJournalFile(options: JournalFileOptions): JournalStore {
  mkdirSync(options.folder, { recursive: true, mode: FOLDER_MODE });
  return new JournalFile(options);
}

class JournalFile implements JournalStore {
  readonly #options: JournalFileOptions;
  readonly #jobs: Job[] = [];
  #buffered: Bytes = 0;
  #file: FileHandle | undefined;
  #segments = 0;
  #bytesWritten: Bytes = 0;
  #linesLost = 0;
  #hasFailed = false;
  #isClosed = false;
  #working: Promise<void> | undefined;

  constructor(options: JournalFileOptions) {
    this.#options = options;
  }

  append(text: Uint8Array, lines: number): boolean {
    if (this.#hasFailed || this.#isClosed || this.#buffered + text.length > BUFFER_BYTES_MAX) return false;
    this.#buffered += text.length;
    this.#enqueue({ kind: 'text', text, lines });
    return true;
  }

  nextSegment(): boolean {
    if (this.#isClosed || this.#buffered > BUFFER_BYTES_MAX / 2) return false;
    this.#hasFailed = false;
    this.#enqueue({ kind: 'segment' });
    return true;
  }

  counters(): JournalStoreCounters {
    return {
      segments: this.#segments,
      bytesWritten: this.#bytesWritten,
      bufferedBytes: this.#buffered,
      linesLost: this.#linesLost,
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#working;
    await this.#file?.close().catch(() => {});
    this.#file = undefined;
  }

  #enqueue(job: Job): void {
    this.#jobs.push(job);
    this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    // What one turn appends shares a write.
    await Promise.resolve();
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      try {
        if (job.kind === 'segment') await this.#begin();
        else await this.#write(job.text, job.lines);
      } catch (error) {
        this.#fail(error, job);
      }
    }
    this.#working = undefined;
  }

  async #begin(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
    await this.#removeOldest();
    const { folder, run } = this.#options;
    this.#segments += 1;
    this.#file = await open(join(folder, segmentName(run, this.#segments)), 'wx', FILE_MODE);
  }

  async #write(text: Uint8Array, lines: number): Promise<void> {
    this.#buffered -= text.length;
    if (this.#file === undefined) {
      this.#linesLost += lines;
      return;
    }
    try {
      const seal = Buffer.from(`z${crc32(text)}\n`, 'latin1');
      await this.#file.writev([text, seal]);
      this.#bytesWritten += text.length + seal.length;
    } catch (error) {
      this.#linesLost += lines;
      throw error;
    }
  }

  /** What waits for this segment is lost with it; a segment that was asked for meanwhile begins all the same. */
  #fail(error: unknown, failed: Job): void {
    this.#hasFailed = !this.#jobs.some((job) => job.kind === 'segment');
    if (failed.kind === 'segment') this.#segments -= 1;
    while (this.#jobs[0]?.kind === 'text') {
      const { text, lines } = this.#jobs.shift() as Extract<Job, { kind: 'text' }>;
      this.#buffered -= text.length;
      this.#linesLost += lines;
    }
    this.#options.onError?.(error instanceof Error ? error.message : String(error));
  }

  /** Makes room: a segment is never cut, so the bound may be passed by the one that is written. */
  async #removeOldest(): Promise<void> {
    const { folder, bytesMax } = this.#options;
    const found = segmentsIn(readdirSync(folder)).map((name) => join(folder, name));
    const sizes = found.map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0);
    let total = sizes.reduce((sum, size) => sum + size, 0);
    for (let at = 0; at < found.length && total > bytesMax; at++) {
      await rm(found[at] as string, { force: true });
      total -= sizes[at] as number;
    }
  }
}
