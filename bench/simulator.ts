/**
 * Speed of the simulator: requests per second of processor time, whole and in parts, by the size of the fleet. The same
 * users once under the gateway's scheduler and once under a policy that decides nothing (first come, first served on
 * whatever node is free): what the latter costs is the price of everything around the scheduler.
 *
 *   node bench/simulator.ts [--requests 300000] [--nodes 30,100,1000,10000] [--rounds 3] [--load 0.8] [--json]
 */
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { defaultSchedulerConfig } from '../src/core/config/defaults.ts';
import type { EffectSink } from '../src/core/scheduler/effects.ts';
import type { SchedulerEvent } from '../src/core/scheduler/events.ts';
import { createScheduler } from '../src/core/scheduler/scheduler.ts';
import type { Policy } from '../src/simulator/policies/policy.ts';
import { runPolicy } from '../src/simulator/run-scenario.ts';
import { TaskTable } from '../src/simulator/task-table.ts';
import type { Scenario } from '../src/simulator/scenario/types.ts';

const NO_LIMITS = Object.freeze({ firstByteUs: 0, idleUs: 0 });
const CALM_CLASSES = [
  { name: 'critical', share: 0.1, deadlineUs: 60_000_000 },
  { name: 'normal', share: 0.6, deadlineUs: 120_000_000 },
  { name: 'low', share: 0.3, deadlineUs: 600_000_000 },
];

/** First come, first served by whoever is free. No account, no deadline, no limit. */
class NullPolicy implements Policy {
  readonly #free: string[] = [];
  readonly #waiting: number[] = [];
  readonly #nodes = new TaskTable<string>();
  #head = 0;

  apply(event: SchedulerEvent, _now: number, out: EffectSink): void {
    switch (event.kind) {
      case 'node-registered':
        for (let slot = 0; slot < Math.max(1, event.node.slots); slot++) this.#free.push(event.node.id);
        return;
      case 'submit':
        this.#waiting.push(event.task.id);
        return this.#dispatch(out);
      case 'attempt-ended': {
        const { taskId } = event;
        this.#free.push(this.#nodes.get(taskId) as string);
        this.#nodes.delete(taskId);
        out.outcome(taskId, { kind: 'served' });
        return this.#dispatch(out);
      }
      default:
        return;
    }
  }

  nextWakeAt(): number {
    return Number.POSITIVE_INFINITY;
  }

  attemptLimits(): typeof NO_LIMITS {
    return NO_LIMITS;
  }

  accounts(): never {
    throw new Error('The null policy keeps no accounts');
  }

  #dispatch(out: EffectSink): void {
    while (this.#free.length > 0 && this.#head < this.#waiting.length) {
      const taskId = this.#waiting[this.#head++] as number;
      const nodeId = this.#free.pop() as string;
      this.#nodes.add(taskId, nodeId);
      out.assign(taskId, nodeId, 1);
    }
    // Not at once: an array that is emptied gives its room back, and making new room would be on the driver's bill.
    if (this.#head === this.#waiting.length && this.#head > 10_000) {
      this.#waiting.length = 0;
      this.#head = 0;
    }
  }
}

/** T4-like nodes of one slot, requests of 100 ms on average, three classes, a hundred tenants. */
function scenarioOf(nodes: number, requests: number, load: number): Scenario {
  const meanUs = 100_000;
  const spanUs = Math.round((requests * meanUs) / (nodes * load));
  return {
    name: 'speed',
    about: '',
    spanUs,
    drainUs: 10_000_000,
    window: { from: 0, until: spanUs },
    sampleUs: 0,
    seed: 1,
    config: defaultSchedulerConfig({}),
    fleet: [
      {
        name: 'node',
        count: nodes,
        hardware: 'reference',
        statedHardware: '',
        speed: 1,
        speedSigma: 0.3,
        engine: { kind: 'slots', slots: 1 },
        models: ['m'],
        residentMax: 0,
        swapUs: 0,
        zone: '',
        rttUs: 0,
        beatUs: 30_000_000,
        heartbeats: true,
        canAbort: true,
        ratesKnown: true,
      },
    ],
    streams: [
      {
        name: 'all',
        arrivals: { kind: 'poisson', rate: { kind: 'load', load } },
        course: [],
        classes: CALM_CLASSES,
        serviceTimesMin: 4,
        tenants: { kind: 'many', prefix: 't', count: 100, zipf: 1 },
        models: [{ id: 'm', share: 1 }],
        modelSwitch: undefined,
        stages: [],
        sizes: { kind: 'work', meanUs, sigma: 0.7 },
        estimateSigma: 0.2,
        serviceSigma: 0.1,
        isStream: false,
        users: { triesMax: 1, patientShare: 1, thinkUs: [1_000, 2_000], hangsUp: false, tellsCount: true },
      },
    ],
    faults: [],
    policies: [],
    bars: [],
  };
}

type Kind = 'scheduler' | 'null';

/** Microseconds of processor time per request, the start of the process and of the run not counted. */
function measureHere(kind: Kind, scenario: Scenario): number {
  const { config } = scenario;
  const create = (seed: number) => () =>
    kind === 'null' ? new NullPolicy() : createScheduler({ ...config, seed });
  const warm = { ...scenario, spanUs: scenario.spanUs / 4, window: { from: 0, until: scenario.spanUs / 4 } };
  runPolicy(warm, { createPolicy: create(1), seed: 1 });
  const usage = (): number => process.cpuUsage().user + process.cpuUsage().system;
  let from = 0;
  const begun = (): Policy => {
    from = usage();
    return create(2)();
  };
  const { report } = runPolicy(scenario, { createPolicy: begun, seed: 2 });
  return (usage() - from) / report.requests;
}

/** In a process of its own: another one's heap must not be on its bill. */
function measureApart(kind: Kind, nodes: number): number {
  const args = [import.meta.filename, '--only', kind, '--nodes', String(nodes)];
  const rest = ['--requests', values.requests, '--load', values.load];
  return Number(execFileSync(process.execPath, [...args, ...rest], { encoding: 'utf8' }));
}

function median(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[list.length >> 1] as number;
}

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '300000' },
    nodes: { type: 'string', default: '30,100,1000,10000' },
    rounds: { type: 'string', default: '3' },
    load: { type: 'string', default: '0.8' },
    only: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
  },
});
const sizes = values.nodes.split(',').map(Number);
if (values.only !== '') {
  const scenario = scenarioOf(sizes[0] as number, Number(values.requests), Number(values.load));
  process.stdout.write(`${measureHere(values.only as Kind, scenario)}\n`);
} else {
  const rows = sizes.map((nodes) => {
    const rounds = Array.from({ length: Number(values.rounds) }, () => ({
      whole: measureApart('scheduler', nodes),
      around: measureApart('null', nodes),
    }));
    const whole = median(rounds.map((round) => round.whole));
    const around = median(rounds.map((round) => round.around));
    return {
      nodes,
      requestsPerSecond: Math.round(1e6 / whole),
      microseconds: Number(whole.toFixed(2)),
      aroundMicroseconds: Number(around.toFixed(2)),
      schedulerShare: Number(((whole - around) / whole).toFixed(2)),
    };
  });
  if (values.json) process.stdout.write(`${JSON.stringify(rows)}\n`);
  else console.table(rows);
}
