/**
 * Poisson load on ten tenants in virtual time, in phases, with the ladder in a mode and no preemption: what was
 * done, and its stages.
 */
import { createPrng, type Prng } from '../../src/base/prng.ts';
import { defaultSchedulerConfig } from '../../src/core/config/defaults.ts';
import type { GateMode } from '../../src/core/config/types.ts';
import { VirtualRun } from './virtual-run.ts';
import { nodeSpec, S, taskSpec } from './specs.ts';

export interface Phase {
  readonly load: number;
  readonly seconds: number;
}

export interface LoadResult {
  /** Work done during the second phase over what the nodes could do. */
  readonly goodput: number;
  readonly attained: Record<string, number>;
  /** Second and stage of each change. */
  readonly changes: readonly (readonly [number, number])[];
}

const CLASSES = [
  { className: 'critical', part: 0.1, deadlineS: 10 },
  { className: 'normal', part: 0.7, deadlineS: 30 },
  { className: 'low', part: 1, deadlineS: 600 },
] as const;
/** Poisson arrivals of ten tenants, lognormal sizes; half of the nodes at half speed. */
export function offer(seed: number, phases: readonly Phase[], mode: GateMode, nodes = 10): LoadResult {
  const prng = createPrng(seed);
  const offered: Record<string, number> = {};
  const served: Record<string, number> = {};
  const changes: [number, number][] = [];
  const spikeFrom = (phases[0] as Phase).seconds * S;
  const spikeTo = spikeFrom + (phases[1] as Phase).seconds * S;
  let doneUs = 0;
  // Preemption moves single tasks, and with them the instants at which evidence comes and goes by some seconds.
  const run = new VirtualRun(defaultSchedulerConfig({ seed, gates: { ladder: mode, preemption: 'off' } }), {
    outcome(task, outcome, now) {
      if (outcome.kind !== 'served') return;
      served[task.className] = (served[task.className] ?? 0) + 1;
      if (now >= spikeFrom && now <= spikeTo) doneUs += task.workUs;
    },
  });
  for (let i = 0; i < nodes; i++) {
    run.addNode({ spec: nodeSpec(`n${i}`), speed: i % 2 === 0 ? 1 : 0.5, sigma: 0.2 });
  }
  const look = (): void => {
    const { stage } = run.scheduler.ladder(run.now);
    if (stage !== (changes.at(-1)?.[1] ?? 0)) changes.push([run.now / S, stage]);
  };
  let at = 0;
  let id = 1;
  let end = 0;
  for (const phase of phases) {
    end += phase.seconds * S;
    const meanUs = S / (nodes * 0.75 * phase.load);
    for (at += gapUs(prng, meanUs); at <= end; at += gapUs(prng, meanUs)) {
      run.runUntil(Math.round(at));
      look();
      const draw = prng.nextRatio();
      const { className, deadlineS } = CLASSES.find(({ part }) => draw < part) ?? CLASSES[2];
      offered[className] = (offered[className] ?? 0) + 1;
      const deadlineAt = run.now + deadlineS * S;
      const workUs = Math.max(1_000, Math.round(S * Math.exp(0.8 * gaussian(prng) - 0.32)));
      run.submit(taskSpec(id++, { className, tenant: `t${prng.nextBelow(10)}`, workUs, deadlineAt }));
    }
    at = end;
  }
  for (let i = 0; i < 200; i++) {
    run.runUntil(end + i * S);
    look();
  }
  const attained = Object.fromEntries(
    Object.entries(offered).map(([name, count]) => [name, (served[name] ?? 0) / count]),
  );
  return { goodput: doneUs / (nodes * 0.75 * (spikeTo - spikeFrom)), attained, changes };
}

function gapUs(prng: Prng, meanUs: number): number {
  return -Math.log(1 - prng.nextRatio()) * meanUs;
}

function gaussian(prng: Prng): number {
  return Math.sqrt(-2 * Math.log(1 - prng.nextRatio())) * Math.cos(2 * Math.PI * prng.nextRatio());
}
