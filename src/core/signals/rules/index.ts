/** All rules, in the order of the names. */
import type { Rule } from '../detector.ts';
import { affinityLoss } from './affinity-loss.ts';
import { connectionChurn } from './connection-churn.ts';
import { conservationBreak } from './conservation-break.ts';
import { generationalStarvation } from './generational-starvation.ts';
import { contentionHeat } from './contention-heat.ts';
import { ghostQueue } from './ghost-queue.ts';
import { jointEntropy } from './joint-entropy.ts';
import { labelDrift } from './label-drift.ts';
import { latchedGate } from './latched-gate.ts';
import { latencySpread } from './latency-spread.ts';
import { littleGap } from './little-gap.ts';
import { memoryFragmentation, memoryHoarding } from './memory.ts';
import { nodeVariance } from './node-variance.ts';
import { ownershipFlapping } from './ownership-flapping.ts';
import { phantomSlo } from './phantom-slo.ts';
import { phantomStarvation } from './phantom-starvation.ts';
import { predictionError } from './prediction-error.ts';
import { priorityInversion } from './priority-inversion.ts';
import { queueGrowth } from './queue-growth.ts';
import { readyButFailing } from './ready-but-failing.ts';
import { silentOverload } from './silent-overload.ts';
import { silentStarvation } from './silent-starvation.ts';
import { sloDrift } from './slo-drift.ts';
import { staleReadings } from './stale-readings.ts';
import { trafficSink } from './traffic-sink.ts';
import { waitSpread } from './wait-spread.ts';

export const RULES: readonly Rule[] = [
  conservationBreak,
  littleGap,
  phantomStarvation,
  latchedGate,
  silentStarvation,
  generationalStarvation,
  priorityInversion,
  nodeVariance,
  readyButFailing,
  trafficSink,
  queueGrowth,
  silentOverload,
  sloDrift,
  ghostQueue,
  affinityLoss,
  ownershipFlapping,
  connectionChurn,
  memoryFragmentation,
  memoryHoarding,
  jointEntropy,
  waitSpread,
  latencySpread,
  labelDrift,
  contentionHeat,
  predictionError,
  phantomSlo,
  staleReadings,
];
