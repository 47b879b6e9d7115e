/** Runs what a plan asks for, spread over cores, and orders what came out by variant and policy. */
import { runAll, type RunRequest } from '../../simulator/parallel/run-all.ts';
import type { SimulationResults } from '../../simulator/report/results.ts';
import type { ScenarioPlan } from './read-scenario.ts';

export interface RunPlanOptions {
  /** Absent: one thread per core. */
  readonly workers?: number | undefined;
  readonly onProgress: (done: number, total: number) => void;
}

/** Variants that lack a trace are left out; who calls has said so. */
export async function runPlan(
  plan: ScenarioPlan,
  { workers, onProgress }: RunPlanOptions,
): Promise<SimulationResults> {
  const { name, about, seed, seeds } = plan;
  const variants = plan.variants.filter(({ lacksTrace }) => lacksTrace.length === 0);
  const requests = variants.flatMap(({ scenario }) => {
    // Plots show the first seed alone.
    const unsampled = { ...scenario, sampleUs: 0 };
    return scenario.policies.flatMap((policy) =>
      Array.from({ length: seeds }, (_, nth): RunRequest => {
        return { scenario: nth === 0 ? scenario : unsampled, policy, seed: seed + nth };
      }),
    );
  });
  const results = await runAll(requests, {
    ...(workers === undefined ? {} : { workers }),
    progress: ({ done, of }) => onProgress(done, of),
  });
  let at = 0;
  const ran = variants.map((variant) => ({
    ...variant,
    policies: variant.scenario.policies.map((policy) => {
      const own = results.slice(at, (at += seeds));
      return { name: policy.name, reports: own.map(({ report }) => report), samples: own[0]?.samples };
    }),
  }));
  return { name, about, seed, seeds, variants: ran };
}
