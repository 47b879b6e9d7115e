import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_CONSENT, readConsent } from './consent.ts';
import { defaultAnswer } from './default-answer.ts';
import { flagLength, flagObject, flagStream } from './flag.ts';

describe('readConsent', () => {
  const read = (text: string): [ReturnType<typeof readConsent>, number] => {
    let ignored = 0;
    const consent = readConsent(text, () => {
      ignored += 1;
    });
    return [consent, ignored];
  };

  test('reads words in any order, case and spacing', () => {
    expect(read(' Quality,CACHE ,, cache')).toEqual([{ ...NO_CONSENT, cache: true, quality: true }, 0]);
    expect(read('model, default, later')).toEqual([{ ...NO_CONSENT, model: true, default: true }, 0]);
  });

  test('takes none for none, whatever stands beside it, and tells what it does not know', () => {
    expect(read('cache, none')).toEqual([NO_CONSENT, 0]);
    expect(read('everything, cache')).toEqual([{ ...NO_CONSENT, cache: true }, 1]);
  });
});

describe('the mark', () => {
  test('is one more member of any object, and leaves every other byte as it was', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue()).filter((value) => !('spillway' in value));
    fc.assert(
      fc.property(object, fc.constantFrom('', ' ', '\n  '), fc.string(), (value, gap, label) => {
        const text = `${gap}${JSON.stringify(value, undefined, gap.length)}${gap}`;
        const marked = flagObject(Buffer.from(text), label).toString();
        const { spillway, ...rest } = JSON.parse(marked) as Record<string, unknown>;
        expect(spillway).toEqual({ degraded: label });
        expect(rest).toEqual(JSON.parse(text));
        const added = Buffer.byteLength(marked) - Buffer.byteLength(text);
        expect(added).toBe(flagLength(label) - (Object.keys(value).length === 0 ? 1 : 0));
      }),
    );
  });

  test('is in the first chunk of a stream and in no other', () => {
    const events = ': note\n\ndata: {"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n';
    expect(flagStream(Buffer.from(events), 'cache').toString()).toBe(
      ': note\n\ndata: {"spillway":{"degraded":"cache"},"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n',
    );
  });

  test('is left out of what is no object', () => {
    const page = Buffer.from('<html>');
    expect(flagObject(page, 'cache')).toBe(page);
    expect(flagStream(page, 'cache')).toBe(page);
  });
});

describe('defaultAnswer', () => {
  test('has the shape of its endpoint, whole and streamed', () => {
    const parts = { id: 'i', model: 'm', text: 'busy', isChat: false, stream: false };
    expect(JSON.parse(defaultAnswer(parts).body.toString())).toMatchObject({
      object: 'text_completion',
      choices: [{ text: 'busy', finish_reason: 'stop' }],
    });
    const stream = defaultAnswer({ ...parts, isChat: true, stream: true });
    expect(stream.contentType).toContain('text/event-stream');
    const [first, last, done] = stream.body.toString().trim().split('\n\n');
    expect(first).toContain('"delta":{"role":"assistant","content":"busy"}');
    expect(last).toContain('"finish_reason":"stop"');
    expect(done).toBe('data: [DONE]');
  });
});
