/** Takes the detectors' sample from counters and heads of queues; see signals/sample.ts. */
import type { MonoUs } from '../../base/units.ts';
import { totalOf } from '../admission/bounds.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { ClassRecord } from '../queue/flow.ts';
import {
  type ClassSample,
  type LogSumsSample,
  type NodeSample,
  type Sample,
  TENANT_ROWS_MAX,
  type TenantSample,
  WATCHED_NODES_MAX,
} from '../signals/index.ts';
import { stateOf } from './marks.ts';
import type { SchedulerState } from './state.ts';
import { waitingRows } from './sample-waiting.ts';

/** Flows looked at per class for those with most work waiting: some of the heap's first have nothing left. */
const FLOWS_LOOKED_AT_MAX = 64;

export function takeSample(state: SchedulerState, now: MonoUs): Sample {
  const { tallies, ladder } = state;
  const { residence } = tallies;
  residence.until(now);
  const stages = tallies.stages.sample();
  return {
    at: now,
    accounts: { ...state.counts, queued: totalOf(state.classes).tasks },
    inside: residence.now,
    insideUs: residence.insideUs,
    left: residence.left,
    stayedUs: residence.stayedUs,
    classes: state.classes.map((record) => classSample(record, now)),
    ...fleetSample(state, now),
    waiting: waitingRows(state, now),
    tenants: tenantRows(state),
    gates: state.gates.counts(),
    rejections: Object.fromEntries(tallies.rejections),
    ladderStage: ladder.stage,
    isLadderSet: ladder.isSetByHand(now),
    shedClasses: state.shedClasses,
    retries: tallies.retries,
    comebacks: tallies.comebacks,
    promptWorkUs: tallies.promptWorkUs,
    savedWorkUs: tallies.savedWorkUs,
    fleetChanges: tallies.fleetChanges,
    fleetChangedAt: tallies.fleetChangedAt,
    ...(stages === undefined ? {} : { stages }),
  };
}

function classSample(record: ClassRecord, now: MonoUs): ClassSample {
  const { tally, queued, config, weight } = record;
  let oldestWaitUs = 0;
  for (const { oldest } of record.models.values())
    if (oldest !== null) oldestWaitUs = Math.max(oldestWaitUs, now - oldest.submittedAt);
  return {
    name: config.name,
    share: weight,
    depth: queued.tasks,
    workUs: queued.workUs,
    oldestWaitUs,
    running: tally.running,
    arrived: tally.arrived,
    dispatched: tally.dispatched,
    waitS: tally.waitS,
    waitSquares: tally.waitSquares,
    dispatchedWorkUs: tally.dispatchedWorkUs,
    served: tally.served,
    missed: tally.missed,
    failed: tally.failed,
    cancelled: tally.cancelled,
    overtaken: tally.overtaken,
    pace: sumsOf(tally.pace),
    paceSteps: tally.paceSteps.slice(),
    tenantPaces: tally.tenantPaces.sample(),
    deadlineUsed: tally.deadlineUsed,
  };
}

type FleetSample = Pick<
  Sample,
  | 'nodes'
  | 'nodesTotal'
  | 'openNodes'
  | 'slots'
  | 'inflight'
  | 'capacity'
  | 'inflightUs'
  | 'servedWorkUs'
  | 'permits'
>;

/** Sums over all nodes, and rows of the first ones. */
function fleetSample(state: SchedulerState, now: MonoUs): FleetSample {
  const nodes: NodeSample[] = [];
  const sums = {
    openNodes: 0,
    slots: 0,
    inflight: 0,
    capacity: 0,
    inflightUs: 0,
    servedWorkUs: 0,
    permits: 0,
  };
  for (const node of state.fleet.nodes.values()) {
    sums.inflightUs += node.inflightUsAt(now);
    sums.servedWorkUs += node.servedWorkUs;
    sums.permits += node.running.length;
    if (node.isOpen(now)) {
      sums.openNodes += 1;
      sums.slots += node.slotsMax(state.config);
      sums.inflight += node.running.length;
      sums.capacity += node.capacity(state.config);
    }
    if (nodes.length < WATCHED_NODES_MAX) nodes.push(nodeSample(state, node, now));
  }
  return { nodes, nodesTotal: state.fleet.nodes.size, ...sums };
}

function nodeSample(state: SchedulerState, node: NodeRecord, now: MonoUs): NodeSample {
  const { spec } = node;
  const deviceUse = node.memory?.deviceUseAt(now);
  const memoryUse = node.memory?.useAt(now);
  return {
    id: spec.id,
    hardware: spec.hardware,
    state: stateOf(node, now),
    isOpen: node.isOpen(now),
    isReady: node.failedProbes === 0 && node.suspectUntil <= now,
    inflight: node.running.length,
    slots: node.slotsMax(state.config),
    drainUs: node.drainUs(now),
    capacity: node.capacity(state.config),
    inflightUs: node.inflightUsAt(now),
    started: node.started,
    startedWorkUs: node.startedWorkUs,
    served: node.served,
    servedWorkUs: node.servedWorkUs,
    failed: node.failed,
    refused: node.refused,
    elapsedUs: node.elapsedUs,
    flips: node.flips,
    predictions: sumsOf(node.predictions),
    paces: Array.from(node.paces, ([model, pace]) => ({
      model,
      ...sumsOf(pace),
      inflight: pace.inflight,
    })),
    ...(deviceUse === undefined ? {} : { deviceUse }),
    ...(memoryUse === undefined ? {} : { memoryUse }),
  };
}

function sumsOf({ count, sum, squares }: LogSumsSample): LogSumsSample {
  return { count, sum, squares };
}

/** Of each class the first flows of its heap by queued work. O(classes). */
function tenantRows(state: SchedulerState): readonly TenantSample[] {
  const rows = new Map<string, TenantSample>();
  for (const { victims } of state.classes) {
    let lookedAt = 0;
    for (const { tenant, tenantQueued } of victims) {
      if (++lookedAt > FLOWS_LOOKED_AT_MAX || rows.size >= TENANT_ROWS_MAX) break;
      const { tasks, workUs } = tenantQueued;
      if (tasks > 0) rows.set(tenant, { tenant, depth: tasks, workUs });
    }
  }
  return [...rows.values()];
}
