/**
 * The hardware catalogue: published service times of accelerators, each with where it is from, how it was derived and
 * how far off it may be. Nothing here was measured on the machine that this runs on. See docs/reference/hardware.md.
 */
import { EMBEDDING_ROWS } from './embedding-rows.ts';
import { IMAGE_ROWS } from './image-rows.ts';
import type { EmbeddingModel, ImageModel, TextModel } from './service-time.ts';
import type { Sourced } from './sourced.ts';
import { LARGE_TEXT_ROWS, SMALL_TEXT_ROWS } from './text-rows.ts';

export interface CatalogueEntry {
  readonly name: string;
  readonly images: Sourced<ImageModel> | undefined;
  readonly textLarge: Sourced<TextModel> | undefined;
  readonly textSmall: Sourced<TextModel> | undefined;
  readonly embeddings: Sourced<EmbeddingModel> | undefined;
}

const NAMES = [
  'T4',
  'A10',
  'V100',
  'A100-40',
  'A100-80',
  'H100',
  'RTX-3090',
  'RTX-4090',
  'M1-Max',
  'M2-Ultra',
] as const;

/** Other names of the same entries. */
const ALIASES: ReadonlyMap<string, string> = new Map([['A100', 'A100-40']]);

export const CATALOGUE: readonly CatalogueEntry[] = NAMES.map((name) => ({
  name,
  images: IMAGE_ROWS[name],
  textLarge: LARGE_TEXT_ROWS[name],
  textSmall: SMALL_TEXT_ROWS[name],
  embeddings: EMBEDDING_ROWS[name],
}));

const BY_NAME: ReadonlyMap<string, CatalogueEntry> = new Map(CATALOGUE.map((entry) => [entry.name, entry]));

/** Undefined for what is not in the catalogue. */
export function catalogueEntry(name: string): CatalogueEntry | undefined {
  return BY_NAME.get(ALIASES.get(name) ?? name);
}

/** All names that `catalogueEntry` knows. */
export function catalogueNames(): readonly string[] {
  return [...BY_NAME.keys(), ...ALIASES.keys()];
}
