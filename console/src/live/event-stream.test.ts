import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createEventReader, EVENT_CHARS_MAX } from './event-stream.ts';

describe('event reader', () => {
  test('reads the same events however the text is cut', () => {
    const text = 'event: fleet\ndata: {"a":1}\n\n: a comment\n\nevent: picture\ndata: {"b":2}\n\n';
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: text.length })), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        const reader = createEventReader();
        const events = at.flatMap((from, i) => reader.push(text.slice(from, at[i + 1] ?? from)));
        expect(events).toEqual([
          { name: 'fleet', data: '{"a":1}' },
          { name: 'picture', data: '{"b":2}' },
        ]);
      }),
    );
  });

  test('keeps no event that does not end', () => {
    const reader = createEventReader();
    expect(() => reader.push('x'.repeat(EVENT_CHARS_MAX + 1))).toThrow('does not end');
  });
});
