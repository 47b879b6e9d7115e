/**
 * Whether a node that became slower did so alone. What slows all of them at once (heat, a new engine version, other work on
 * the hosts, a slower network) is no fault of any, and to eject each in turn would make of a slowdown the loss of most of the capacity.
 *
 *   well       capacity of peers that are open and not slower than usual
 *   shared     capacity of peers that are suspected of having become slower, ejected, or back from it and not proven yet
 *   the cause is common where shared > 0 and well <= shared
 *
 * Peers are the other nodes of its pools that offer the model. One of whom no usual pace is known is neither: in a fleet
 * that is new, or that has just accepted a pace, it proves nothing. Ejected ones are capacity that is gone already, so that never
 * much more than half is out for slowness: a panic threshold (Envoy's, 50 %).
 */
import type { NodeRecord } from '../health/node-record.ts';
import type { SchedulerState } from './state.ts';

/** The peers with which the node shares what made it slower, or null where it is slower by itself. O(nodes of its pools). */
export function peersSharingCause(
  state: SchedulerState,
  node: NodeRecord,
  model: string,
): readonly NodeRecord[] | null {
  const { config, now } = state;
  const peers = peersOf(node, model);
  let well = 0;
  let shared = 0;
  for (const peer of peers) {
    const pace = peer.knownPaceOf(model);
    // Ejections are counted until it has proven itself after the last one.
    const isOut = peer.ejectedUntil > now || peer.ejections > 0;
    if (isOut || pace?.isSuspected === true) shared += peer.usualCapacity(config);
    else if (pace?.isEstablished === true && peer.suspectUntil <= now) well += peer.usualCapacity(config);
  }
  return shared > 0 && well <= shared ? peers : null;
}

function peersOf(node: NodeRecord, model: string): readonly NodeRecord[] {
  const peers: NodeRecord[] = [];
  for (const { pool } of node.seats) {
    if (!pool.offers.has(model)) continue;
    for (const { node: peer } of pool.seats)
      if (peer !== node && !peer.cordoned && !peer.draining) peers.push(peer);
  }
  return peers;
}
