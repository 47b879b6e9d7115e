import { describe, expect, test } from 'vitest';
import { createHandClock } from '../../../test/integration/runtime-fixture.ts';
import { nodeSpec, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../../core/config/index.ts';
import { JournalDecoder, type JournalEntry, type JournalHead } from '../../core/journal/index.ts';
import type { SchedulerEvent } from '../../core/scheduler/events.ts';
import { createScheduler } from '../../core/scheduler/index.ts';
import type { JournalStore } from '../../ports/journal-store.ts';
import { JournalRecorder, type JournalOptions, STATE_TASKS_MAX } from './journal-recorder.ts';

const CONFIG = defaultSchedulerConfig();

/** Keeps segments in memory, and takes what it is told to. */
class MemoryStore implements JournalStore {
  readonly segments: string[] = [];
  takes = true;

  append(text: Uint8Array): boolean {
    if (this.takes) this.segments[this.segments.length - 1] += Buffer.from(text).toString();
    return this.takes;
  }

  nextSegment(): boolean {
    if (this.takes) this.segments.push('');
    return this.takes;
  }

  counters() {
    return { segments: this.segments.length, bytesWritten: 0, bufferedBytes: 0, linesLost: 0 };
  }

  async close(): Promise<void> {}
}

function recorded(options: Partial<JournalOptions> = {}) {
  const clock = createHandClock();
  const scheduler = createScheduler(CONFIG);
  const store = new MemoryStore();
  const code = { version: 'test', commit: '' };
  const recorder = new JournalRecorder(
    { store, run: 'r', code, segmentBytesMax: 1e9, ...options },
    scheduler,
    { clock, config: CONFIG },
  );
  const apply = (event: SchedulerEvent): void => {
    recorder.event(event, clock.nowUs());
    scheduler.apply(event, clock.nowUs(), recorder);
  };
  return { clock, store, recorder, apply };
}

function entries(segment: string): readonly JournalEntry[] {
  const decoder = new JournalDecoder(() => '');
  return segment
    .split('\n')
    .slice(0, -1)
    .map((line) => decoder.decode(line));
}

function headOf(segment: string): JournalHead {
  const [first] = entries(segment);
  if (first?.kind !== 'head') throw new Error('A segment begins with a head');
  return first.head;
}

describe('JournalRecorder', () => {
  test('writes in batches, and at its close a sample and the end', async () => {
    const { clock, store, recorder, apply } = recorded();
    apply({ kind: 'node-registered', node: nodeSpec('a') });
    apply({ kind: 'submit', task: taskSpec(1) });
    expect(store.segments).toEqual(['']);
    clock.advance(1_000);
    const written = store.segments[0];
    expect(written).toContain('"node-registered"');
    await recorder.close();
    const kinds = entries(store.segments[0] ?? '').map((entry) => entry.kind);
    expect(kinds[0]).toBe('head');
    expect(kinds.slice(-2)).toEqual(['sample', 'end']);
    expect(kinds).not.toContain('unreadable');
    expect(recorder.status()).toMatchObject({ events: 2, dropped: 0 });
  });

  test('drops and counts what the store does not take, and goes on in a segment with a state', () => {
    const { clock, store, recorder, apply } = recorded();
    apply({ kind: 'node-registered', node: nodeSpec('a') });
    clock.advance(1_000);
    store.takes = false;
    for (let id = 1; id <= 3; id++) apply({ kind: 'submit', task: taskSpec(id) });
    clock.advance(1_000);
    expect(recorder.status().isRecording).toBe(false);
    const dropped = recorder.status().dropped;
    expect(dropped).toBeGreaterThanOrEqual(3 + 3);
    apply({ kind: 'submit', task: taskSpec(4) });
    expect(recorder.status().dropped).toBe(dropped + 2);
    store.takes = true;
    clock.advance(10_000);
    expect(recorder.status().isRecording).toBe(true);
    clock.advance(1_000);
    const head = headOf(store.segments[1] ?? '');
    expect(head).toMatchObject({ segment: 2, before: { events: 5, dropped: dropped + 2 } });
    // The first task runs; three wait.
    expect(head.state?.waiting.map(({ id }) => id)).toEqual([2, 3, 4]);
    expect(head.state?.nodes.map(({ node }) => node.id)).toEqual(['a']);
  });

  test('begins another segment beyond its size, whose head goes on where the last one ended', () => {
    const { clock, store, apply } = recorded({ segmentBytesMax: 50 });
    for (let id = 1; id <= 3; id++) {
      apply({ kind: 'submit', task: taskSpec(id) });
      clock.advance(1_000);
    }
    expect(store.segments.length).toBeGreaterThanOrEqual(3);
    const events = store.segments.map(
      (segment) => entries(segment).filter(({ kind }) => kind === 'event').length,
    );
    expect(headOf(store.segments[1] ?? '').before.events).toBe(events[0]);
    expect(headOf(store.segments[2] ?? '').before).toMatchObject({ events: 2, dropped: 0 });
  });

  test('tells no more tasks in a head than its bound', () => {
    const { clock, store, apply } = recorded();
    apply({ kind: 'node-registered', node: nodeSpec('a') });
    for (let id = 1; id <= STATE_TASKS_MAX + 5; id++)
      apply({ kind: 'submit', task: taskSpec(id, { workUs: 1, tenant: `t${id}`, deadlineAt: 1e12 }) });
    store.takes = false;
    clock.advance(1_000);
    store.takes = true;
    apply({ kind: 'tick' });
    clock.advance(10_000);
    const { state } = headOf(store.segments.at(-1) ?? '');
    expect(state?.waiting.length).toBe(STATE_TASKS_MAX);
    expect(state?.omitted.tasks).toBe(4);
  });

  test('tells fingerprints salted: equal ones alike, and not as they are', () => {
    const { clock, store, recorder } = recorded();
    recorder.fingerprint(1, 'acme/secret');
    recorder.fingerprint(2, 'acme/secret');
    recorder.fingerprint(3, 'acme/other');
    clock.advance(1);
    recorder.event({ kind: 'tick' }, clock.nowUs());
    clock.advance(1_000);
    const text = store.segments[0] ?? '';
    const salted = [...text.matchAll(/^f."(\w+)"$/gm)].map((match) => match[1]);
    expect(salted[0]).toBe(salted[1]);
    expect(salted[2]).not.toBe(salted[0]);
    expect(text).not.toContain('secret');
  });
});
