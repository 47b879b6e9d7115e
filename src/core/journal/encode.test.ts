import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { taskSpec } from '../../../test/support/specs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { RequestShape, TaskSpec, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import { DecisionDigest, textWord } from './decision.ts';
import { JournalDecoder } from './decode.ts';
import { JournalEncoder } from './encode.ts';
import { JOURNAL_NAMES_MAX } from './format.ts';
import { LineReader } from './line.ts';

function linesOf(encoder: JournalEncoder): readonly string[] {
  const { text, lines } = encoder.take();
  const found = Buffer.from(text).toString().split('\n').slice(0, -1);
  expect(lines).toBe(found.length);
  return found;
}

/** What was recorded, read back. */
function readBack(encoder: JournalEncoder): readonly unknown[] {
  const decoder = new JournalDecoder(() => 'f');
  return linesOf(encoder)
    .map((line) => decoder.decode(line))
    .filter((entry) => entry.kind !== 'name');
}

function tell(encoder: JournalEncoder, event: SchedulerEvent, at: number): void {
  if (!encoder.step(event, at)) encoder.other(event, at);
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

const shape: fc.Arbitrary<RequestShape> = fc
  .tuple(count, fc.nat(), fc.nat(2), fc.nat(50), fc.nat(), count)
  .chain(([promptBytes, outputTokensMax, images, steps, pixelsPerImage, statedWorkUs]) =>
    fc.constantFrom<RequestShape>(
      { promptBytes, outputTokensMax, images, steps, pixelsPerImage, statedWorkUs },
      { promptBytes, outputTokensMax, images, steps, pixelsPerImage, statedWorkUs, hasNoOutput: true },
    ),
  );

/** One sort of entry beside another: how it is recorded, and what is read back. */
type Recorded = readonly [
  record: (encoder: JournalEncoder, at: number) => void,
  read: (at: number) => unknown,
];

const recorded: fc.Arbitrary<Recorded> = fc.oneof(
  event.map(
    (one): Recorded => [(encoder, at) => tell(encoder, one, at), (at) => ({ kind: 'event', at, event: one })],
  ),
  fc
    .tuple(fc.string(), shape, usage)
    .map(
      ([model, one, measured]: [string, RequestShape, Usage]): Recorded => [
        (encoder) => encoder.learn(model, one, measured),
        () => ({ kind: 'learn', model, shape: one, usage: measured }),
      ],
    ),
  fc
    .record({
      code: fc.nat(6),
      taskId: fc.maxSafeNat(),
      nodeId: fc.constantFrom('', 'n1', 'ü'),
      what: fc.string(),
      number: count,
    })
    .map(
      (decision): Recorded => [
        (encoder) => encoder.decision(decision),
        () => ({ kind: 'decision', decision }),
      ],
    ),
  fc
    .string()
    .map(
      (salted): Recorded => [
        (encoder) => encoder.fingerprint(5, salted),
        () => ({ kind: 'fingerprint', taskId: 5, salted }),
      ],
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
  test('writes everything so that it is read back as it was', () => {
    fc.assert(
      fc.property(fc.array(recorded, { maxLength: 30 }), (all) => {
        const encoder = new JournalEncoder();
        for (const [at, [record]] of all.entries()) record(encoder, at);
        expect(plain(readBack(encoder))).toEqual(plain(all.map(([, read], at) => read(at))));
      }),
    );
  });

  test('leaves no line that is read as another one when it is cut or goes on', () => {
    fc.assert(
      fc.property(recorded, fc.nat(), ([record], pick) => {
        const encoder = new JournalEncoder();
        record(encoder, 70_000);
        const decoder = new JournalDecoder(() => '');
        for (const line of linesOf(encoder)) {
          for (const other of [line.slice(0, pick % line.length), `${line}0`])
            expect(decoder.decode(other).kind).toBe('unreadable');
          expect(decoder.decode(line).kind).not.toBe('unreadable');
        }
      }),
    );
  });

  test('hashes all decisions, each with the instant of its event, whenever their lines are made', () => {
    const encoder = new JournalEncoder();
    const digest = new DecisionDigest();
    for (let at = 0; at < 5_000; at++) {
      tell(encoder, { kind: 'tick' }, at);
      digest.at = at;
      for (const nodeId of ['n1', '']) {
        const decision = { code: 1, taskId: at, nodeId, what: 'served', number: -1 };
        encoder.decision(decision);
        digest.add(decision, textWord(nodeId), textWord('served'));
      }
      if (at % 1_700 === 0) encoder.take();
    }
    expect(encoder.digest()).toBe(digest.digest());
  });

  test('tells all names anew beyond their bound', () => {
    const encoder = new JournalEncoder();
    const decoder = new JournalDecoder(() => '');
    const tenants = Array.from({ length: JOURNAL_NAMES_MAX + 2_000 }, (_, number) => `t${number}`).concat(
      't0',
    );
    for (const [at, tenant] of tenants.entries())
      tell(encoder, { kind: 'submit', task: taskSpec(at, { tenant }) }, at);
    const lines = linesOf(encoder);
    const numbers = lines.filter((line) => line.startsWith('n')).map((line) => new LineReader(line).number());
    expect(Math.max(...numbers.slice(0, JOURNAL_NAMES_MAX))).toBeLessThanOrEqual(JOURNAL_NAMES_MAX);
    expect(numbers.at(-1)).toBeLessThan(JOURNAL_NAMES_MAX / 2);
    const found = lines.flatMap((line) => {
      const entry = decoder.decode(line);
      if (entry.kind !== 'event' || entry.event.kind !== 'submit') return [];
      const { className, tenant, model } = entry.event.task;
      return [`${className} ${tenant} ${model}`];
    });
    expect(found).toEqual(tenants.map((tenant) => `normal ${tenant} m`));
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
      tell(encoder, told, at);
      encoder.decision({ code: 1, taskId: at, nodeId: `n${at % 3}`, what: 'served', number: at - 5 });
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
