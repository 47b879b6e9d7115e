/**
 * What each detector is for, as a virtual run (see signal-run.ts): healthy traffic with noise, one fault, and which signals it is
 * to raise and may raise beside. The fault matrix runs all of them; tests run one each.
 */
import { defaultSchedulerConfig } from '../../src/core/config/defaults.ts';
import type { SchedulerConfig } from '../../src/core/config/types.ts';
import type { Sample, SignalName } from '../../src/core/signals/index.ts';
import type { SignalLogOptions } from '../../src/simulator/measure/signal-log.ts';
import type { FaultSpec, NodesRef, Scenario, StreamSpec } from '../../src/simulator/scenario/types.ts';
import type { Simulation } from '../../src/simulator/simulation.ts';
import { nodeGroup, scenarioSpec, streamSpec } from './scenarios.ts';
import { S } from './specs.ts';

const MIN = 60 * S;
const ALL: NodesRef = { group: '', count: 0 };
const first = (count: number): NodesRef => ({ group: '', count });

export interface SignalCase {
  readonly fault: string;
  /** Raised by it for certain. */
  readonly raises: readonly SignalName[];
  /** Consequences of it that may be raised as well. */
  readonly mayRaise: readonly SignalName[];
  /** When the fault begins, and how long after it the signals must be there. */
  readonly at: number;
  readonly withinUs: number;
  readonly scenario: Scenario;
  readonly signals?: SignalLogOptions;
  readonly policy?: string;
  readonly prepare?: (simulation: Simulation) => void;
}

/** Stages of workflows by name, share of the requests, and the stage before it. */
function stages(...rows: readonly (readonly [string, number, string])[]): StreamSpec['stages'] {
  return rows.map(([name, share, parent]) => ({ stage: { name, parent }, share }));
}

/** Told where nothing is wrong: where queues are long by another fault, stages are hot by it as well. */
export const WORKFLOW: StreamSpec['stages'] = stages(
  ['plan', 0.2, ''],
  ['draw', 0.5, 'plan'],
  ['check', 0.3, 'draw'],
);

/** Sixteen machines of two kinds, three classes, many tenants, noise in arrivals, sizes, estimates and service. */
export function traffic(change: Partial<StreamSpec> = {}, load = 0.6): StreamSpec {
  return streamSpec({
    arrivals: { kind: 'gamma', rate: { kind: 'load', load }, cv: 1.5 },
    classes: [
      { name: 'critical', share: 0.2, deadlineUs: 30 * S },
      { name: 'normal', share: 0.5, deadlineUs: 60 * S },
      { name: 'low', share: 0.3, deadlineUs: 120 * S },
    ],
    tenants: { kind: 'many', prefix: 't', count: 20, zipf: 1 },
    sizes: { kind: 'work', meanUs: S, sigma: 0.8 },
    estimateSigma: 0.3,
    serviceSigma: 0.2,
    users: { triesMax: 3, patientShare: 0.7, thinkUs: [S, 5 * S], hangsUp: true, tellsCount: true },
    ...change,
  });
}

const FLEET: Scenario['fleet'] = [
  nodeGroup({ name: 'small', count: 10, hardware: 'reference', statedHardware: 'T4', speedSigma: 0.05 }),
  nodeGroup({ name: 'large', count: 6, statedHardware: 'A100', speed: 4, speedSigma: 0.05 }),
];

export function scene(change: Partial<Scenario> = {}): Scenario {
  return scenarioSpec({ name: 'signals', spanUs: 12 * MIN, fleet: FLEET, streams: [traffic()], ...change });
}

function withFault(fault: FaultSpec, change: Partial<Scenario> = {}): Scenario {
  return scene({ ...change, faults: [fault] });
}

function configured(change: Partial<SchedulerConfig>): SchedulerConfig {
  return { ...defaultSchedulerConfig({}), ...change };
}

const gates = (change: Partial<SchedulerConfig['gates']>): SchedulerConfig =>
  configured({ gates: { ...defaultSchedulerConfig({}).gates, ...change } });

/** Without the protection that would end an attempt which hangs, or keep a queue short. */
const UNPROTECTED: SchedulerConfig = gates({
  'flow-wait': 'off',
  'retry-shed': 'off',
  ladder: 'off',
  timeouts: 'off',
  preemption: 'off',
});

/** One in so many of what was served is not in the books. */
export function losing(sample: Sample, oneIn: number): Sample {
  const served = sample.accounts.served - Math.floor(sample.accounts.served / oneIn);
  return { ...sample, accounts: { ...sample.accounts, served } };
}

const FAULT_AT = 5 * MIN;

export const SIGNAL_CASES: readonly SignalCase[] = [
  {
    fault: 'one in a thousand of what was served is missing in the books',
    raises: ['conservation-break'],
    mayRaise: [],
    at: FAULT_AT,
    withinUs: 2 * S,
    scenario: scene({ spanUs: 6 * MIN }),
    signals: { tamper: (sample) => (sample.at < FAULT_AT ? sample : losing(sample, 1_000)) },
  },
  {
    fault: 'two nodes of sixteen hang, and nothing ends their attempts',
    raises: ['little-gap'],
    mayRaise: ['silent-starvation', 'priority-inversion'],
    at: FAULT_AT,
    withinUs: 3 * MIN,
    scenario: withFault(
      { at: FAULT_AT, kind: 'hang', nodes: first(2), forUs: 6 * MIN },
      {
        config: UNPROTECTED,
        fleet: FLEET.map((group) => ({ ...group, engine: { kind: 'slots', slots: 4 } })),
        streams: [traffic({ classes: [{ name: 'normal', share: 1, deadlineUs: 20 * MIN }] }, 0.3)],
      },
    ),
  },
  {
    fault: 'a stage of the overload ladder was set by hand and forgotten',
    raises: ['latched-gate'],
    mayRaise: [],
    at: FAULT_AT,
    withinUs: MIN,
    scenario: scene({ spanUs: 8 * MIN, streams: [traffic({}, 0.4)] }),
    prepare: (simulation) =>
      simulation.at(FAULT_AT, () =>
        simulation.apply({
          kind: 'ladder-override',
          override: { stage: 3, forUs: 60 * MIN, who: 'somebody', why: 'an incident' },
        }),
      ),
  },
  {
    fault: 'the gateway goes on protecting itself after its loop is well again',
    raises: ['latched-gate'],
    mayRaise: [],
    at: FAULT_AT,
    withinUs: MIN,
    scenario: scene({ spanUs: 8 * MIN, streams: [traffic({}, 0.4)] }),
    prepare: (simulation) =>
      simulation.at(FAULT_AT, () => simulation.apply({ kind: 'survival', shedClasses: 2 })),
  },
  {
    fault: 'readings of idle nodes go on saying that they are full',
    raises: ['phantom-starvation'],
    mayRaise: [
      'latched-gate',
      'joint-entropy',
      'memory-hoarding',
      'queue-growth',
      'silent-overload',
      'wait-spread',
    ],
    at: FAULT_AT,
    withinUs: MIN,
    scenario: scene({ spanUs: 8 * MIN, streams: [traffic({}, 0.5)] }),
    prepare: (simulation) => repeatFull(simulation, FAULT_AT),
  },
  {
    fault: 'all nodes become three times slower while there is more than they can do',
    raises: ['silent-starvation'],
    mayRaise: ['slo-drift', 'queue-growth', 'generational-starvation', 'priority-inversion', 'little-gap'],
    at: 6 * MIN,
    withinUs: 3 * MIN,
    scenario: withFault(
      { at: 6 * MIN, kind: 'slow', nodes: ALL, times: 3, forUs: 6 * MIN },
      { streams: [traffic({}, 1.5)] },
    ),
  },
  {
    fault: 'the lowest class has no share left, and waits to miss',
    raises: ['generational-starvation'],
    mayRaise: ['queue-growth', 'slo-drift'],
    at: 0,
    withinUs: 6 * MIN,
    scenario: scene({
      config: {
        ...gates({ 'flow-wait': 'off', 'retry-shed': 'off', ladder: 'off' }),
        classes: defaultSchedulerConfig({}).classes.map((one) =>
          one.name === 'low' ? { ...one, weight: 1, shareMin: 0.02 } : { ...one, weight: 100 },
        ),
      },
      streams: [traffic({}, 1.5)],
    }),
  },
  {
    fault: 'low requests of ninety seconds take all places, and none gives way',
    raises: ['priority-inversion'],
    mayRaise: ['queue-growth', 'generational-starvation', 'little-gap'],
    at: FAULT_AT,
    withinUs: 2 * MIN,
    scenario: scene({
      spanUs: 9 * MIN,
      config: UNPROTECTED,
      streams: [
        traffic({ classes: [{ name: 'critical', share: 1, deadlineUs: 20 * S }] }, 0.2),
        traffic(
          {
            name: 'batch',
            arrivals: { kind: 'poisson', rate: { kind: 'load', load: 1.5 } },
            course: [
              { from: 0, times: 0 },
              { from: FAULT_AT, times: 1 },
            ],
            classes: [{ name: 'low', share: 1, deadlineUs: 30 * MIN }],
            sizes: { kind: 'work', meanUs: 90 * S, sigma: 0.3 },
          },
          1.5,
        ),
      ],
    }),
  },
  {
    fault: 'one of ten equal nodes takes 1.9 times as long, less than what ejects it',
    raises: ['node-variance'],
    mayRaise: [],
    at: FAULT_AT,
    withinUs: 7 * MIN,
    scenario: withFault(
      { at: FAULT_AT, kind: 'slow', nodes: first(1), times: 1.9, forUs: 10 * MIN },
      // It must be asked often enough to be judged.
      { spanUs: 13 * MIN, streams: [traffic({}, 0.8)] },
    ),
  },
  {
    fault: 'one node fails a seventh of its requests, and its probes are well',
    raises: ['ready-but-failing'],
    mayRaise: ['ghost-queue', 'ownership-flapping'],
    at: FAULT_AT,
    withinUs: 4 * MIN,
    scenario: withFault({
      at: FAULT_AT,
      kind: 'gray',
      nodes: { group: 'large', count: 1 },
      failShare: 0.15,
      forUs: 10 * MIN,
    }),
  },
  {
    fault: 'a node fails everything in a millisecond, and is ejected for no longer than that',
    raises: ['traffic-sink'],
    mayRaise: ['ready-but-failing', 'ghost-queue', 'ownership-flapping'],
    at: FAULT_AT,
    withinUs: 3 * MIN,
    scenario: withFault(
      { at: FAULT_AT, kind: 'gray', nodes: { group: 'large', count: 1 }, failShare: 1, forUs: 10 * MIN },
      {
        config: configured({
          health: { ...defaultSchedulerConfig({}).health, ejectMs: 1, ejectMsMax: 1 },
        }),
      },
    ),
  },
  {
    fault: 'load rises above capacity, no gate refuses and nobody adds nodes',
    raises: ['queue-growth'],
    mayRaise: ['slo-drift', 'little-gap', 'generational-starvation'],
    at: FAULT_AT,
    withinUs: 2 * MIN,
    scenario: scene({
      config: UNPROTECTED,
      spanUs: 8 * MIN,
      streams: [
        traffic({
          course: [{ from: FAULT_AT, times: 2.5 }],
          classes: [{ name: 'normal', share: 1, deadlineUs: 20 * MIN }],
        }),
      ],
    }),
  },
  {
    fault: 'every node has many places free and takes three times as long',
    raises: ['silent-overload'],
    mayRaise: ['slo-drift', 'prediction-error'],
    at: FAULT_AT,
    withinUs: 2 * MIN,
    scenario: withFault(
      { at: FAULT_AT, kind: 'slow', nodes: ALL, times: 3, forUs: 10 * MIN },
      {
        spanUs: 8 * MIN,
        fleet: FLEET.map((group) => ({ ...group, engine: { kind: 'slots', slots: 16 } })),
        streams: [traffic({}, 0.03)],
      },
    ),
  },
  {
    fault: 'the large nodes become slower, and answers come near their deadlines',
    raises: ['slo-drift'],
    mayRaise: ['silent-overload', 'silent-starvation', 'prediction-error', 'ghost-queue'],
    at: 12 * MIN,
    withinUs: 5 * MIN,
    scenario: withFault(
      { at: 12 * MIN, kind: 'slow', nodes: { group: 'large', count: 0 }, times: 3, forUs: 10 * MIN },
      {
        spanUs: 20 * MIN,
        streams: [
          traffic(
            {
              classes: [
                { name: 'critical', share: 0.3, deadlineUs: 3 * S },
                { name: 'normal', share: 0.7, deadlineUs: 4 * S },
              ],
              sizes: { kind: 'work', meanUs: S, sigma: 0.3 },
            },
            0.3,
          ),
        ],
      },
    ),
  },
  {
    fault: 'every node fails a tenth of its requests, and all are tried again elsewhere',
    raises: ['ghost-queue'],
    mayRaise: ['ownership-flapping'],
    at: FAULT_AT,
    withinUs: 2 * MIN,
    scenario: withFault(
      { at: FAULT_AT, kind: 'gray', nodes: ALL, failShare: 0.1, forUs: 10 * MIN },
      { streams: [traffic({}, 0.4)] },
    ),
  },
  {
    fault: 'one node is cut off for twenty seconds of every minute',
    raises: ['ownership-flapping'],
    mayRaise: ['ghost-queue', 'ready-but-failing'],
    at: FAULT_AT,
    withinUs: 5 * MIN,
    scenario: scene({
      faults: [0, 1, 2, 3, 4].map(
        (nth): FaultSpec => ({
          at: FAULT_AT + nth * MIN,
          kind: 'partition',
          nodes: { group: 'large', count: 1 },
          forUs: 20 * S,
        }),
      ),
    }),
  },
  {
    fault: 'the memory of a working node stands at 93 %',
    raises: ['memory-fragmentation'],
    mayRaise: [],
    at: FAULT_AT,
    withinUs: 2 * MIN,
    scenario: scene({ spanUs: 8 * MIN, streams: [traffic({}, 0.8)] }),
    prepare: (simulation) => tellMemory(simulation, 0.93, 10),
  },
  {
    fault: 'the memory of nodes that do little stands at 97 %',
    raises: ['memory-hoarding'],
    mayRaise: ['joint-entropy'],
    at: FAULT_AT,
    withinUs: 2 * MIN,
    scenario: scene({ spanUs: 8 * MIN, streams: [traffic({}, 0.1)] }),
    prepare: (simulation) => tellMemory(simulation, 0.97, 0),
  },
  {
    fault: 'the memory of all nodes stands at 97 %, and three models have more to do than they can',
    raises: ['joint-entropy'],
    mayRaise: ['queue-growth', 'slo-drift'],
    at: FAULT_AT,
    withinUs: 2 * MIN,
    scenario: scene({
      spanUs: 10 * MIN,
      config: UNPROTECTED,
      fleet: FLEET.map((group) => ({ ...group, models: ['a', 'b', 'c'] })),
      streams: [
        traffic(
          {
            course: [{ from: FAULT_AT, times: 3 }],
            models: ['a', 'b', 'c'].map((id) => ({ id, share: 1 / 3 })),
          },
          0.5,
        ),
      ],
    }),
    prepare: (simulation) => tellMemory(simulation, 0.97, 0),
  },
  {
    fault: 'the only node of a rare model has more to do than it can',
    raises: ['wait-spread'],
    mayRaise: ['queue-growth', 'slo-drift', 'little-gap', 'priority-inversion'],
    at: FAULT_AT,
    withinUs: 4 * MIN,
    scenario: scene({
      config: UNPROTECTED,
      fleet: [...FLEET, nodeGroup({ name: 'rare', count: 1, models: ['rare'] })],
      streams: [
        traffic({ classes: [{ name: 'normal', share: 1, deadlineUs: 10 * MIN }] }),
        traffic({
          name: 'rare',
          arrivals: { kind: 'poisson', rate: { kind: 'per-second', perSecond: 0.1 } },
          course: [{ from: FAULT_AT, times: 15 }],
          classes: [{ name: 'normal', share: 1, deadlineUs: 10 * MIN }],
          models: [{ id: 'rare', share: 1 }],
        }),
      ],
    }),
  },
  {
    fault: 'one stage of a workflow has a single node, and more of it comes than that can do',
    raises: ['contention-heat'],
    mayRaise: ['wait-spread', 'queue-growth', 'slo-drift', 'little-gap', 'priority-inversion'],
    at: FAULT_AT,
    withinUs: 4 * MIN,
    scenario: scene({
      config: UNPROTECTED,
      fleet: [...FLEET, nodeGroup({ name: 'drawing', count: 1, models: ['drawing'] })],
      streams: [
        traffic({
          classes: [{ name: 'normal', share: 1, deadlineUs: 10 * MIN }],
          stages: stages(['plan', 0.5, ''], ['check', 0.5, 'draw']),
        }),
        traffic({
          name: 'draw',
          arrivals: { kind: 'poisson', rate: { kind: 'per-second', perSecond: 0.5 } },
          course: [{ from: FAULT_AT, times: 3 }],
          classes: [{ name: 'normal', share: 1, deadlineUs: 10 * MIN }],
          models: [{ id: 'drawing', share: 1 }],
          stages: stages(['draw', 1, 'plan']),
        }),
      ],
    }),
  },
  {
    fault: 'the only node of one tenant becomes eight times slower, and is not full',
    raises: ['latency-spread'],
    mayRaise: [],
    at: 6 * MIN,
    withinUs: 5 * MIN,
    scenario: withFault(
      { at: 6 * MIN, kind: 'slow', nodes: { group: 'branch', count: 0 }, times: 8, forUs: 10 * MIN },
      {
        fleet: [...FLEET, nodeGroup({ name: 'branch', count: 1, speed: 4, models: ['branch'] })],
        streams: [
          traffic({ classes: [{ name: 'normal', share: 1, deadlineUs: 60 * S }] }),
          traffic({
            name: 'branch',
            arrivals: { kind: 'poisson', rate: { kind: 'per-second', perSecond: 0.25 } },
            classes: [{ name: 'normal', share: 1, deadlineUs: 60 * S }],
            tenants: { kind: 'one', id: 'branch' },
            models: [{ id: 'branch', share: 1 }],
          }),
        ],
      },
    ),
  },
  {
    fault: 'half of the requests begin to call themselves critical',
    raises: ['label-drift'],
    mayRaise: [],
    at: 10 * MIN,
    withinUs: 4 * MIN,
    scenario: scene({
      spanUs: 15 * MIN,
      streams: [
        traffic({ course: [{ from: 10 * MIN, times: 0.5 }] }),
        traffic({
          name: 'risen',
          course: [
            { from: 0, times: 0 },
            { from: 10 * MIN, times: 0.5 },
          ],
          classes: [{ name: 'critical', share: 1, deadlineUs: 30 * S }],
        }),
      ],
    }),
  },
  {
    fault: 'sizes are guessed within a factor of four only',
    raises: ['prediction-error'],
    // The scheduler takes nodes with unlucky tasks for slow ones, too.
    mayRaise: ['generational-starvation', 'node-variance', 'ownership-flapping'],
    at: 0,
    withinUs: 7 * MIN,
    scenario: scene({ streams: [traffic({ estimateSigma: 1.4 }, 0.4)] }),
  },
  {
    fault: 'clients see a tenth of their answers broken off, of which the gateway knows nothing',
    raises: ['phantom-slo'],
    mayRaise: [],
    at: FAULT_AT,
    withinUs: 30 * S,
    scenario: scene({ spanUs: 6 * MIN }),
    signals: {
      outside: (now) => ({
        userSide: {
          told: 400,
          toldBad: now < FAULT_AT ? 3 : 42,
          serverBad: 2,
          clientP95Ms: 2_100,
          serverP95Ms: 2_000,
        },
      }),
    },
  },
  {
    fault: 'a proxy before the nodes closes each connection after its answer',
    raises: ['connection-churn'],
    mayRaise: [],
    at: FAULT_AT,
    withinUs: 2 * MIN,
    scenario: scene({ spanUs: 8 * MIN }),
    signals: {
      outside: (now) => {
        const requests = Math.floor(now / 100_000);
        const late = Math.max(0, requests - FAULT_AT / 100_000);
        return { connections: { requests, opened: Math.floor(0.02 * requests + 0.9 * late) } };
      },
    },
  },
];

/** Each second all nodes but two tell that work of others waits inside them. */
function repeatFull(simulation: Simulation, from: number): void {
  const nodes = [...simulation.nodes.keys()].slice(0, -2);
  const tell = (): void => {
    for (const nodeId of nodes)
      simulation.apply({ kind: 'node-reading', nodeId, reading: { waiting: 3, cacheUse: 1 } });
    simulation.at(simulation.now + S, tell);
  };
  simulation.at(from, tell);
}

/** From the fault on each node tells its memory; before, that little of it is used. */
function tellMemory(simulation: Simulation, use: number, onlyNode: number): void {
  const nodes = [...simulation.nodes.keys()].filter((_, at) => onlyNode === 0 || at === onlyNode);
  const tell = (): void => {
    const memoryUse = simulation.now < FAULT_AT ? 0.5 : use;
    for (const nodeId of nodes)
      simulation.apply({ kind: 'node-memory', nodeId, memory: { memoryUse, reservedUse: 0 } });
    simulation.at(simulation.now + 10 * S, tell);
  };
  simulation.at(S, tell);
}
