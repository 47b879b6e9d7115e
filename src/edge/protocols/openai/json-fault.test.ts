import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { locateJsonFault } from './json-fault.ts';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('locateJsonFault', () => {
  it.each([
    ['', 0],
    ['{', 1],
    ['{"a"', 4],
    ['{"a":}', 5],
    ['{"a":1,}', 7],
    ['[1,]', 3],
    ['[1 2]', 3],
    ['{"a":tru}', 5],
    ['{"a":01}', 6],
    ['"abc', 4],
    ['"a\\x"', 2],
    ['"a\nb"', 2],
    ['{} {}', 3],
    ['{a:1}', 1],
  ])('finds where %j stops being JSON', (text, position) => {
    expect(locateJsonFault(text).position).toBe(position);
  });

  it('counts lines and columns from 1', () => {
    expect(locateJsonFault('{\n  "a": x\n}')).toEqual({ position: 9, line: 2, column: 8 });
  });

  it('finds a place in a broken text that a right text shares up to there', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.string({ minLength: 1, maxLength: 3 }), (text, place, noise) => {
        const at = place % (text.length + 1);
        const broken = text.slice(0, at) + noise + text.slice(at);
        fc.pre(!isJson(broken));
        const { position } = locateJsonFault(broken);
        expect(position).toBeLessThanOrEqual(broken.length);
        expect(position, 'what stands before the change is in order').toBeGreaterThanOrEqual(
          Math.min(at, locateJsonFault(text.slice(0, at)).position) - longestToken(text),
        );
      }),
    );
  });

  it('does not run out of stack', () => {
    expect(locateJsonFault('['.repeat(1_000_000)).position).toBe(1_000_000);
    expect(locateJsonFault(`"${'x'.repeat(5_000_000)}`).position).toBe(5_000_001);
  });
});

/** A fault inside a token is reported at the token's start. */
function longestToken(text: string): number {
  return Math.max(5, ...(text.match(/[\w.+-]+/g) ?? []).map((token) => token.length));
}
