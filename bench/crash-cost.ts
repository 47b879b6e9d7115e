/**
 * What a crash of the gateway costs in the middle of the outage: the same users with it and without, seed by seed. Told in
 * seconds, so that a cost is comparable with how long the process is down: of the traffic of the first class (the part of
 * its users who are no longer answered, or no longer in time, times the window), and of the whole fleet's work.
 *
 * Work under way is lost with its connections, and the fleet idles while the process is down. About how much that is, is printed
 * beside: on a node that is always busy E[S²] / 2 E[S] is under way at an instant (the mean age of a renewal process), by sizes as
 * they are asked for.
 *
 *   node bench/crash-cost.ts [--seeds 20] [--seed 1]
 */
import { parseArgs } from 'node:util';
import { FITTED_IMAGES } from '../src/simulator/clients/fitted.ts';
import { readScenario } from '../src/apps/simulate/read-scenario.ts';
import { type Figure, figureOf } from '../src/simulator/parallel/statistics.ts';
import { runAll } from '../src/simulator/parallel/run-all.ts';
import type { PolicyReport } from '../src/simulator/measure/report.ts';
import type { FaultSpec } from '../src/simulator/scenario/types.ts';

const FILE = 'examples/scenarios/incident.yaml';
const [CALM, CRASHED] = ['known-sizes', 'scheduler-crash'];

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '20' }, seed: { type: 'string', default: '1' } },
});

const read = readScenario({
  file: FILE,
  sets: [],
  variants: [CALM, CRASHED],
  policies: ['spillway'],
  traceFile: '',
});
if (read.kind === 'issues') throw new Error(`Could not read ${FILE}`);
const scenarios = read.plan.variants.map(({ scenario }) => scenario);
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => Number(values.seed) + index);
const requests = scenarios.flatMap((scenario) =>
  seeds.map((seed) => ({ scenario, policy: scenario.policies[0]!, seed })),
);
const reports = (await runAll(requests, { workers: 1 })).map(({ report }) => report);
const [calm, crashed] = [reports.slice(0, seeds.length), reports.slice(seeds.length)];
const { window, faults } = scenarios[1]!;
const windowSeconds = (window.until - window.from) / 1e6;
const downSeconds = faults.reduce((sum, fault) => sum + downOf(fault), 0);

function downOf(fault: FaultSpec): number {
  return fault.kind === 'scheduler-crash' ? fault.downUs / 1e6 : 0;
}

/** Lost by the crash, in seconds of the window. */
function lost(of: (report: PolicyReport) => number): Figure {
  return figureOf(calm.map((report, index) => (of(report) - of(crashed[index]!)) * windowSeconds));
}

function text({ mean, low, high }: Figure): string {
  return `${mean.toFixed(2)} s [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}

/** Work under way in a busy fleet at an instant, in seconds of the whole fleet. */
function underWaySeconds(): number {
  const total = FITTED_IMAGES.reduce((sum, [, , share]) => sum + share, 0);
  const moment = (power: number): number =>
    FITTED_IMAGES.reduce(
      (sum, [images, steps, share]) => sum + ((images * steps) ** power * share) / total,
      0,
    );
  const { sizes } = scenarios[1]!.streams[0]!;
  const usPerImageStep = sizes.kind === 'fitted-images' ? sizes.usPerImageStep : 0;
  const aloneSeconds = ((moment(2) / (2 * moment(1))) * usPerImageStep) / 1e6;
  const { fleet } = scenarios[1]!;
  // A node of speed v has been at it for 1 / v times as long, at v times the work per second.
  const nodes = fleet.reduce((sum, { count }) => sum + count, 0);
  return (nodes * aloneSeconds) / fleet.reduce((sum, { count, speed }) => sum + count * speed, 0);
}

const first = scenarios[1]!.config.classes[0]!.name;
const resumes = crashed.map(({ resumeSeconds }) => resumeSeconds);
console.log(`${seeds.length} seeds, down for ${downSeconds} s`);
console.log(
  `up again, until it decides: ${text(figureOf(resumes))}, worst ${Math.max(...resumes).toFixed(3)} s`,
);
console.log(
  `traffic of ${first} no longer answered: ${text(lost((report) => report.byClass[first]!.answered))}`,
);
console.log(
  `traffic of ${first} no longer in time: ${text(lost((report) => report.byClass[first]!.attained))}`,
);
console.log(`work of the whole fleet, by try: ${text(lost((report) => report.goodputByTryRatio))}`);
console.log(
  `of that nobody could keep about ${(downSeconds + underWaySeconds()).toFixed(1)} s: down, and what was under way`,
);
