import { describe, expect, test } from 'vitest';
import { EMBEDDING_ROWS } from './embedding-rows.ts';
import { IMAGE_ROWS } from './image-rows.ts';
import { LARGE_TEXT_ROWS, SMALL_TEXT_ROWS } from './text-rows.ts';
import { CATALOGUE, catalogueEntry, catalogueNames } from './catalogue.ts';

describe('CATALOGUE', () => {
  test('gives each row positive numbers, a source and an uncertainty', () => {
    for (const { images, textLarge, textSmall, embeddings } of CATALOGUE) {
      for (const row of [images, textLarge, textSmall, embeddings]) {
        if (row === undefined) continue;
        const numbers = JSON.stringify(row.model).match(/[\d.e-]+(?=[,}])/g) ?? [];
        expect(numbers.length).toBeGreaterThanOrEqual(2);
        expect(numbers.every((ms) => Number(ms) > 0)).toBe(true);
        expect(row.uncertainty).toBeGreaterThan(0);
        expect(row.uncertainty).toBeLessThan(1);
        expect(row.source.length).toBeGreaterThan(20);
      }
    }
  });

  test('uses every row of its tables, under a name that is there once', () => {
    const names = CATALOGUE.map(({ name }) => name);
    for (const rows of [IMAGE_ROWS, LARGE_TEXT_ROWS, SMALL_TEXT_ROWS, EMBEDDING_ROWS])
      expect(names).toEqual(expect.arrayContaining(Object.keys(rows)));
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
