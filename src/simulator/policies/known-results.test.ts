/**
 * The baselines against what was measured of the same rules by another program: 20 nodes of one slot with speeds of 5, 16,
 * 25 and 28 image-steps a second, sizes of a production service, Poisson arrivals. A rule that is programmed wrongly
 * lands somewhere else: the figures are far apart.
 */
import { describe, expect, test } from 'vitest';
import { nodeSpec, S } from '../../../test/support/specs.ts';
import { streamSpec } from '../../../test/support/stream-spec.ts';
import type { MonoUs, TaskId } from '../../base/units.ts';
import { defaultSchedulerConfig } from '../../core/config/defaults.ts';
import { createClients } from '../clients/create-clients.ts';
import type { StreamSpec } from '../scenario/types.ts';
import { SlotMachine } from '../machines/slot-machine.ts';
import { SimNode } from '../sim-node.ts';
import { Simulation } from '../simulation.ts';
import { createPolicy } from './registry.ts';

const STEPS_PER_SECOND = [...repeat(5, 8), ...repeat(16, 6), ...repeat(25, 4), ...repeat(28, 2)];
/** Of the reference machine. */
const REFERENCE_STEPS = 25;
const MEAN_STEPS = 84.9;
const CAPACITY = STEPS_PER_SECOND.reduce((sum, steps) => sum + steps, 0) / MEAN_STEPS;
const SPAN_S = 6_000;

interface Served {
  readonly className: string;
  readonly responseS: number;
  readonly isInTime: boolean;
}

function repeat(value: number, count: number): number[] {
  return Array.from({ length: count }, () => value);
}

function fleet(): SimNode[] {
  return STEPS_PER_SECOND.map((steps, index) => {
    const rate = steps / REFERENCE_STEPS;
    const machine = new SlotMachine({
      slots: 1,
      serviceUs: (demand) => (demand.kind === 'work' ? demand.workUs / rate : S),
    });
    const rates = [{ model: 'm', rate, observations: 100 }];
    const memory = { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0, rates };
    return new SimNode({ spec: nodeSpec(`n${index}`), machine, memory, rttUs: 0, beatUs: 0 }, index);
  });
}

function traffic(load: number, classes: StreamSpec['classes']): StreamSpec {
  return streamSpec({
    arrivals: { kind: 'poisson', rate: { kind: 'per-second', perSecond: load * CAPACITY } },
    sizes: { kind: 'fitted-images', usPerImageStep: S / REFERENCE_STEPS },
    models: [{ id: 'm', share: 1 }],
    classes,
    serviceTimesMin: 0,
    estimateSigma: 0,
    serviceSigma: 0,
    isStream: false,
    users: { triesMax: 1, patientShare: 0, thinkUs: [S, S], hangsUp: false, tellsCount: false },
  });
}

/** What was served, in order of their ends. */
function run(policy: string, stream: StreamSpec, options: Record<string, number | string> = {}): Served[] {
  const [first, ...others] = defaultSchedulerConfig().classes;
  if (first === undefined) throw new Error('There is no class');
  const classes = stream.classes.map(({ name }) => ({ ...(others[0] ?? first), name }));
  const config = defaultSchedulerConfig({ classes, defaultClass: stream.classes[0]?.name ?? '' });
  const arrivals: Map<TaskId, MonoUs> = new Map();
  const served: Served[] = [];
  const simulation = new Simulation({
    createPolicy: () => createPolicy({ policy, config, options }, 1),
    nodes: fleet(),
    clients: createClients({
      streams: [stream],
      spanUs: SPAN_S * S,
      seed: 5,
      mixPerSecond: () => CAPACITY,
      bestServiceUs: () => S,
    }),
    observer: {
      submitted: ({ task }, now) => void arrivals.set(task.id, now),
      outcome({ task }, end, now) {
        const at = arrivals.get(task.id) as MonoUs;
        const { className, deadlineAt } = task;
        if (end.kind !== 'served') return;
        served.push({ className, responseS: (now - at) / S, isInTime: now <= deadlineAt });
      },
    },
  });
  simulation.runUntil(40_000 * S);
  return served;
}

describe('at 85 % load, mean and 99th percentile of response times in seconds', () => {
  const stream = traffic(0.85, [{ name: 'normal', share: 1, deadlineUs: 100_000 * S }]);

  test.each([
    ['jsq', { ties: 'random' }, 8.5, 64],
    ['jsq', { ties: 'fastest' }, 6.7, 48],
    ['least-connections', {}, 8.5, 64.5],
    ['sed', {}, 9.7, 34],
    ['lwl', {}, 7.1, 48.5],
    ['ect', {}, 7, 20.6],
    ['fifo', {}, 6.3, 48],
    ['weighted-power-of-two', {}, 13.9, 48],
  ] as const)('%s %o: %f and %f', (policy, options, meanS, p99S) => {
    const times = run(policy, stream, options)
      .map(({ responseS }) => responseS)
      .sort((one, other) => one - other);
    const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
    const p99 = times[Math.floor(times.length * 0.99)] as number;
    expect(Math.abs(mean / meanS - 1), `mean ${mean}`).toBeLessThan(0.15);
    expect(Math.abs(p99 / p99S - 1), `p99 ${p99}`).toBeLessThan(0.15);
  });
});

describe('at 1.5 times the capacity, served in time over what mean sizes would allow', () => {
  const stream = traffic(1.5, [
    { name: 'interactive', share: 0.4, deadlineUs: 30 * S },
    { name: 'standard', share: 0.4, deadlineUs: 60 * S },
    { name: 'batch', share: 0.2, deadlineUs: 600 * S },
  ]);

  test.each([
    ['fifo', {}, 0.08],
    ['fifo-timeout', {}, 0.9],
    ['codel', {}, 0.97],
    ['edf', {}, 0.11],
    ['edf-feasibility', {}, 1.31],
    ['strict-priority', {}, 0.77],
    ['strict-priority', { drops: 'infeasible' }, 1.16],
  ] as const)('%s %o: %f', (policy, options, goodput) => {
    const good = run(policy, stream, options).filter(({ isInTime }) => isInTime).length;
    expect(Math.abs(good / (SPAN_S * CAPACITY) - goodput)).toBeLessThan(0.06);
  });
});
