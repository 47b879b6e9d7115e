/** Were the rates that the scheduler learned true? Measured, not believed: compared with the emulator's own account. */
import type { Rate } from '../../base/units.ts';
import type { NodeTruth } from '../../emulator/index.ts';
import type { NodeReading } from './gateway-watch.ts';

/** Evidence on both sides before a rate is judged. */
const TASKS_MIN = 20;
const ERROR_RATIO_MAX = 0.15;

export interface LearnedRate {
  readonly id: string;
  readonly statedHardware: string;
  readonly trueSpeed: number;
  readonly learned: Rate;
  readonly truth: Rate;
  /** Learned over true, less 1. */
  readonly error: number;
}

export interface LearnedRates {
  readonly rows: readonly LearnedRate[];
  readonly within: number;
  readonly worst: LearnedRate | undefined;
  /** Nodes that ran too few tasks to judge. */
  readonly unjudged: number;
}

export function compareRates(nodes: readonly NodeReading[], truths: readonly NodeTruth[]): LearnedRates {
  const rows: LearnedRate[] = [];
  for (const truth of truths) {
    const rates = nodes.find((node) => node.id === truth.id)?.rates ?? [];
    const reading =
      rates.find((rate) => rate.model === truth.model) ?? rates.find((rate) => rate.model === '');
    if (reading === undefined || reading.observations < TASKS_MIN || truth.recentTasks < TASKS_MIN) continue;
    rows.push({
      id: truth.id,
      statedHardware: truth.statedHardware,
      trueSpeed: truth.trueSpeed / truth.slowFactor,
      learned: reading.rate,
      truth: truth.recentRate,
      error: reading.rate / truth.recentRate - 1,
    });
  }
  rows.sort((left, right) => Math.abs(right.error) - Math.abs(left.error));
  return {
    rows,
    within: rows.filter((row) => Math.abs(row.error) <= ERROR_RATIO_MAX).length,
    worst: rows[0],
    unjudged: truths.length - rows.length,
  };
}
