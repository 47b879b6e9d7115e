/**
 * What the scheduler's state says of a model's overload: how long its queues would take, and how full the memory of
 * its nodes is. Read at samples only.
 */
import type { DurationUs, MonoUs, Rate, Ratio } from '../../base/units.ts';
import { laneCapacity } from '../admission/feasibility.ts';
import type { LadderConfig } from '../config/types.ts';
import type { Pool } from '../placement/pool.ts';
import type { Lane } from '../queue/lane.ts';

/** One typical task that waits for each node is no long queue, however long it takes. */
const SERVICE_TIMES_MIN = 1.25;
/** Nor before so many tasks wait for each slot, by their count: a count is no time. */
const WAITING_PER_SLOT_MIN = 8;
/** A queue without any capacity would count as endless, and would be remembered as long. */
const PRESSURE_MAX = 4;

export interface QueueEvidence {
  /** The greater of the two ratios; from 1 on the queue is too long. */
  pressure: number;
  /** Of the class that presses most: how long its waiting work takes at its share, and how long it may. */
  className: string;
  drainUs: DurationUs;
  targetUs: DurationUs;
  depth: number;
  depthMax: number;
}

export function noQueue(): QueueEvidence {
  return { pressure: 0, className: '', drainUs: 0, targetUs: 0, depth: 0, depthMax: 0 };
}

/** How long a lane's classes take: the same for all models whose tasks wait there, so it is worked out once per round of samples. */
export interface LaneDrain {
  round: number;
  /** Below so much no queue is long. */
  floorUs: DurationUs;
  /** By class, of those that wait. */
  readonly drainsUs: DurationUs[];
}

/** What a model's queues are held against. */
export interface QueueTargets {
  /** What the gate per flow lets wait, by class, for the deadlines that requests really have. */
  readonly gatesUs: readonly DurationUs[];
  /** Number of the round of samples: within one nothing changes. */
  readonly round: number;
}

/** Finds how long the queues of the lanes are, and tells it in `found`. O(lanes x classes). */
export function lookAtQueues(
  lanes: readonly Lane[],
  targets: QueueTargets,
  config: LadderConfig,
  found: QueueEvidence,
): void {
  found.pressure = 0;
  found.className = '';
  found.drainUs = 0;
  found.targetUs = 0;
  let depth = 0;
  for (const lane of lanes) {
    if (lane.tasks === 0) continue;
    depth += lane.tasks;
    lookAtLane(lane, targets, config, found);
  }
  found.depth = depth;
  found.depthMax = depth < config.depthMax ? config.depthMax : depthLimit(lanes, config);
  found.pressure = Math.min(PRESSURE_MAX, Math.max(found.pressure, depth / found.depthMax));
}

function lookAtLane(
  lane: Lane,
  { gatesUs, round }: QueueTargets,
  config: LadderConfig,
  found: QueueEvidence,
): void {
  const { drainsUs, floorUs } = drainOf(lane, round);
  for (const laneClass of lane.classes) {
    if (laneClass.tasks === 0) continue;
    const { index, config: classConfig } = laneClass.classRecord;
    const drainUs = drainsUs[index] as DurationUs;
    const targetUs = Math.max(floorUs, (gatesUs[index] ?? 0) * config.queueRatioMax);
    const pressure = drainUs / targetUs;
    if (pressure <= found.pressure) continue;
    found.pressure = pressure;
    found.className = classConfig.name;
    found.drainUs = drainUs;
    found.targetUs = targetUs;
  }
}

function drainOf(lane: Lane, round: number): LaneDrain {
  const drain = (lane.drain ??= { round: -1, floorUs: 0, drainsUs: lane.classes.map(() => 0) });
  if (drain.round === round) return drain;
  drain.round = round;
  drain.floorUs = SERVICE_TIMES_MIN * typicalServiceUs(lane);
  const capacity = laneCapacity(lane);
  let weights = 0;
  for (const laneClass of lane.classes) if (laneClass.tasks > 0) weights += laneClass.classRecord.weight;
  for (const laneClass of lane.classes) {
    if (laneClass.tasks === 0) continue;
    const { index, weight } = laneClass.classRecord;
    const rate: Rate = (capacity * weight) / weights;
    drain.drainsUs[index] = rate === 0 ? Number.POSITIVE_INFINITY : laneClass.workUs / rate;
  }
  return drain;
}

/** Time of a typical task on the fastest open node, or 0 when none is open. */
function typicalServiceUs(lane: Lane): DurationUs {
  let least = Number.POSITIVE_INFINITY;
  for (const pool of lane.pools) {
    const node = pool.fastest();
    if (node !== undefined) least = Math.min(least, pool.typicalWorkUs / node.soloRate);
  }
  return Number.isFinite(least) ? least : 0;
}

/** In a large fleet more may wait before it is long. */
function depthLimit(lanes: readonly Lane[], config: LadderConfig): number {
  let slots = 0;
  const [only] = lanes;
  if (lanes.length === 1 && only !== undefined) for (const pool of only.pools) slots += pool.openSlots;
  else for (const pool of poolsOf(lanes)) slots += pool.openSlots;
  return Math.max(config.depthMax, slots * WAITING_PER_SLOT_MIN);
}

/**
 * Mean use of accelerator memory over the open nodes that tell it; unknown while fewer than half of them do, since
 * what one node says is no evidence about the others. O(nodes of the lanes).
 */
export function memoryEvidence(lanes: readonly Lane[], now: MonoUs): Ratio | undefined {
  let open = 0;
  let told = 0;
  let sum = 0;
  for (const pool of poolsOf(lanes)) {
    for (const { node, isIndexed } of pool.seats) {
      if (!isIndexed) continue;
      open += 1;
      const use = node.memory?.useAt(now);
      if (use === undefined) continue;
      told += 1;
      sum += use;
    }
  }
  return told === 0 || told * 2 < open ? undefined : sum / told;
}

function poolsOf(lanes: readonly Lane[]): ReadonlySet<Pool> {
  return new Set(lanes.flatMap((lane) => lane.pools));
}
