/** Runs what a plan asks for, spread over cores, and orders what came out by variant and policy. */
import { USERS_LOGGED_MAX } from '../../simulator/measure/user-log.ts';
import { runAll, type RunRequest } from '../../simulator/parallel/run-all.ts';
import type { SimulationResults } from '../../simulator/report/results.ts';
import type { ScenarioPlan } from './read-scenario.ts';

/** Users kept by all runs together: 300 MB. */
const USER_ROWS_MAX = 4_000_000;

export interface RunPlanOptions {
  /** Absent: one thread per core. */
  readonly workers?: number | undefined;
  /** Whether what became of each user is kept, for the first seed. */
  readonly keepsUsers?: boolean | undefined;
  /** Whether the detectors of silent failures look on, in every run. */
  readonly watchesSignals?: boolean | undefined;
  readonly onProgress: (done: number, total: number) => void;
}

/** Variants that lack a trace are left out; who calls has said so. */
export async function runPlan(
  plan: ScenarioPlan,
  { workers, keepsUsers, watchesSignals = false, onProgress }: RunPlanOptions,
): Promise<SimulationResults> {
  const { name, about, seed, seeds } = plan;
  const variants = plan.variants.filter(({ lacksTrace }) => lacksTrace.length === 0);
  const runs = variants.reduce((sum, { scenario }) => sum + scenario.policies.length, 0);
  const usersMax = keepsUsers === true ? Math.floor(USER_ROWS_MAX / Math.max(1, runs)) : 0;
  const requests = variants.flatMap(({ scenario }) => {
    // Plots show the first seed alone.
    const unsampled = { ...scenario, sampleUs: 0 };
    return scenario.policies.flatMap((policy) =>
      Array.from({ length: seeds }, (_, nth): RunRequest => {
        if (nth > 0) return { scenario: unsampled, policy, seed: seed + nth, watchesSignals };
        return { scenario, policy, seed, usersMax: Math.min(USERS_LOGGED_MAX, usersMax), watchesSignals };
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
      const [first] = own;
      const reports = own.map(({ report }) => report);
      const signals = own.flatMap((result) => (result.signals === undefined ? [] : [result.signals]));
      return {
        name: policy.name,
        reports,
        samples: first?.samples,
        users: first?.users,
        signals: watchesSignals ? signals : undefined,
      };
    }),
  }));
  return { name, about, seed, seeds, variants: ran };
}
