/**
 * Work in units of one accelerator: the time that a request needs alone on an A100. It makes requests of all kinds and
 * nodes of all speeds comparable: a node's rate is the work it does per time.
 */
import { invariant } from '../base/assert.ts';
import { msToUs, type DurationMs, type RefUs } from '../base/units.ts';
import { catalogueEntry } from './catalogue.ts';
import type { Demand } from './demand.ts';
import type { Sourced } from './sourced.ts';
import { embeddingServiceMs, imageUnitsMs, textServiceMs } from './service-time.ts';

export const REFERENCE_HARDWARE = 'A100';

const REFERENCE = catalogueEntry(REFERENCE_HARDWARE);
const IMAGES = modelOf(REFERENCE?.images);
const TEXT = modelOf(REFERENCE?.textLarge);
const EMBEDDINGS = modelOf(REFERENCE?.embeddings);

function modelOf<Model>(sourced: Sourced<Model> | undefined): Model {
  invariant(sourced !== undefined, 'The reference accelerator has every kind of service time');
  return sourced.model;
}

/** Rounded, at least 1. */
export function referenceWorkUs(demand: Demand): RefUs {
  return demand.kind === 'work'
    ? Math.max(1, Math.round(demand.workUs))
    : Math.max(1, msToUs(referenceMs(demand)));
}

function referenceMs(demand: Exclude<Demand, { kind: 'work' }>): DurationMs {
  switch (demand.kind) {
    case 'image':
      return imageUnitsMs(IMAGES, demand.units);
    case 'text':
      return textServiceMs(TEXT, demand.promptTokens, demand.outputTokens);
    case 'embedding':
      return embeddingServiceMs(EMBEDDINGS, demand.tokens);
  }
}
