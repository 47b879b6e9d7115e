/** All rules, in the order of the names. */
import type { Rule } from '../detector.ts';
import { conservationBreak } from './conservation-break.ts';
import { generationalStarvation } from './generational-starvation.ts';
import { latchedGate } from './latched-gate.ts';
import { littleGap } from './little-gap.ts';
import { phantomStarvation } from './phantom-starvation.ts';
import { priorityInversion } from './priority-inversion.ts';
import { silentStarvation } from './silent-starvation.ts';
import { staleReadings } from './stale-readings.ts';

export const RULES: readonly Rule[] = [
  conservationBreak,
  littleGap,
  phantomStarvation,
  latchedGate,
  silentStarvation,
  generationalStarvation,
  priorityInversion,
  staleReadings,
];
