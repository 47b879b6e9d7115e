/** What is asked of a fleet, by model: what capacity is reckoned by, and what known rates are rates of. */
import type { ModelId } from '../../base/units.ts';
import type { Demand } from '../machines/machine.ts';

export interface MixPart {
  readonly model: ModelId;
  /** Of the requests, relative to the other parts. */
  readonly share: number;
  /** A sample of what is asked of the model, drawn as requests are; not empty. */
  readonly demands: readonly Demand[];
}

export type Mix = readonly MixPart[];
