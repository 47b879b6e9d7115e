/** Where a number of the catalogue is from, and how far off it may be. */
import type { Ratio } from '../base/units.ts';

export type Derivation =
  /** Taken from a table as it stands. */
  | 'measured'
  /** Least squares over published measurements of this card. */
  | 'fitted'
  /** Measurements of other hardware or software that delivers the same headline rate. */
  | 'stand-in'
  /** Another row times the ratio of memory bandwidths, of compute rates, or of sizes. */
  | 'scaled';

export interface Sourced<Model> {
  readonly model: Model;
  readonly derivation: Derivation;
  /** Relative: the truth for the software that is named lies within this of the model, as far as can be told. */
  readonly uncertainty: Ratio;
  readonly source: string;
}
