import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatTraceparent, parseTraceparent } from './trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

function hex(length: number): fc.Arbitrary<string> {
  const digit = fc.constantFrom(...Array.from('0123456789abcdef'));
  return fc
    .array(digit, { minLength: length, maxLength: length })
    .map((digits) => digits.join(''))
    .filter((text) => !/^0+$/.test(text));
}

describe('parseTraceparent', () => {
  test('reads what formatTraceparent writes', () => {
    fc.assert(
      fc.property(hex(32), hex(16), fc.boolean(), (traceId, spanId, sampled) => {
        const parent = { traceId, spanId, sampled };
        expect(parseTraceparent(formatTraceparent(parent))).toEqual(parent);
      }),
    );
  });

  test('takes later versions, with what they add', () => {
    const parent = { traceId: TRACE, spanId: SPAN, sampled: true };
    expect(parseTraceparent(`01-${TRACE}-${SPAN}-03-more`)).toEqual(parent);
  });

  test.each([
    ['nothing', ''],
    ['another version that is none', `ff-${TRACE}-${SPAN}-01`],
    ['more than this version has', `00-${TRACE}-${SPAN}-01-more`],
    ['no trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['no span', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['capitals', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['the header sent twice', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
    ['a very long one', `01-${TRACE}-${SPAN}-01-${'x'.repeat(1_000)}`],
  ])('does not count %s', (_what, text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});
