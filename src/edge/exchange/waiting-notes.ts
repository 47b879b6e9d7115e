/** Texts of the comments that keep a waiting stream alive: where its request stands in the queue. */
import type { MonoUs } from '../../base/units.ts';
import type { Gateway } from '../../runtime/contract.ts';

/** Queue positions are computed on demand and cost a look at the fleet: at most this many per second. */
const POSITIONS_PER_SECOND_MAX = 20;

/** The note of a request by its public id; beyond the limit, and once it no longer waits in the queue, it has no position. */
export function createWaitingNotes(gateway: Gateway): (publicId: string) => string {
  let positions = POSITIONS_PER_SECOND_MAX;
  let positionsAt: MonoUs = 0;
  return (publicId) => {
    const now = gateway.now();
    if (now - positionsAt >= 1_000_000) {
      positionsAt = now;
      positions = POSITIONS_PER_SECOND_MAX;
    }
    if (positions <= 0) return 'waiting';
    positions--;
    const live = gateway.request(publicId)?.live;
    if (live === undefined || live.state !== 'queued') return 'waiting';
    const eta = live.etaMs === null ? '' : ` eta-ms=${Math.round(live.etaMs)}`;
    return `waiting position=${live.position}${eta}`;
  };
}
