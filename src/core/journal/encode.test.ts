import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { taskSpec } from '../../../test/support/specs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import { JournalDecoder } from './decode.ts';
import { JournalEncoder } from './encode.ts';

/** What was recorded, read back. */
function readBack(encoder: JournalEncoder): readonly unknown[] {
  const decoder = new JournalDecoder(() => 'f');
  const { text, lines } = encoder.take();
  const found = Buffer.from(text).toString().split('\n').slice(0, -1);
  expect(lines).toBe(found.length);
  return found.map((line) => decoder.decode(line)).filter((entry) => entry.kind !== 'name');
}

const count = fc.oneof(fc.nat(), fc.double(), fc.integer());
const usage = fc.record({ promptTokens: count, outputTokens: count }, { requiredKeys: [] });
const result: fc.Arbitrary<AttemptResult> = fc.oneof(
  fc.record({ kind: fc.constant('ok' as const), usage, silenceUs: count }, { requiredKeys: ['kind'] }),
  fc.record({ kind: fc.constant('aborted' as const), passed: usage }, { requiredKeys: ['kind'] }),
  fc.constant<AttemptResult>({ kind: 'declined' }),
  fc.constant<AttemptResult>({ kind: 'failed', failure: 'server-error', retryable: true }),
);
const needs = fc.record({
  contextTokens: fc.nat(),
  capabilities: fc.constantFrom([], ['tools'] as const),
  lora: fc.constantFrom('', 'ü'),
  pixels: fc.nat(2),
  embeddingSize: fc.nat(2),
  zone: fc.constantFrom('', 'z'),
});
const task: fc.Arbitrary<TaskSpec> = fc
  .record(
    {
      needs,
      workUs: count,
      deadlineAt: fc.oneof(fc.maxSafeNat(), fc.constant(Number.POSITIVE_INFINITY)),
      deadlineWished: fc.boolean(),
      stream: fc.boolean(),
      tenant: fc.string(),
      alternatives: fc.constant([{ kind: 'answer' as const, how: 'ü', name: 'a' }] as never),
      prefix: fc.record({ blocks: fc.array(fc.nat(), { maxLength: 3 }), workUsPerBlock: count }),
    },
    { requiredKeys: ['needs', 'workUs'] },
  )
  .map((fields) => ({ ...taskSpec(1, fields), tokens: 5, promptTokens: 3, retryCount: 0, fingerprint: 'f' }));
const event: fc.Arbitrary<SchedulerEvent> = fc.oneof(
  task.map((one): SchedulerEvent => ({ kind: 'submit', task: one })),
  result.map((one): SchedulerEvent => ({ kind: 'attempt-ended', taskId: 3, result: one })),
  fc.constantFrom<SchedulerEvent>(
    { kind: 'tick' },
    { kind: 'cancel', taskId: 7 },
    { kind: 'attempt-sent', taskId: 8 },
    { kind: 'attempt-first-byte', taskId: 9 },
    { kind: 'node-removed', nodeId: 'ü' },
  ),
);

/** JSON has one zero, and no fields that are undefined. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_key, part: unknown) =>
      typeof part === 'number' && !Number.isFinite(part) ? String(part) : part,
    ),
  );

describe('JournalEncoder', () => {
  test('writes every event so that it is read back as it was', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const encoder = new JournalEncoder();
        for (const [at, one] of events.entries()) encoder.event(one, at);
        const expected = events.map((one, at) => ({ kind: 'event', event: one, at }));
        expect(plain(readBack(encoder))).toEqual(plain(expected));
      }),
    );
  });

  test('keeps the order of all sorts of entries, beyond what its rows hold', () => {
    const encoder = new JournalEncoder();
    const expected: unknown[] = [];
    const model = 'm';
    const shape = {
      promptBytes: 1,
      outputTokensMax: 2,
      images: 3,
      steps: 4,
      pixelsPerImage: 5,
      statedWorkUs: 6,
    };
    for (let at = 0; at < 3_000; at++) {
      const told: SchedulerEvent = { kind: 'submit', task: taskSpec(at) };
      encoder.event(told, at);
      encoder.decision('assign', at, `n${at % 3}`, '1');
      encoder.learn(model, shape, { outputTokens: at });
      encoder.fingerprint(at, 'salted');
      expected.push(['event', at], ['decision', at], ['learn', at], ['fingerprint', at]);
    }
    const found = readBack(encoder).map((entry) => {
      const { kind, ...rest } = entry as { kind: string } & Record<string, never>;
      const { at, decision, usage: measured, taskId } = rest as Record<string, { [name: string]: unknown }>;
      return [kind, at ?? decision?.['taskId'] ?? measured?.['outputTokens'] ?? taskId];
    });
    expect(found).toEqual(expected);
    expect(readBack(encoder)).toEqual([]);
  });
});
