/** What the emulated fleet could have done, from its own truth. */
import type { DurationMs } from '../../base/units.ts';
import { imageWorkMs, imageUnits, type NodeTruth } from '../../emulator/index.ts';
import type { DemoPlan } from './plan.ts';
import { meanOverSizes } from './sizes.ts';

/** The part of the truth that decides speed. */
export type NodeSpeed = Pick<NodeTruth, 'fixedMs' | 'perImageMs'>;

/** Work per millisecond that these nodes complete when each serves the fitted mix of sizes without a pause. */
export function fleetRate(plan: DemoPlan, nodes: readonly NodeSpeed[]): number {
  const meanWorkMs = meanOverSizes(imageWorkMs) / plan.speedup;
  const meanUnits = meanOverSizes(imageUnits);
  return nodes.reduce((sum, node) => sum + meanWorkMs / (node.fixedMs + node.perImageMs * meanUnits), 0);
}

export interface SpeedSpan {
  readonly durationMs: DurationMs;
  readonly nodes: readonly NodeSpeed[];
}

/** Work that the fleet could complete over spans of constant speed. */
export function capacityWorkMs(plan: DemoPlan, spans: readonly SpeedSpan[]): DurationMs {
  return spans.reduce((sum, span) => sum + span.durationMs * fleetRate(plan, span.nodes), 0);
}
