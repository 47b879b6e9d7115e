import { describe, expect, test } from 'vitest';
import { createStopWriter } from './generate.ts';

function written(stops: readonly string[], pieces: readonly string[]): { text: string; stopped: boolean } {
  let text = '';
  const writer = createStopWriter(stops, (piece) => {
    text += piece;
  });
  const stopped = pieces.some((piece) => writer.write(piece));
  if (!stopped) writer.flush();
  return { text, stopped };
}

describe('createStopWriter', () => {
  test('passes text through without stop texts', () => {
    expect(written([], ['ab', 'cd'])).toEqual({ text: 'abcd', stopped: false });
  });

  test('stops before a stop text that is split over pieces', () => {
    expect(written(['END'], ['abcE', 'N', 'Dxyz'])).toEqual({ text: 'abc', stopped: true });
  });

  test('writes what only looked like the beginning of a stop text', () => {
    expect(written(['END'], ['abE', 'N'])).toEqual({ text: 'abEN', stopped: false });
  });

  test('stops at the earliest of several stop texts', () => {
    expect(written(['zz', 'b'], ['abzz'])).toEqual({ text: 'a', stopped: true });
  });
});
