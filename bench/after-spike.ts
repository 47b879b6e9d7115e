/**
 * Who is not answered just after an overload, and why: users of `metastability.yaml` by when they came, in tens of seconds after the end
 * of the spike, with the work that waited at that moment; the same without a spike; and beside it a fluid that has no queue, no
 * nodes and no sizes, in which each class gets its share by weight and every try of a class has the same chance.
 *
 *   node bench/after-spike.ts [--seeds 20] [--policy spillway,no-gates]
 */
import { parseArgs } from 'node:util';
import { readScenario } from '../src/apps/simulate/read-scenario.ts';
import type { Scheduler } from '../src/core/scheduler/contract.ts';
import { ENDS } from '../src/simulator/measure/user-log.ts';
import { createPolicy } from '../src/simulator/policies/registry.ts';
import { runPolicy } from '../src/simulator/run-scenario.ts';
import type { PolicySpec, Scenario } from '../src/simulator/scenario/types.ts';

const FILE = 'examples/scenarios/metastability.yaml';
const END_US = 1_500_000_000;
const WINDOW_US = 10_000_000;
const WINDOWS = 5;
/** Long enough that whoever came in these windows has an end while the load goes on. */
const LENGTH = ['span=2300s', 'drain=60s'];
const USERS_MAX = 60_000;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    policy: { type: 'string', default: 'spillway,no-gates' },
  },
});
const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => index + 1);

function scenarioOf(policy: string, times: number): Scenario {
  const sets = [`streams.users.spike.times=${times}`, ...LENGTH];
  const read = readScenario({ file: FILE, sets, variants: [], policies: [policy], traceFile: '' });
  if (read.kind === 'issues') throw new Error(`Could not read ${FILE}`);
  return read.plan.variants[0]!.scenario;
}

function measure(policy: string, times: number): string {
  const scenario = scenarioOf(policy, times);
  const offered = new Array<number>(WINDOWS).fill(0);
  const lost = new Array<number>(WINDOWS).fill(0);
  const back: number[] = [];
  let waitingMs = 0;
  for (const seed of seeds) {
    const { users, report } = runPolicy(scenario, {
      createPolicy: () => createPolicy(scenario.policies[0] as PolicySpec, seed),
      seed,
      usersMax: USERS_MAX,
      prepare: (simulation) =>
        simulation.at(END_US, () => {
          waitingMs += (simulation.policy as Scheduler).queue(simulation.now).workMs;
        }),
    });
    back.push(report.answersRecoverySeconds ?? Number.NaN);
    const { columns, count } = users!;
    for (let user = 0; user < count; user++) {
      const window = Math.floor((columns.arrivedAt[user]! - END_US) / WINDOW_US);
      if (window < 0 || window >= WINDOWS) continue;
      offered[window]! += 1;
      if (ENDS.indexOf('degraded') < columns.end[user]!) lost[window]! += 1;
    }
  }
  const shares = offered.map((all, window) => `${((100 * lost[window]!) / all).toFixed(1)} %`).join(', ');
  const within = back.filter((seconds) => seconds <= 10).length;
  const waiting = (waitingMs / 1_000 / seeds.length).toFixed(0);
  const mean = (back.reduce((sum, seconds) => sum + seconds, 0) / back.length).toFixed(1);
  return `${policy}, ${times} times: not answered ${shares}; ${waiting} s of work waited; back within 10 s in ${within} of ${seeds.length} seeds, mean ${mean} s, worst ${Math.max(...back)} s`;
}

const STEP_S = 0.05;
const SPIKE_S = 300;
const TRIES = 4;
const PARTS = [0.4, 0.4, 0.2];
const WEIGHTS = [8, 2, 1];
const CLASSES = PARTS.length;
/** Everybody from before the end. */
const EARLIER = WINDOWS;

/** Gives each class what it wants, or else its share by weight; in parts of a step of the fleet. */
function granted(wanted: readonly number[]): readonly number[] {
  const grants = wanted.map(() => 0);
  let left = STEP_S;
  let open = wanted.flatMap((want, index) => (want > 0 ? [index] : []));
  while (open.length > 0) {
    const unit = left / open.reduce((sum, index) => sum + WEIGHTS[index]!, 0);
    const full = open.filter((index) => wanted[index]! <= unit * WEIGHTS[index]!);
    for (const index of full.length > 0 ? full : open) {
      grants[index] = Math.min(wanted[index]!, unit * WEIGHTS[index]!);
      left -= grants[index]!;
    }
    open = full.length > 0 ? open.filter((index) => !full.includes(index)) : [];
  }
  return grants;
}

/** Work that comes at a step, by [when its user came][class][try]. */
type Due = Float64Array;
const placeOf = (came: number, ofClass: number, tried: number): number =>
  (came * CLASSES + ofClass) * TRIES + tried;

/** What is not answered, by window, when so many seconds of the fleet wait at the end of the spike and are served first. */
function fluid(waitingS: readonly number[]): string {
  const spikeSteps = SPIKE_S / STEP_S;
  const due = new Map<number, Due>();
  const at = (step: number): Due => {
    const known = due.get(step) ?? new Float64Array((WINDOWS + 1) * CLASSES * TRIES);
    due.set(step, known);
    return known;
  };
  const waiting = [...waitingS];
  const lost = new Array<number>(WINDOWS + 1).fill(0);
  const offered = new Array<number>(WINDOWS + 1).fill(0);
  const [soonest, latest] = [1 / STEP_S, 5 / STEP_S];
  for (let step = 0; step < spikeSteps + (WINDOWS * 10) / STEP_S; step++) {
    const isOver = step >= spikeSteps;
    const came = isOver ? Math.floor(((step - spikeSteps) * STEP_S) / 10) : EARLIER;
    const now = at(step);
    for (let ofClass = 0; ofClass < CLASSES; ofClass++) {
      const work = (isOver ? 0.8 : 2) * PARTS[ofClass]! * STEP_S;
      now[placeOf(came, ofClass, 0)]! += work;
      offered[came]! += work;
    }
    const tries = PARTS.map((_, ofClass) =>
      now.reduce(
        (sum, work, place) => (Math.floor(place / TRIES) % CLASSES === ofClass ? sum + work : sum),
        0,
      ),
    );
    const chances = granted(tries.map((work, ofClass) => work + (isOver ? waiting[ofClass]! : 0))).map(
      (grant, ofClass) => {
        const before = isOver ? Math.min(waiting[ofClass]!, grant) : 0;
        waiting[ofClass]! -= before;
        return tries[ofClass]! > 0 ? Math.min(1, (grant - before) / tries[ofClass]!) : 1;
      },
    );
    for (const [place, work] of now.entries()) {
      const tried = place % TRIES;
      const failed = work * (1 - chances[Math.floor(place / TRIES) % CLASSES]!);
      if (failed === 0) continue;
      if (tried === TRIES - 1) lost[Math.floor(place / TRIES / CLASSES)]! += failed;
      else
        for (let later = soonest; later < latest; later++)
          at(step + later)[place + 1]! += failed / (latest - soonest);
    }
    due.delete(step);
  }
  return offered
    .slice(0, WINDOWS)
    .map((all, window) => `${((100 * lost[window]!) / all).toFixed(1)} %`)
    .join(', ');
}

console.log('users by when they came: 0 to 10 s after the end of the spike, 10 to 20 s, and so on');
for (const policy of values.policy.split(','))
  for (const times of [2.5, 1]) console.log(measure(policy, times));
console.log(`fluid, nothing waits: not answered ${fluid([0, 0, 0])}`);
console.log(`fluid, 7.8 s of the fleet wait: not answered ${fluid([4, 2.5, 1.3])}`);
