/** What of a node's memory is left after a time in which nobody watched it: leases run on, evidence goes stale. */
import type { DurationUs } from '../../base/units.ts';
import { EVIDENCE_US_MAX } from '../health/failure-score.ts';
import type { ModelMemory } from '../health/model-breakers.ts';
import type { NodeMemory } from './events.ts';

export function agedMemory(memory: NodeMemory, sinceUs: DurationUs): NodeMemory {
  const { failures, breakers = [], strikes = [], ...rest } = memory;
  const left = strikes
    .map(({ fingerprint, forUs }) => ({ fingerprint, forUs: forUs - sinceUs }))
    .filter(({ forUs }) => forUs > 0);
  return {
    ...rest,
    ejectedForUs: Math.max(0, memory.ejectedForUs - sinceUs),
    ...(failures === undefined || sinceUs > EVIDENCE_US_MAX ? {} : { failures }),
    ...(breakers.length === 0 ? {} : { breakers: breakers.map((row) => agedBreaker(row, sinceUs)) }),
    ...(left.length === 0 ? {} : { strikes: left }),
  };
}

function agedBreaker(row: ModelMemory, sinceUs: DurationUs): ModelMemory {
  const { failures, ...rest } = row;
  const openForUs = Math.max(0, row.openForUs - sinceUs);
  const isKept = failures !== undefined && sinceUs <= EVIDENCE_US_MAX;
  return { ...rest, openForUs, ...(isKept ? { failures } : {}) };
}
