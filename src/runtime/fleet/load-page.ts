/**
 * What is known of an engine's own account of its load, and whether it may still be believed.
 *
 *   good ──page gone, or the same "full" for too long──► stale ──another account, or one that is not full──► good
 *
 * Stale is unknown: the scheduler's own count of what it sent decides alone, and people are told. A page that repeats
 * numbers of an idle engine is no sign of anything. An engine that is full by work of others and whose numbers really
 * stand still is taken for stale after a while: it then gets what its slots hold, which is the lesser harm.
 *
 * A page that said "full" is read again although nothing of ours runs there, since no completed work would ask for it.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { EngineReading } from '../../core/scheduler/events.ts';

/** As long as the scheduler's lease on a reading that closes a node. */
const STALE_US: DurationUs = 5_000_000;
/** Below any mark at which a full cache closes a node. */
const CACHE_USE_PRESSING = 0.8;
const UNKNOWN: EngineReading = Object.freeze({});

export interface LoadPage {
  /** The last account; undefined before the first one. */
  reading: EngineReading | undefined;
  /** Since when the account is the same, or is missing. */
  since: MonoUs;
  isMissing: boolean;
  isStale: boolean;
}

export function createLoadPage(): LoadPage {
  return { reading: undefined, since: 0, isMissing: false, isStale: false };
}

/** Whether the engine last said that it can take no more, so that it must be asked again. */
export function isPressing(page: LoadPage): boolean {
  return !page.isMissing && page.reading !== undefined && isFull(page.reading);
}

/** Takes what a look at the page gave; returns what the scheduler is to be told, undefined for nothing. */
export function lookedAt(
  page: LoadPage,
  reading: EngineReading | undefined,
  now: MonoUs,
): EngineReading | undefined {
  if (reading === undefined) {
    // An engine that never gave a load has no page that could be stale.
    if (page.reading === undefined) return undefined;
    if (!page.isMissing) page.since = now;
    page.isMissing = true;
    page.isStale = now - page.since >= STALE_US;
    return page.isStale ? UNKNOWN : undefined;
  }
  if (page.isMissing || page.reading === undefined || !isSame(page.reading, reading)) page.since = now;
  page.reading = reading;
  page.isMissing = false;
  page.isStale = isFull(reading) && now - page.since >= STALE_US;
  return page.isStale ? UNKNOWN : reading;
}

function isFull(reading: EngineReading): boolean {
  return (reading.waiting ?? 0) > 0 || (reading.cacheUse ?? 0) >= CACHE_USE_PRESSING;
}

function isSame(a: EngineReading, b: EngineReading): boolean {
  return a.running === b.running && a.waiting === b.waiting && a.cacheUse === b.cacheUse;
}
