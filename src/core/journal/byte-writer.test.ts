import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteWriter } from './byte-writer.ts';

const textOf = (writer: ByteWriter): string => Buffer.from(writer.take()).toString();

test('writes numbers and texts as JSON does, whatever they are, across its growth', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(fc.integer(), fc.maxSafeNat(), fc.double(), fc.nat(12), fc.string({ unit: 'grapheme' })),
      ),
      (values) => {
        const writer = new ByteWriter();
        const expected = values.map((value) => {
          if (typeof value === 'string') {
            writer.text(JSON.stringify(value));
            return JSON.stringify(value);
          }
          writer.number(value);
          return Number.isFinite(value) ? String(value) : `"${value}"`;
        });
        expect(writer.length).toBe(Buffer.byteLength(expected.join('')));
        expect(textOf(writer)).toBe(expected.join(''));
        expect(writer.length).toBe(0);
      },
    ),
  );
  const writer = new ByteWriter();
  for (let count = 0; count < 40_000; count++) writer.number(count);
  expect(textOf(writer)).toBe(Array.from({ length: 40_000 }, (_, count) => String(count)).join(''));
});
