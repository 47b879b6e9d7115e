import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BATCH_SPANS_MAX, SpanQueue } from './span-queue.ts';

/** `@opentelemetry/core` names them so. */
const SUCCESS = 0;
const FAILED = 1;

/** An exporter under the test's hand. */
class HeldExporter implements SpanExporter {
  readonly batches: number[] = [];
  readonly #held: ((code: number) => void)[] = [];

  export(spans: ReadableSpan[], done: (result: { code: number }) => void): void {
    this.batches.push(spans.length);
    this.#held.push((code) => done({ code }));
  }

  async finish(code: number): Promise<void> {
    this.#held.shift()?.(code);
    await vi.advanceTimersByTimeAsync(0);
  }

  async shutdown(): Promise<void> {}
}

const SPAN = {} as ReadableSpan;
const LIMITS = { queueSpansMax: 1_000, exportMs: 100, timeoutMs: 500 };

function add(queue: SpanQueue, count: number): void {
  for (let i = 0; i < count; i++) queue.onEnd(SPAN);
}

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe('SpanQueue', () => {
  test('sends what waits after its time, and a full batch at once', async () => {
    const exporter = new HeldExporter();
    const queue = new SpanQueue({ exporter, ...LIMITS });
    add(queue, 3);
    await vi.advanceTimersByTimeAsync(99);
    expect(exporter.batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(exporter.batches).toEqual([3]);
    await exporter.finish(SUCCESS);
    add(queue, BATCH_SPANS_MAX);
    expect(exporter.batches).toEqual([3, BATCH_SPANS_MAX]);
    expect(queue.counts).toEqual({ exported: 3, dropped: 0 });
  });

  test('holds its bound while an export hangs, and counts what it drops', async () => {
    const exporter = new HeldExporter();
    const queue = new SpanQueue({ exporter, ...LIMITS });
    add(queue, BATCH_SPANS_MAX + LIMITS.queueSpansMax + 7);
    expect(exporter.batches).toEqual([BATCH_SPANS_MAX]);
    expect(queue.counts).toEqual({ exported: 0, dropped: 7 });
    await exporter.finish(SUCCESS);
    expect(exporter.batches).toEqual([BATCH_SPANS_MAX, BATCH_SPANS_MAX]);
    await exporter.finish(SUCCESS);
    await vi.advanceTimersByTimeAsync(LIMITS.exportMs);
    await exporter.finish(SUCCESS);
    expect(queue.counts).toEqual({ exported: BATCH_SPANS_MAX + LIMITS.queueSpansMax, dropped: 7 });
  });

  test('counts what an export could not deliver, and goes on', async () => {
    const exporter = new HeldExporter();
    const queue = new SpanQueue({ exporter, ...LIMITS });
    add(queue, BATCH_SPANS_MAX);
    await exporter.finish(FAILED);
    add(queue, 1);
    await vi.advanceTimersByTimeAsync(LIMITS.exportMs);
    await exporter.finish(SUCCESS);
    expect(queue.counts).toEqual({ exported: 1, dropped: BATCH_SPANS_MAX });
  });

  test('ends within its time when the exporter never answers', async () => {
    const exporter = new HeldExporter();
    const queue = new SpanQueue({ exporter, ...LIMITS });
    add(queue, BATCH_SPANS_MAX + 5);
    let isOver = false;
    void queue.shutdown().then(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(LIMITS.timeoutMs - 1);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver).toBe(true);
    add(queue, 1);
    expect(queue.counts.dropped).toBe(6);
  });
});
