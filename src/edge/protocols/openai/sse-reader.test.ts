import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SseReader } from './sse-reader.ts';

const event = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const ROLE = event({ role: 'assistant', content: '' });
const HELLO = event({ content: 'hello "[DONE]" \\n "usage":{ ä' });
const FINISH = event({}, 'stop');
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}\n\n';
const DONE = 'data: [DONE]\n\n';

interface Read {
  readonly text: string;
  readonly phase: string;
  readonly isComplete: boolean;
  readonly usage: unknown;
  readonly contentEvents: number;
}

function read(text: string, cuts: readonly number[] = [], hidesUsage = true): Read {
  const reader = new SseReader(hidesUsage);
  const bytes = Buffer.from(text);
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  const passed: Buffer[] = [];
  let from = 0;
  for (const to of [...places, bytes.length]) {
    const part = reader.push(bytes.subarray(from, to));
    if (part !== undefined) passed.push(part);
    from = to;
  }
  const rest = reader.end();
  if (rest !== undefined) passed.push(rest);
  return {
    text: Buffer.concat(passed).toString(),
    phase: reader.phase,
    isComplete: reader.isComplete,
    usage: reader.usage,
    contentEvents: reader.contentEvents,
  };
}

describe('SseReader', () => {
  it('passes a stream on, without the usage chunk that was not asked for', () => {
    expect(read(ROLE + HELLO + FINISH + USAGE + DONE)).toEqual({
      text: ROLE + HELLO + FINISH + DONE,
      phase: 'done',
      isComplete: true,
      usage: { promptTokens: 4, outputTokens: 2 },
      contentEvents: 1,
    });
  });

  it('counts the events with content, in one chunk or in many', () => {
    const stream = ROLE + HELLO.repeat(5) + FINISH + USAGE + DONE;
    expect(read(stream).contentEvents).toBe(5);
    expect(read(stream, [ROLE.length + HELLO.length, ROLE.length + 4 * HELLO.length]).contentEvents).toBe(5);
  });

  it('keeps the usage chunk that was asked for', () => {
    expect(read(HELLO + USAGE + DONE, [], false).text).toBe(HELLO + USAGE + DONE);
  });

  it('reads the same however the bytes are cut', () => {
    const texts = [
      ROLE + HELLO + FINISH + USAGE + DONE,
      `: ping\n\n${HELLO}: pong\n\n${FINISH}`,
      `${ROLE}${HELLO}data: {"error":{}}\n\n${DONE}`,
      HELLO.replaceAll('\n', '\r\n') + DONE.replaceAll('\n', '\r\n'),
      HELLO + DONE.trimEnd(),
      HELLO.repeat(4),
    ];
    for (const text of texts) {
      const whole = read(text);
      fc.assert(
        fc.property(fc.array(fc.nat(), { maxLength: 10 }), (cuts) => {
          expect(read(text, cuts)).toEqual(whole);
        }),
        { numRuns: 80 },
      );
    }
  });

  it.each([
    ['nothing', ''],
    ['a goodbye alone', DONE],
    ['a role alone', ROLE],
    ['a role and a goodbye', ROLE + DONE],
    ['content without an end', HELLO],
    ['half an event at the end', HELLO + FINISH.slice(0, 20)],
    ['garbage at first', 'hello\n\n'],
    ['broken JSON at first', 'data: {"choices":[\n\n'],
    ['garbage in the middle', `${HELLO}nonsense here\n\n${DONE}`],
    ['an error at first', `data: {"error":{"message":"x"}}\n\n${DONE}`],
    ['an error in the middle', `${HELLO}data: { "error" : 1}\n\n${DONE}`],
    ['a role that is repeated for ever', ROLE.repeat(2_000)],
    ['an event that never ends', `${HELLO}data: ${'x'.repeat(1_100_000)}`],
  ])('does not take %s for a whole answer', (_title, text) => {
    expect(read(text).isComplete).toBe(false);
  });

  it.each([
    ['content', event({ content: 'a' })],
    ['reasoning', event({ reasoning_content: 'hm' })],
    ['a tool call', event({ tool_calls: [{ index: 0, function: { name: 'f' } }] })],
    ['a refusal', event({ refusal: 'no' })],
    ['a text completion', 'data: {"choices":[{"text":"a"}]}\n\n'],
    ['a finish', FINISH],
    ['an unknown dialect', 'data: {"type":"x.delta","delta":"a"}\n\n'],
  ])('takes %s for the first content', (_title, text) => {
    const reader = new SseReader(true);
    expect(reader.push(Buffer.from(ROLE))).toBeUndefined();
    expect(reader.push(Buffer.from(text))?.toString()).toBe(ROLE + text);
    expect(reader.phase).toBe('flowing');
  });

  it('hands on the very chunk on the fast road', () => {
    const reader = new SseReader(true);
    reader.push(Buffer.from(HELLO));
    const chunk = Buffer.from(event({ content: 'b' }));
    expect(reader.push(chunk)).toBe(chunk);
  });
});
