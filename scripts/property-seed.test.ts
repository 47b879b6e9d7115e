import { describe, expect, test } from 'vitest';
import { propertySeed } from './property-seed.ts';

describe('propertySeed', () => {
  test('throws when CI gives no seed', () => {
    expect(() => propertySeed({ CI: 'true' })).toThrow('CI must set FC_SEED');
  });

  test('leaves a developer without a seed a fresh one', () => {
    expect(propertySeed({})).toBeUndefined();
    expect(propertySeed({ CI: 'false' })).toBeUndefined();
  });

  test('takes the seed that is named', () => {
    expect(propertySeed({ CI: '1', FC_SEED: '42' })).toBe(42);
  });

  test('throws when the seed is no integer', () => {
    expect(() => propertySeed({ FC_SEED: 'abc' })).toThrow('FC_SEED must be an integer');
  });
});
