/** Nodes that come, go, report and are told to stand back. */
import { assertNever } from '../../base/assert.ts';
import { NodeRecord } from '../health/node-record.ts';
import { AcceleratorMemory, type DeviceMemory } from '../overload/accelerator-memory.ts';
import { forgetNode, restoreBreakers } from './breakers.ts';
import { holdToLimit, limitRead } from './concurrency.ts';
import { dispatchNode } from './dispatch.ts';
import type { EngineReading, NodeMemory, NodeSpec, SchedulerEvent } from './events.ts';
import { heartbeat, probed, refreshNode } from './marks.ts';
import { stopNodeTimer } from './node-timer.ts';
import { saneMemory, saneNode } from './sane.ts';
import { evict } from './settle.ts';
import type { SchedulerState } from './state.ts';

export type NodeEvent = Extract<SchedulerEvent, { kind: `node-${string}` }>;

/** Applies what happened to a node. News of an unknown node is no news. */
export function handleNode(state: SchedulerState, event: NodeEvent): void {
  if (event.kind === 'node-registered') return registerNode(state, saneNode(event.node), event.memory);
  const node = state.fleet.nodes.get(event.nodeId);
  if (node === undefined) return;
  switch (event.kind) {
    case 'node-removed':
      return removeNode(state, node);
    case 'node-heartbeat':
      return heartbeat(state, node);
    case 'node-probed':
      return probed(state, node, event.alive);
    case 'node-reading':
      return nodeReading(state, node, event.reading);
    case 'node-memory':
      return nodeMemory(state, node, event.memory);
    case 'node-cordoned':
      node.cordoned = event.cordoned;
      return reopen(state, node);
    case 'node-draining':
      node.draining = event.draining;
      return reopen(state, node);
    default:
      return assertNever(event);
  }
}

function reopen(state: SchedulerState, node: NodeRecord): void {
  refreshNode(state, node);
  dispatchNode(state, node);
}

/** A new node, or a new statement of a known one: then marks, rates and running tasks stay. */
function registerNode(state: SchedulerState, spec: NodeSpec, memory: NodeMemory | undefined): void {
  const known = state.fleet.nodes.get(spec.id);
  const node = known ?? new NodeRecord(spec, state.nodeOrder++);
  if (known !== undefined) {
    const hasSameOffer =
      JSON.stringify(known.spec.models) === JSON.stringify(spec.models) &&
      known.spec.labels['zone'] === spec.labels['zone'] &&
      known.group === state.fleet.groupFor(spec);
    if (!hasSameOffer) {
      state.fleet.unseat(known);
      forgetNode(state, known);
    }
    known.restate(spec);
    if (!hasSameOffer) state.fleet.seat(known);
  } else {
    if (memory !== undefined)
      restore(state, node, saneMemory(memory, state.config.health.ejectMsMax * 1_000));
    state.fleet.seat(node);
    state.tallies.fleetChanged(state.now);
    state.out.nodeState(spec.id, node.state);
  }
  holdToLimit(state, node);
  expectPrefixes(state, node);
  node.heartbeatDueAt = spec.heartbeats
    ? state.now + state.config.health.suspectAfterMs * 1_000
    : Number.POSITIVE_INFINITY;
  refreshNode(state, node);
  dispatchNode(state, node);
}

/** Whether it keeps prompts, and how much of them, is its own statement. */
function expectPrefixes(state: SchedulerState, node: NodeRecord): void {
  const { prefixes } = state.context;
  const stated = node.spec.prefixBlocks ?? 0;
  if (node.prefixes !== null) prefixes.restate(node.prefixes, stated);
  else if (stated > 0) node.prefixes = prefixes.join(node, stated);
}

/** Running tasks keep their permits until their attempts end; what no node can serve any more is evicted. */
function removeNode(state: SchedulerState, node: NodeRecord): void {
  stopNodeTimer(state, node);
  state.fleet.unseat(node);
  forgetNode(state, node);
  if (node.prefixes !== null) state.context.prefixes.leave(node.prefixes);
  node.prefixes = null;
  node.state = 'gone';
  state.tallies.fleetChanged(state.now);
  state.out.nodeState(node.spec.id, 'gone');
  for (const lane of state.fleet.lanes.values()) {
    if (lane.tasks === 0 || lane.pools.some((pool) => pool.seats.size > 0)) continue;
    for (let task = lane.next(state.now); task !== null; task = lane.next(state.now))
      evict(state, task, 'no-node');
  }
}

/**
 * An engine's account of itself closes or opens its room, or bounds it. What it does not say is unknown and closes nothing; what
 * was sent since it last looked is covered by our own count of in-flight tasks.
 */
function nodeReading(state: SchedulerState, node: NodeRecord, reading: EngineReading): void {
  const { cacheUseMax, cacheUseResume } = state.config.placement;
  if (reading.waiting !== undefined || reading.cacheUse !== undefined) node.readAt = state.now;
  const cacheUse = reading.cacheUse ?? 0;
  const isCacheFull = node.readingFull ? cacheUse > cacheUseResume : cacheUse > cacheUseMax;
  node.readingFull = limitRead(state, node, reading) || isCacheFull;
  node.readingUntil = node.readingFull ? state.now + READING_LEASE_US : 0;
  tellCache(state, node, reading.cacheUse);
  refreshNode(state, node);
  dispatchNode(state, node);
}

/** The cache of an engine that tells it is its memory; see overload/accelerator-memory.ts. */
function tellCache(state: SchedulerState, node: NodeRecord, cacheUse: number | undefined): void {
  if (cacheUse === undefined && node.memory === null) return;
  node.memory ??= new AcceleratorMemory();
  node.memory.tellCache(cacheUse, state.now);
  state.ladder.noteMemory(state.now);
}

function nodeMemory(state: SchedulerState, node: NodeRecord, device: DeviceMemory): void {
  node.memory ??= new AcceleratorMemory();
  node.memory.tellDevice(device, node.running.length === 0, state.now);
  state.ladder.noteMemory(state.now);
}

/** A reading that closes a node's room counts for this long; then it is stale, and unknown is not full. */
const READING_LEASE_US = 5_000_000;

function restore(state: SchedulerState, node: NodeRecord, memory: NodeMemory): void {
  node.cordoned = memory.cordoned;
  node.draining = memory.draining;
  node.ejections = memory.ejections;
  if (memory.ejectedForUs > 0) {
    node.ejectedUntil = state.now + memory.ejectedForUs;
    node.isTrial = true;
  }
  if (memory.failures !== undefined) node.failures.restore(memory.failures, state.now);
  restoreBreakers(state, node, memory.breakers ?? []);
  for (const strike of memory.strikes ?? []) {
    state.poison.strike(strike, node.spec.id, state.now);
    node.struckBy = [...node.struckBy, strike.fingerprint];
  }
  for (const { model, rate, observations } of memory.rates) {
    if (observations > 0) node.restoreRate(model, rate, observations);
  }
}
