/**
 * Cost of the scheduler alone: one submit + dispatch + complete, in microseconds of CPU, against the size of the fleet, the
 * depth of the queue, and the number of models and tenants. Virtual time; cases are interleaved, the median of the
 * rounds is told. The driver's own agenda (one heap) is included.
 *
 *   node bench/scheduler.ts [--json] [--rounds N] [--steps N] [--case PREFIX]
 */
import { parseArgs } from 'node:util';
import { createPrng, type Prng } from '../src/base/prng.ts';
import { defaultSchedulerConfig } from '../src/core/config/defaults.ts';
import { NO_NEEDS } from '../src/core/request/needs.ts';
import type { EffectSink } from '../src/core/scheduler/effects.ts';
import { SILENT_SINK } from '../src/core/scheduler/effects.ts';
import { createScheduler } from '../src/core/scheduler/scheduler.ts';
import { HeapSlot, KeyedHeap } from '../src/base/keyed-heap.ts';

interface Case {
  readonly name: string;
  readonly nodes: number;
  readonly queued: number;
  readonly models: number;
  readonly tenants: number;
}

const BASE: Case = { name: '100 nodes', nodes: 100, queued: 1_000, models: 1, tenants: 100 };
const CASES: readonly Case[] = [
  { ...BASE, name: '10 nodes', nodes: 10 },
  BASE,
  { ...BASE, name: '1,000 nodes', nodes: 1_000 },
  { ...BASE, name: '10,000 nodes', nodes: 10_000 },
  { ...BASE, name: '100,000 queued', queued: 100_000 },
  { ...BASE, name: '87 models x 10,000 tenants', models: 87, tenants: 10_000, queued: 10_000 },
];

/** A scheduler with its queue filled, and a step that completes one task and submits another. */
function prepare(spec: Case, seed: number): (steps: number) => number {
  const base = defaultSchedulerConfig({});
  const config = {
    ...base,
    seed,
    bounds: {
      ...base.bounds,
      tasksMax: 1_000_000,
      workMsMax: 1e12,
      bytesMax: 1e12,
      classShareMax: 1,
      tenantShareMax: 1,
    },
    admission: { ...base.admission, flowWaitMsMax: 1e9, flowWaitDeadlineShare: 1 },
  };
  const prng = createPrng(seed);
  const scheduler = createScheduler(config);
  const finishes = new KeyedHeap<number>();
  const workOf = new Map<number, number>();
  const speeds = new Map<string, number>();
  let now = 0;
  let nextId = 1;
  const sink: EffectSink = {
    ...SILENT_SINK,
    assign(taskId, nodeId) {
      const serviceUs = (workOf.get(taskId) as number) / (speeds.get(nodeId) as number);
      workOf.delete(taskId);
      finishes.push(new HeapSlot(taskId, taskId), now + Math.round(serviceUs * noise(prng)));
    },
  };
  const models = Array.from({ length: spec.models }, (_, i) => ({ model: `m${i}` }));
  for (let i = 0; i < spec.nodes; i++) {
    speeds.set(`n${i}`, 0.15 * 8 ** (i / spec.nodes));
    scheduler.apply(
      {
        kind: 'node-registered',
        node: { id: `n${i}`, models, slots: 1, batching: false, hardware: '', labels: {}, heartbeats: false },
      },
      now,
      sink,
    );
  }
  const submit = (): void => {
    const id = nextId++;
    const workUs = 200_000 + prng.nextBelow(4_000_000);
    workOf.set(id, workUs);
    const roll = prng.nextRatio();
    const task = {
      id,
      className: roll < 0.1 ? 'critical' : roll < 0.7 ? 'normal' : 'low',
      tenant: `t${prng.nextBelow(spec.tenants)}`,
      model: `m${prng.nextBelow(spec.models)}`,
      needs: NO_NEEDS,
      workUs,
      firstByteWorkUs: workUs,
      bytes: 300,
      deadlineAt: now + 10_000_000_000 + prng.nextBelow(600_000_000),
      deadlineWished: true,
      stream: false,
      fingerprint: '',
    };
    scheduler.apply({ kind: 'submit', task }, now, sink);
  };
  while (scheduler.accounts().queued < spec.queued) submit();
  return (steps) => {
    const before = process.cpuUsage();
    for (let step = 0; step < steps; step++) {
      const finish = finishes.peek() as HeapSlot<number>;
      finishes.remove(finish);
      now = Math.max(now, finish.key);
      scheduler.apply({ kind: 'attempt-ended', taskId: finish.item, result: { kind: 'ok' } }, now, sink);
      submit();
    }
    const spent = process.cpuUsage(before);
    return (spent.user + spent.system) / steps;
  };
}

/** A cheap stand-in for service noise: uniform in [0.8, 1.2]. */
function noise(prng: Prng): number {
  return 0.8 + 0.4 * prng.nextRatio();
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    steps: { type: 'string', default: '100000' },
    case: { type: 'string', default: '' },
  },
});
const steps = Number(values.steps);
const runs = CASES.filter((spec) => spec === BASE || spec.name.startsWith(values.case)).map((spec) => {
  process.stderr.write(`preparing ${spec.name}\n`);
  return { spec, step: prepare(spec, 7), costs: [] as number[] };
});
for (const run of runs) run.step(steps);
for (let round = 0; round < Number(values.rounds); round++) {
  for (const run of runs) run.costs.push(run.step(steps));
}
const reference = median(runs.find((run) => run.spec === BASE)?.costs ?? []);
const rows = runs.map((run) => ({
  case: run.spec.name,
  microseconds: Number(median(run.costs).toFixed(2)),
  ratio: Number((median(run.costs) / reference).toFixed(2)),
}));
if (values.json) process.stdout.write(`${JSON.stringify(rows)}\n`);
else console.table(rows);
