/**
 * Ended spans on their way out: a bounded queue and one export at a time. What finds the queue full, and what an export
 * could not deliver, is dropped and counted; nothing of it is felt by a request. The SDK's own batch processor drops as
 * well, but does not tell how many.
 *
 * Bounded by `queueSpansMax` waiting spans and one batch under way.
 */
import type { DurationMs } from '../../base/units.ts';
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';

/** Spans of one export: the usual size, far below what collectors take in one message. */
export const BATCH_SPANS_MAX = 512;

export interface SpanQueueOptions {
  readonly exporter: SpanExporter;
  readonly queueSpansMax: number;
  readonly exportMs: DurationMs;
  /** What is left at the end is sent within this time, or dropped. */
  readonly timeoutMs: DurationMs;
}

export interface SpanCounts {
  readonly exported: number;
  readonly dropped: number;
}

const EXPORTED = 0;

export class SpanQueue implements SpanProcessor {
  readonly #options: SpanQueueOptions;
  #waiting: ReadableSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** The export under way, which never rejects. */
  #sending: Promise<void> | undefined;
  #isClosed = false;
  #exported = 0;
  #dropped = 0;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
  }

  get counts(): SpanCounts {
    return { exported: this.#exported, dropped: this.#dropped };
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#isClosed || this.#waiting.length >= this.#options.queueSpansMax) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(span);
    if (this.#sending !== undefined) return;
    if (this.#waiting.length >= BATCH_SPANS_MAX) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), this.#options.exportMs).unref();
  }

  /** Resolves when what waits now has been sent or dropped. */
  async forceFlush(): Promise<void> {
    while (this.#waiting.length > 0 || this.#sending !== undefined) {
      if (this.#sending === undefined) this.#send();
      await this.#sending;
    }
  }

  /** Takes nothing more, and gives what it has the time it may have. */
  async shutdown(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { timeoutMs, exporter } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    await Promise.race([this.forceFlush(), over]);
    clearTimeout(timer);
    clearTimeout(this.#timer);
    this.#dropped += this.#waiting.length;
    this.#waiting = [];
    // It may wait for an answer that never comes; the process does not.
    void exporter.shutdown().catch(() => undefined);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#waiting.splice(0, BATCH_SPANS_MAX);
    if (batch.length === 0) return;
    this.#sending = this.#export(batch).then(() => {
      this.#sending = undefined;
      if (this.#waiting.length >= BATCH_SPANS_MAX) this.#send();
      else if (this.#waiting.length > 0 && !this.#isClosed)
        this.#timer ??= setTimeout(() => this.#send(), this.#options.exportMs).unref();
    });
  }

  #export(batch: ReadableSpan[]): Promise<void> {
    return new Promise((resolve) => {
      const done = (isExported: boolean): void => {
        if (isExported) this.#exported += batch.length;
        else this.#dropped += batch.length;
        resolve();
      };
      try {
        this.#options.exporter.export(batch, ({ code }) => done(code === EXPORTED));
      } catch {
        done(false);
      }
    });
  }
}
