/** What a simulation came to: for each variant and policy the report of each seed, in order of seeds. */
import type { CompareReport } from '../compare/report.ts';
import type { PolicyReport } from '../measure/report.ts';
import type { SignalsReport } from '../measure/signal-log.ts';
import type { Samples } from '../measure/samples.ts';
import type { UserRows } from '../measure/user-log.ts';
import type { Scenario } from '../scenario/types.ts';

export interface PolicyRuns {
  readonly name: string;
  /** One for each seed. */
  readonly reports: readonly PolicyReport[];
  /** Of the first seed, where the scenario asks for samples. */
  readonly samples?: Samples | undefined;
  /** Of the first seed, where policies are compared by user. */
  readonly users?: UserRows | undefined;
  /** What the detectors of silent failures found, by seed, where they look on; of policies that can be watched. */
  readonly signals?: readonly SignalsReport[] | undefined;
}

export interface VariantRuns {
  /** '' for a scenario without variants. */
  readonly name: string;
  readonly scenario: Scenario;
  readonly policies: readonly PolicyRuns[];
  /** The first seed by user, where that is asked for. */
  readonly compare?: CompareReport | undefined;
}

export interface SimulationResults {
  readonly name: string;
  readonly about: string;
  readonly seed: number;
  readonly seeds: number;
  readonly variants: readonly VariantRuns[];
}
