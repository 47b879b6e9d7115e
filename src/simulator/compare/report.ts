/** What a comparison says of one variant, for one seed: the first policy against each other one, and all against an oracle. */
import { type RegretReport, regretOf } from '../oracle/regret.ts';
import type { SimulationResults, VariantRuns } from '../report/results.ts';
import { type Comparison, compareUsers } from './compare-users.ts';
import type { NamedRows } from './compare-csv.ts';

export interface CompareReport {
  readonly pairs: readonly Comparison[];
  readonly regret: RegretReport;
}

/** The same results with comparisons, of those runs that kept their users. */
export function withComparisons(results: SimulationResults): SimulationResults {
  const variants = results.variants.map((variant) => ({ ...variant, compare: compareReport(variant) }));
  return { ...results, variants };
}

function compareReport({ scenario, policies }: VariantRuns): CompareReport | undefined {
  const named = namedRows(policies);
  const [first, ...others] = named;
  if (first === undefined) return undefined;
  return { pairs: others.map((other) => compareUsers(first, other)), regret: regretOf(scenario, named) };
}

export function namedRows(policies: VariantRuns['policies']): readonly NamedRows[] {
  return policies.flatMap(({ name, users }) => (users === undefined ? [] : [{ name, rows: users }]));
}
