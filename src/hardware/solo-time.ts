/**
 * How long one request takes alone on an accelerator of the catalogue, whatever kind it is. The hardware `reference` does
 * work at rate 1 by definition.
 */
import { type DurationUs, type Rate, US_PER_MS } from '../base/units.ts';
import { catalogueEntry, type CatalogueEntry, catalogueNames, type Sourced } from './catalogue.ts';
import type { Demand } from './demand.ts';
import { referenceWorkUs } from './reference-work.ts';
import { embeddingServiceMs, imageUnitsMs, textServiceMs } from './service-time.ts';

/** Hardware whose service time is the demand's work. */
export const UNIT_HARDWARE = 'reference';

/** Microseconds, not rounded. Throws RangeError for a kind of work that the catalogue has no number for. */
export type SoloTime = (demand: Demand) => DurationUs;

/** Throws RangeError for a name that is not in the catalogue. */
export function soloTimeOf(hardware: string): SoloTime {
  if (hardware === UNIT_HARDWARE) return (demand): number => referenceWorkUs(demand);
  const entry = catalogueEntry(hardware);
  if (entry === undefined) {
    const known = [UNIT_HARDWARE, ...catalogueNames()].join(', ');
    throw new RangeError(`Hardware must be one of ${known}; received ${hardware}`);
  }
  let workRate: Rate | undefined;
  return (demand) => {
    if (demand.kind !== 'work') return US_PER_MS * serviceMs(entry, demand);
    workRate ??= workRateOf(entry);
    return demand.workUs / workRate;
  };
}

function serviceMs(entry: CatalogueEntry, demand: Exclude<Demand, { kind: 'work' }>): number {
  switch (demand.kind) {
    case 'image':
      return imageUnitsMs(modelOf(entry, 'images'), demand.units);
    case 'text':
      return textServiceMs(modelOf(entry, 'textLarge'), demand.promptTokens, demand.outputTokens);
    case 'embedding':
      return embeddingServiceMs(modelOf(entry, 'embeddings'), demand.tokens);
  }
}

type Row = 'images' | 'textLarge' | 'textSmall' | 'embeddings';
type ModelOf<Key extends Row> = NonNullable<CatalogueEntry[Key]> extends Sourced<infer Model> ? Model : never;

function modelOf<Key extends Row>(entry: CatalogueEntry, row: Key): ModelOf<Key> {
  const sourced = entry[row] as Sourced<ModelOf<Key>> | undefined;
  if (sourced === undefined) throw new RangeError(`The hardware catalogue has no ${row} for ${entry.name}`);
  return sourced.model;
}

/** Of work that does not say what is computed: as fast as the card is at one picture. */
function workRateOf(entry: CatalogueEntry): Rate {
  const picture: Demand = { kind: 'image', units: 1 };
  return referenceWorkUs(picture) / (US_PER_MS * serviceMs(entry, picture));
}
