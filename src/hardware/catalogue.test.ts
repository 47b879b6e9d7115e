import { describe, expect, test } from 'vitest';
import { CATALOGUE, catalogueEntry, catalogueNames } from './catalogue.ts';

describe('CATALOGUE', () => {
  test('gives each row positive numbers, a source and an uncertainty', () => {
    for (const { images, textLarge, textSmall, embeddings } of CATALOGUE) {
      for (const row of [images, textLarge, textSmall, embeddings]) {
        if (row === undefined) continue;
        expect(Object.values(row.model).every((ms) => ms > 0)).toBe(true);
        expect(row.uncertainty).toBeGreaterThan(0);
        expect(row.uncertainty).toBeLessThan(1);
        expect(row.source.length).toBeGreaterThan(20);
      }
    }
  });

  test('has no row without a picture, a text or an embedding, and no name twice', () => {
    for (const { name, ...rows } of CATALOGUE) expect(Object.keys(rows).length, name).toBeGreaterThan(0);
    expect(new Set(catalogueNames()).size).toBe(catalogueNames().length);
  });
});

describe('catalogueEntry', () => {
  test('knows every name that catalogueNames tells, and no other', () => {
    for (const name of catalogueNames()) expect(catalogueEntry(name), name).toBeDefined();
    expect(catalogueEntry('Abacus')).toBeUndefined();
    expect(catalogueEntry('toString')).toBeUndefined();
  });

  test('takes A100 for the card with 40 GB', () => {
    expect(catalogueEntry('A100')?.name).toBe('A100-40');
  });
});
