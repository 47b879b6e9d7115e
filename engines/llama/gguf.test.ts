import { describe, expect, test } from 'vitest';
import { encodeGguf } from './gguf.ts';
import { encodeTinyModel, tinyVocabulary } from './tiny-model.ts';

describe('encodeGguf', () => {
  test('writes magic, version, counts and the first tensor on an aligned offset', () => {
    const values = new Float32Array([1, 2, 3]);
    const file = encodeGguf(new Map([['k', { type: 'uint32', value: 7 }]]), [
      { name: 'a', dimensions: [3], values },
      { name: 'b', dimensions: [3], values },
    ]);
    expect(file.toString('latin1', 0, 4)).toBe('GGUF');
    expect(file.readUInt32LE(4)).toBe(3);
    expect([file.readBigUInt64LE(8), file.readBigUInt64LE(16)]).toEqual([2n, 1n]);
    expect(file.length % 32).toBe(0);
    expect(file.readFloatLE(file.length - 32)).toBe(1);
    expect(file.readFloatLE(file.length - 64)).toBe(1);
  });

  test('refuses a tensor whose values do not fill its dimensions', () => {
    const tensor = { name: 'a', dimensions: [2, 2], values: new Float32Array(3) };
    expect(() => encodeGguf(new Map(), [tensor])).toThrow('Tensor a has 3 values, its dimensions ask for 4');
  });
});

describe('encodeTinyModel', () => {
  const shape = { embedding: 16, layers: 1, heads: 2, feedForward: 32, contextTokens: 64, seed: 7 };

  test('gives the same bytes for the same seed and others for another', () => {
    expect(encodeTinyModel(shape).equals(encodeTinyModel(shape))).toBe(true);
    expect(encodeTinyModel(shape).equals(encodeTinyModel({ ...shape, seed: 8 }))).toBe(false);
  });

  test('has a token for every byte, so that any text can be read', () => {
    const { tokens } = tinyVocabulary();
    expect(tokens.filter((token) => /^<0x[0-9A-F]{2}>$/.test(token)).length).toBe(256);
    expect(new Set(tokens).size).toBe(tokens.length);
  });
});
