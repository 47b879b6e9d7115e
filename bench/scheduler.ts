/**
 * Cost of the scheduler alone: one submit + dispatch + complete, in microseconds of CPU, against the size of the fleet, the
 * depth of the queue, and the number of models and tenants. Virtual time; each case runs in a process of its own, cases
 * take turns, the median of the rounds is told. The driver's own agenda (one heap) is included.
 *
 *   node bench/scheduler.ts [--json] [--rounds N] [--steps N] [--case PREFIX]
 */
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { createPrng, type Prng } from '../src/base/prng.ts';
import { defaultSchedulerConfig } from '../src/core/config/defaults.ts';
import type { SchedulerConfig } from '../src/core/config/types.ts';
import { NO_NEEDS } from '../src/core/request/needs.ts';
import type { TaskSpec } from '../src/core/request/task.ts';
import type { EffectSink } from '../src/core/scheduler/effects.ts';
import { SILENT_SINK } from '../src/core/scheduler/effects.ts';
import { createScheduler } from '../src/core/scheduler/scheduler.ts';
import { HeapSlot, KeyedHeap } from '../src/base/keyed-heap.ts';

interface Draw {
  readonly className: string;
  readonly tenant: string;
  readonly model: string;
  readonly workUs: number;
  readonly deadlineUs: number;
  /** Actual over expected service time, uniform in [0.8, 1.2]. */
  readonly noise: number;
}

/** A power of two above any number of tasks under way at once. */
const DRAWS = 1 << 18;

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

/** What tasks are made of, drawn beforehand so that the driver costs little. */
function draws(spec: Case, prng: Prng): readonly Draw[] {
  const tenants = Array.from({ length: spec.tenants }, (_, i) => `t${i}`);
  const models = modelIds(spec);
  return Array.from({ length: DRAWS }, () => {
    const roll = prng.nextRatio();
    return {
      className: roll < 0.1 ? 'critical' : roll < 0.7 ? 'normal' : 'low',
      tenant: tenants[prng.nextBelow(spec.tenants)] as string,
      model: models[prng.nextBelow(spec.models)] as string,
      workUs: 200_000 + prng.nextBelow(4_000_000),
      deadlineUs: 10_000_000_000 + prng.nextBelow(600_000_000),
      noise: 0.8 + 0.4 * prng.nextRatio(),
    };
  });
}

function modelIds(spec: Case): readonly string[] {
  return Array.from({ length: spec.models }, (_, i) => `m${i}`);
}

function unbounded(seed: number): SchedulerConfig {
  const base = defaultSchedulerConfig({});
  return {
    ...base,
    seed,
    bounds: {
      ...base.bounds,
      tasksMax: 1e6,
      workMsMax: 1e12,
      bytesMax: 1e12,
      classShareMax: 1,
      tenantShareMax: 1,
    },
    admission: { ...base.admission, flowWaitMsMax: 1e9, flowWaitDeadlineShare: 1 },
  };
}

/** A scheduler with its queue filled, and a step that completes one task and submits another. */
function prepare(spec: Case, seed: number): (steps: number) => number {
  const drawn = draws(spec, createPrng(seed));
  const scheduler = createScheduler(unbounded(seed));
  const finishes = new KeyedHeap<number>();
  const speeds = new Map<string, number>();
  let now = 0;
  let nextId = 1;
  const sink: EffectSink = {
    ...SILENT_SINK,
    assign(taskId, nodeId) {
      const { workUs, noise } = drawn[taskId % DRAWS] as Draw;
      const serviceUs = (workUs / (speeds.get(nodeId) as number)) * noise;
      finishes.push(new HeapSlot(taskId, taskId), now + Math.round(serviceUs));
    },
  };
  const models = modelIds(spec).map((model) => ({ model }));
  for (let i = 0; i < spec.nodes; i++) {
    const node = {
      id: `n${i}`,
      models,
      slots: 1,
      batching: false,
      hardware: '',
      labels: {},
      heartbeats: false,
    };
    speeds.set(node.id, 0.15 * 8 ** (i / spec.nodes));
    scheduler.apply({ kind: 'node-registered', node }, now, sink);
  }
  const submit = (): void => {
    const id = nextId++;
    const { className, tenant, model, workUs, deadlineUs } = drawn[id % DRAWS] as Draw;
    const task: TaskSpec = {
      id,
      className,
      tenant,
      model,
      needs: NO_NEEDS,
      workUs,
      firstByteWorkUs: workUs,
      bytes: 300,
      deadlineAt: now + deadlineUs,
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
      now = Math.max(now, finishes.leastKey);
      const taskId = finishes.pop() as number;
      scheduler.apply({ kind: 'attempt-ended', taskId, result: { kind: 'ok' } }, now, sink);
      submit();
    }
    const spent = process.cpuUsage(before);
    return (spent.user + spent.system) / steps;
  };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

/** One case in a process of its own: another one's heap must not be on its bill. */
function measureApart(spec: Case, steps: number): number {
  const args = [import.meta.filename, '--only', spec.name, '--steps', String(steps)];
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

function measureHere(spec: Case, steps: number): number {
  const step = prepare(spec, 7);
  step(steps);
  return step(steps);
}

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    steps: { type: 'string', default: '200000' },
    case: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
  },
});
const steps = Number(values.steps);
if (values.only !== '') {
  const spec = CASES.find(({ name }) => name === values.only) as Case;
  process.stdout.write(`${measureHere(spec, steps)}\n`);
} else {
  const chosen = CASES.filter((spec) => spec === BASE || spec.name.startsWith(values.case));
  const costs = new Map<Case, number[]>(chosen.map((spec) => [spec, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [spec, list] of costs) list.push(measureApart(spec, steps));
    process.stderr.write(`round ${round + 1} of ${values.rounds}\n`);
  }
  const reference = median(costs.get(BASE) as number[]);
  const rows = [...costs].map(([spec, list]) => ({
    case: spec.name,
    microseconds: Number(median(list).toFixed(2)),
    ratio: Number((median(list) / reference).toFixed(2)),
  }));
  if (values.json) process.stdout.write(`${JSON.stringify(rows)}\n`);
  else console.table(rows);
}
