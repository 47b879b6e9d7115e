/**
 * Cost of the scheduler alone: one submit + dispatch + complete, in microseconds of CPU, against the size of the fleet, the
 * depth of the queue, and the number of models and tenants. Virtual time; each case runs in a process of its own, cases
 * take turns, the median of the rounds is told. The driver's own agenda (one heap of arrays) and the tasks that it writes are
 * included; what they cost is told beside it, by the same driver around nothing but a queue in order of arrival.
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
import type { SchedulerEvent } from '../src/core/scheduler/events.ts';
import { createScheduler } from '../src/core/scheduler/scheduler.ts';
import { HeapSlot, KeyedHeap } from '../src/base/keyed-heap.ts';

/** What tasks are made of, drawn beforehand in arrays of numbers, so that the driver costs little and touches little. */
interface Draws {
  /** Index into the classes, the tenants and the models. */
  readonly classes: Uint8Array;
  readonly tenants: Uint16Array;
  readonly models: Uint8Array;
  readonly workUs: Int32Array;
  readonly deadlineUs: Float64Array;
  /** Time that the reference accelerator really takes: the work, 20 % less to 20 % more. */
  readonly actualUs: Float64Array;
}

const CLASS_NAMES = ['critical', 'normal', 'low'];
/** A power of two above any number of tasks under way at once. */
const DRAWS = 1 << 18;
const SEED = 7;

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
  { ...BASE, name: '10 queued', queued: 10 },
  { ...BASE, name: '100,000 queued', queued: 100_000 },
  { ...BASE, name: '87 models x 10,000 tenants', models: 87, tenants: 10_000, queued: 10_000 },
];

function draw(spec: Case, prng: Prng): Draws {
  const draws: Draws = {
    classes: new Uint8Array(DRAWS),
    tenants: new Uint16Array(DRAWS),
    models: new Uint8Array(DRAWS),
    workUs: new Int32Array(DRAWS),
    deadlineUs: new Float64Array(DRAWS),
    actualUs: new Float64Array(DRAWS),
  };
  for (let i = 0; i < DRAWS; i++) {
    const roll = prng.nextRatio();
    const workUs = 200_000 + prng.nextBelow(4_000_000);
    draws.classes[i] = roll < 0.1 ? 0 : roll < 0.7 ? 1 : 2;
    draws.tenants[i] = prng.nextBelow(spec.tenants);
    draws.models[i] = prng.nextBelow(spec.models);
    draws.workUs[i] = workUs;
    draws.deadlineUs[i] = 10_000_000_000 + prng.nextBelow(600_000_000);
    draws.actualUs[i] = workUs * (0.8 + 0.4 * prng.nextRatio());
  }
  return draws;
}

function names(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}`);
}

/** The number behind the letter of a name: a table of ten thousand strings would cost more than what is measured. */
function numberOf(name: string): number {
  let value = 0;
  for (let i = 1; i < name.length; i++) value = value * 10 + name.charCodeAt(i) - 48;
  return value;
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

/** What the driver needs of a scheduler. */
interface Policy {
  apply(event: SchedulerEvent, now: number, out: EffectSink): void;
  queued(): number;
}

function spillway(seed: number): Policy {
  const scheduler = createScheduler(unbounded(seed));
  return { apply: scheduler.apply, queued: () => scheduler.accounts().queued };
}

/** Nothing but a queue in order of arrival and a list of idle nodes: what it costs is the driver's own. */
function queueAlone(): Policy {
  const waiting: (TaskSpec | undefined)[] = Array.from({ length: DRAWS }, () => undefined);
  const nodeOf: string[] = Array.from({ length: DRAWS }, () => '');
  const idle: string[] = [];
  let first = 0;
  let next = 0;
  function assign(id: number, out: EffectSink): void {
    const nodeId = idle.pop() as string;
    nodeOf[id % DRAWS] = nodeId;
    out.assign(id, nodeId, 1);
  }
  return {
    apply(event, _now, out) {
      if (event.kind === 'node-registered') idle.push(event.node.id);
      if (event.kind === 'attempt-ended') idle.push(nodeOf[event.taskId % DRAWS] as string);
      if (event.kind === 'submit') waiting[next++ % DRAWS] = event.task;
      while (idle.length > 0 && first < next) {
        const task = waiting[first % DRAWS] as TaskSpec;
        waiting[first++ % DRAWS] = undefined;
        assign(task.id, out);
      }
    },
    queued: () => next - first,
  };
}

/** A policy with its queue filled, and a step that completes one task and submits another. */
function prepare(spec: Case, seed: number, policy: Policy): (steps: number) => number {
  const drawn = draw(spec, createPrng(seed));
  const tenants = names('t', spec.tenants);
  const models = names('m', spec.models);
  const finishes = new KeyedHeap<number>();
  const speeds = new Float64Array(spec.nodes);
  let now = 0;
  let nextId = 1;
  const sink: EffectSink = {
    ...SILENT_SINK,
    assign(taskId, nodeId) {
      const serviceUs = (drawn.actualUs[taskId % DRAWS] as number) / (speeds[numberOf(nodeId)] as number);
      finishes.push(new HeapSlot(taskId, taskId), now + Math.round(serviceUs));
    },
  };
  const offers = models.map((model) => ({ model }));
  for (let i = 0; i < spec.nodes; i++) {
    const node = {
      id: `n${i}`,
      models: offers,
      slots: 1,
      batching: false,
      hardware: '',
      labels: {},
      heartbeats: false,
    };
    speeds[i] = 0.15 * 8 ** (i / spec.nodes);
    policy.apply({ kind: 'node-registered', node }, now, sink);
  }
  const submit = (): void => {
    const id = nextId++;
    const at = id % DRAWS;
    const workUs = drawn.workUs[at] as number;
    const task: TaskSpec = {
      id,
      className: CLASS_NAMES[drawn.classes[at] as number] as string,
      tenant: tenants[drawn.tenants[at] as number] as string,
      model: models[drawn.models[at] as number] as string,
      needs: NO_NEEDS,
      workUs,
      firstByteWorkUs: workUs,
      bytes: 300,
      deadlineAt: now + (drawn.deadlineUs[at] as number),
      deadlineWished: true,
      stream: false,
      fingerprint: '',
    };
    policy.apply({ kind: 'submit', task }, now, sink);
  };
  while (policy.queued() < spec.queued) submit();
  return (steps) => {
    const before = process.cpuUsage();
    for (let step = 0; step < steps; step++) {
      now = Math.max(now, finishes.leastKey);
      const taskId = finishes.pop() as number;
      policy.apply({ kind: 'attempt-ended', taskId, result: { kind: 'ok' } }, now, sink);
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
function measureApart(spec: Case, policy: string, steps: number): number {
  const args = [import.meta.filename, '--only', spec.name, '--policy', policy, '--steps', String(steps)];
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

function measureHere(spec: Case, policy: string, steps: number): number {
  const step = prepare(spec, SEED, policy === 'queue' ? queueAlone() : spillway(SEED));
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
    policy: { type: 'string', default: 'spillway' },
  },
});
const steps = Number(values.steps);
if (values.only !== '') {
  const spec = CASES.find(({ name }) => name === values.only) as Case;
  process.stdout.write(`${measureHere(spec, values.policy, steps)}\n`);
} else {
  const chosen = CASES.filter((spec) => spec === BASE || spec.name.startsWith(values.case));
  const costs = new Map<Case, { readonly gross: number[]; readonly driver: number[] }>(
    chosen.map((spec) => [spec, { gross: [], driver: [] }]),
  );
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [spec, { gross, driver }] of costs) {
      gross.push(measureApart(spec, 'spillway', steps));
      driver.push(measureApart(spec, 'queue', steps));
    }
    process.stderr.write(`round ${round + 1} of ${values.rounds}\n`);
  }
  const reference = median(costs.get(BASE)?.gross ?? []);
  const rows = [...costs].map(([spec, { gross, driver }]) => ({
    case: spec.name,
    microseconds: Number(median(gross).toFixed(2)),
    ratio: Number((median(gross) / reference).toFixed(2)),
    driver: Number(median(driver).toFixed(2)),
    net: Number((median(gross) - median(driver)).toFixed(2)),
  }));
  if (values.json) process.stdout.write(`${JSON.stringify(rows)}\n`);
  else console.table(rows);
}
