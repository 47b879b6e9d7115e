import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exactJson, LineReader, LineWriter, Unreadable } from './line.ts';

const LETTER = 'x'.charCodeAt(0);
const anyNumber = fc.oneof(
  fc.integer(),
  fc.nat(40),
  fc.maxSafeInteger(),
  fc.double(),
  fc.constantFrom(2 ** 31 - 1, 2 ** 31, 2 ** 53, -(2 ** 31), Number.POSITIVE_INFINITY, Number.NaN),
);
/** A line has one zero. */
const sameNumber = (value: number): number => value + 0;

function textOf(writer: LineWriter): string {
  return Buffer.from(writer.take().text).toString();
}

describe('LineWriter and LineReader', () => {
  test('agree about every number, alone and since another one, and about the text behind them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(anyNumber, anyNumber), { maxLength: 8 }),
        fc.option(fc.string({ unit: 'grapheme' })),
        (pairs, words) => {
          const writer = new LineWriter();
          writer.begin(LETTER);
          for (const [value, base] of pairs) {
            writer.number(value);
            writer.since(value, base);
            writer.numbers(Float64Array.of(1, value, base), 1, 3);
          }
          if (words !== null) writer.json(exactJson([words, Number.NEGATIVE_INFINITY]));
          writer.end();
          const text = textOf(writer);
          expect(text.indexOf('\n')).toBe(text.length - 1);
          const reader = new LineReader(text.slice(0, -1));
          for (const [value, base] of pairs) {
            expect(sameNumber(reader.number())).toBe(sameNumber(value));
            expect(sameNumber(reader.since(base))).toBe(sameNumber(value));
            expect([reader.number(), reader.number()].map(sameNumber)).toEqual([value, base].map(sameNumber));
          }
          if (words !== null) expect(reader.json()).toEqual([words, Number.NEGATIVE_INFINITY]);
          reader.end();
        },
      ),
    );
  });

  test('take one character up to 31, two up to 1,023, and no quotes for whole numbers up to 2^53', () => {
    const written = [0, 31, 32, 1_023, 1_024, 2 ** 53 - 1].map((value) => {
      const writer = new LineWriter();
      writer.number(value);
      return textOf(writer);
    });
    expect(written.map((text) => text.length)).toEqual([1, 1, 2, 2, 3, 11]);
    expect(written.join('')).not.toContain('"');
  });

  test('keep lines across the growth of their buffer, and count them', () => {
    const writer = new LineWriter();
    const words = 'ü'.repeat(1_000);
    for (let line = 0; line < 200; line++) {
      writer.begin(LETTER);
      writer.number(line);
      writer.json(exactJson(words));
      writer.end();
    }
    expect(writer.length).toBeGreaterThan(256 * 1024);
    const { text, lines } = writer.take();
    expect(lines).toBe(200);
    const found = Buffer.from(text).toString().split('\n').slice(0, -1);
    for (const [line, told] of found.entries()) {
      const reader = new LineReader(told);
      expect([reader.number(), reader.json()]).toEqual([line, words]);
    }
    expect(writer.take()).toMatchObject({ lines: 0 });
  });

  test('refuse what was cut, what goes on, and what is no number', () => {
    for (const line of ['x', 'xP', 'x"1', 'x!', 'x\u{7f}'])
      expect(() => new LineReader(line).number()).toThrow(Unreadable);
    expect(() => new LineReader('x{"a"').json()).toThrow(Unreadable);
    const reader = new LineReader('x11');
    reader.number();
    expect(() => reader.end()).toThrow('it goes on behind its end');
  });
});
