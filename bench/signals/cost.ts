/**
 * What a look of the detectors costs, by the size of the fleet: taking the sample, and all rules over a whole past. Each
 * node has just served; ten minutes of samples are kept.
 *
 *   node bench/signals/cost.ts
 */
import { defaultSchedulerConfig } from '../../src/core/config/index.ts';
import { Signals } from '../../src/core/signals/index.ts';
import { VirtualRun } from '../../test/support/virtual-run.ts';
import { nodeSpec, S, taskSpec } from '../../test/support/specs.ts';

const FLEETS = [30, 300, 1_000, 10_000];
const WARM_LOOKS = 620;
const LOOKS = 80;

function loaded(nodes: number): VirtualRun {
  const run = new VirtualRun(defaultSchedulerConfig({}));
  for (let at = 0; at < nodes; at++) run.addNode({ spec: nodeSpec(`n${at}`), speed: 1, sigma: 0.1 });
  for (let id = 1; id <= 6 * nodes; id++) {
    const at = Math.floor((id / nodes) * 0.9 * S);
    run.at(at, () => run.submit(taskSpec(id, { tenant: `t${id % 50}`, deadlineAt: at + 600 * S })));
  }
  run.runUntil(3 * S);
  return run;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

for (const nodes of FLEETS) {
  const { scheduler } = loaded(nodes);
  const signals = new Signals();
  const samplesMs: number[] = [];
  const looksMs: number[] = [];
  for (let look = 0; look < WARM_LOOKS + LOOKS; look++) {
    const startedAt = performance.now();
    const sample = scheduler.sample((4 + look) * S);
    const sampledAt = performance.now();
    signals.observe(sample);
    if (look < WARM_LOOKS) continue;
    samplesMs.push(sampledAt - startedAt);
    looksMs.push(performance.now() - sampledAt);
  }
  process.stdout.write(
    `${nodes} nodes: sample ${median(samplesMs).toFixed(3)} ms, detectors ${median(looksMs).toFixed(3)} ms\n`,
  );
}
