/**
 * How long things take on an accelerator of the catalogue, whatever kind they are. The hardware `reference` does work at
 * rate 1 by definition, and is otherwise the reference accelerator.
 */
import { type DurationMs, type DurationUs, type Rate, US_PER_MS } from '../base/units.ts';
import { catalogueEntry, type CatalogueEntry, catalogueNames } from './catalogue.ts';
import type { Demand } from './demand.ts';
import { REFERENCE_HARDWARE, referenceWorkUs } from './reference-work.ts';
import type { Sourced } from './sourced.ts';
import { textServiceMs, type TextModel } from './service-time.ts';

/** Hardware whose service time is the demand's work. */
export const UNIT_HARDWARE = 'reference';

/** Microseconds, not rounded. Throws RangeError for a kind of work that the catalogue has no number for. */
export type TimeOf = (demand: Demand) => DurationUs;

export interface HardwareTimes {
  /** Of a request alone. */
  readonly soloUs: TimeOf;
  /** What of it is spent once, however many requests are computed together. */
  readonly fixedUs: TimeOf;
  /** Throws RangeError where the catalogue has no such row. */
  text(): TextModel;
}

/** Which of its language models is served: `large` over four cards, or `small` on one. */
export type TextSize = 'large' | 'small';

/** Throws RangeError for a name that is not in the catalogue. */
export function hardwareTimes(hardware: string, textSize: TextSize): HardwareTimes {
  const isUnit = hardware === UNIT_HARDWARE;
  const entry = catalogueEntry(isUnit ? REFERENCE_HARDWARE : hardware);
  if (entry === undefined) {
    const known = [UNIT_HARDWARE, ...catalogueNames()].join(', ');
    throw new RangeError(`Hardware must be one of ${known}; received ${hardware}`);
  }
  const text = (): TextModel => modelOf(entry, textSize === 'large' ? 'textLarge' : 'textSmall');
  let workRate: Rate | undefined;
  const soloUs: TimeOf = (demand) => {
    if (demand.kind === 'text')
      return US_PER_MS * textServiceMs(text(), demand.promptTokens, demand.outputTokens);
    if (demand.kind !== 'work') return US_PER_MS * (fixedMs(entry, demand) + variableMs(entry, demand));
    workRate ??= workRateOf(entry);
    return demand.workUs / workRate;
  };
  return {
    soloUs: isUnit && textSize === 'large' ? (demand): number => referenceWorkUs(demand) : soloUs,
    fixedUs: (demand) => US_PER_MS * fixedMs(entry, demand),
    text,
  };
}

function fixedMs(entry: CatalogueEntry, demand: Demand): DurationMs {
  if (demand.kind === 'image') return modelOf(entry, 'images').fixedMs;
  if (demand.kind === 'embedding') return modelOf(entry, 'embeddings').fixedMs;
  return 0;
}

function variableMs(
  entry: CatalogueEntry,
  demand: Extract<Demand, { kind: 'image' | 'embedding' }>,
): DurationMs {
  return demand.kind === 'image'
    ? modelOf(entry, 'images').perImageMs * demand.units
    : modelOf(entry, 'embeddings').perTokenMs * demand.tokens;
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
  const picture = { kind: 'image', units: 1 } as const;
  const pictureMs = fixedMs(entry, picture) + variableMs(entry, picture);
  return referenceWorkUs(picture) / (US_PER_MS * pictureMs);
}
