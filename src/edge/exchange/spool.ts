/**
 * Slow readers. An answer is buffered for its reader up to a bound per reader and one for all, so that the node is
 * released at its own end; beyond the bounds the node is paused, and a reader that takes nothing for `stallMs` is cut.
 *
 * The bytes themselves wait in the connection's own write queue; this module counts them. A reader is tracked only
 * while its connection does not keep up, and one timer looks after all of them.
 */
import type { Bytes, DurationMs, MonoUs } from '../../base/units.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';

export interface SpoolLimits {
  readonly spoolBytesMax: Bytes;
  readonly spoolBytesTotalMax: Bytes;
  readonly stallMs: DurationMs;
}

/** A client's connection while it is behind. */
export interface SlowReader {
  /** Bytes that wait for the client now; falls as the client reads. */
  pendingBytes(): Bytes;
  /** The node may go on. */
  room(): void;
  /** The client is cut. */
  cut(): void;
}

interface Track {
  bytes: Bytes;
  progressAt: MonoUs;
  isPaused: boolean;
}

/** How often stalled readers are looked for, as a share of the time they may stall. */
const SWEEPS_PER_STALL = 4;
const SWEEP_MS_MIN = 20;

export class Spool {
  readonly #limits: () => SpoolLimits;
  readonly #now: () => MonoUs;
  readonly #metrics: MetricsSink;
  readonly #tracks = new Map<SlowReader, Track>();
  #totalBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: () => SpoolLimits, now: () => MonoUs, metrics: MetricsSink) {
    this.#limits = limits;
    this.#now = now;
    this.#metrics = metrics;
  }

  get totalBytes(): Bytes {
    return this.#totalBytes;
  }

  get readers(): number {
    return this.#tracks.size;
  }

  /** Counts what waits for the reader; false when its node must pause until `room`. */
  note(reader: SlowReader): boolean {
    let track = this.#tracks.get(reader);
    if (track === undefined) {
      track = { bytes: 0, progressAt: this.#now(), isPaused: false };
      this.#tracks.set(reader, track);
      this.#arm();
    }
    this.#count(track, reader.pendingBytes());
    const limits = this.#limits();
    track.isPaused = track.bytes > limits.spoolBytesMax || this.#totalBytes > limits.spoolBytesTotalMax;
    return !track.isPaused;
  }

  /** The reader caught up, ended or left. */
  forget(reader: SlowReader): void {
    const track = this.#tracks.get(reader);
    if (track === undefined) return;
    this.#count(track, 0);
    this.#tracks.delete(reader);
    if (this.#tracks.size === 0) this.close();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    if (this.#timer !== undefined) return;
    const periodMs = Math.max(SWEEP_MS_MIN, this.#limits().stallMs / SWEEPS_PER_STALL);
    this.#timer = setInterval(() => this.sweep(), periodMs);
    this.#timer.unref();
  }

  /** Cuts who stalls and lets those go on who caught up. Called by the timer. */
  sweep(): void {
    const now = this.#now();
    const limits = this.#limits();
    for (const [reader, track] of this.#tracks) {
      const bytes = reader.pendingBytes();
      if (bytes < track.bytes) track.progressAt = now;
      this.#count(track, bytes);
      if (bytes > 0 && now - track.progressAt >= limits.stallMs * 1_000) {
        this.#metrics.slowReaderCut();
        this.forget(reader);
        reader.cut();
      } else if (
        track.isPaused &&
        bytes <= limits.spoolBytesMax / 2 &&
        this.#totalBytes <= limits.spoolBytesTotalMax
      ) {
        track.isPaused = false;
        reader.room();
      }
    }
  }

  #count(track: Track, bytes: Bytes): void {
    this.#totalBytes += bytes - track.bytes;
    track.bytes = bytes;
    this.#metrics.spoolBytes(this.#totalBytes);
  }
}
