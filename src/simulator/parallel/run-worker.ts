/** A thread that runs one scenario after another as it is told. */
import { parentPort } from 'node:worker_threads';
import { runScenario, type RunExtras, type RunResult } from '../run-scenario.ts';
import type { PolicySpec, Scenario } from '../scenario/types.ts';

/** Scenarios are told once and named by their number afterwards: they are much larger than the rest. */
export type WorkerTask =
  | { readonly kind: 'scenario'; readonly number: number; readonly scenario: Scenario }
  | ({
      readonly kind: 'run';
      readonly scenario: number;
      readonly policy: PolicySpec;
      readonly seed: number;
    } & RunExtras);

export type WorkerAnswer =
  | { readonly kind: 'done'; readonly result: RunResult }
  | { readonly kind: 'failed'; readonly message: string };

const scenarios = new Map<number, Scenario>();

function run(task: Extract<WorkerTask, { kind: 'run' }>): WorkerAnswer {
  try {
    const scenario = scenarios.get(task.scenario) as Scenario;
    return { kind: 'done', result: runScenario(scenario, task.policy, task.seed, task) };
  } catch (thrown) {
    const message = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    return { kind: 'failed', message };
  }
}

parentPort?.on('message', (task: WorkerTask) => {
  if (task.kind === 'scenario') scenarios.set(task.number, task.scenario);
  else parentPort?.postMessage(run(task));
});
