/**
 * One policy, one scenario, one seed: builds the fleet and the clients, lets them meet, and says what it came to.
 * Deterministic but for the wall time.
 */
import { readFileSync } from 'node:fs';
import type { DurationUs, MonoUs } from '../base/units.ts';
import { effectiveWeights } from '../core/queue/index.ts';
import { referenceWorkUs } from '../hardware/reference-work.ts';
import { createClients, type RunClients } from './clients/create-clients.ts';
import { sampleMix } from './clients/sample-mix.ts';
import { scheduleFaults } from './faults/faults.ts';
import { buildFleet } from './fleets/build-fleet.ts';
import { fleetCapacity } from './fleets/capacity.ts';
import type { Mix } from './fleets/mix.ts';
import type { Demand } from './machines/machine.ts';
import { Recorder, type RunFacts } from './measure/recorder.ts';
import type { Disturbance } from './measure/recovery.ts';
import type { PolicyReport } from './measure/report.ts';
import { Sampler } from './measure/sampler.ts';
import { SignalLog, type SignalLogOptions, type SignalsReport } from './measure/signal-log.ts';
import type { Samples } from './measure/samples.ts';
import { UserLog, type UserRows } from './measure/user-log.ts';
import { FleetTimes } from './oracle/fleet-times.ts';
import type { Policy } from './policies/policy.ts';
import { createPolicy } from './policies/registry.ts';
import type { NodeGroup, PolicySpec, ProcessSpec, Scenario, StreamSpec } from './scenario/types.ts';
import type { SimNode } from './sim-node.ts';
import { Simulation } from './simulation.ts';

/** Nodes whose load is sampled: as many rows as a picture can show. */
const SAMPLED_NODES_MAX = 120;

/** Demands by which a fleet's capacity is reckoned: enough that chance in them is below 1 %. */
const MIX_SAMPLES = 4_000;
/** A rate is a quotient of two sums over the same demands: chance in them nearly cancels. */
const RATE_SAMPLES_MIN = 100;
const RATE_STEPS_MAX = 2_000_000;

export interface RunResult {
  readonly report: PolicyReport;
  /** When the scenario asks for samples. */
  readonly samples?: Samples;
  /** When they are asked for. */
  readonly users?: UserRows;
  readonly signals?: SignalsReport;
}

export interface RunExtras {
  /** Users of whom is told what became of each; absent or 0: none. */
  readonly usersMax?: number;
  /** Whether the detectors of silent failures look on. */
  readonly watchesSignals?: boolean;
}

export function runScenario(
  scenario: Scenario,
  spec: PolicySpec,
  seed: number,
  { usersMax = 0, watchesSignals = false }: RunExtras = {},
): RunResult {
  return runPolicy(scenario, {
    createPolicy: () => createPolicy(spec, seed),
    process: spec.process,
    seed,
    usersMax,
    ...(watchesSignals ? { signals: {} } : {}),
  });
}

/** A look at a run that goes on: what it came to so far. Changes nothing. */
export interface Checkpoints {
  readonly everyUs: DurationUs;
  take(report: PolicyReport): void;
}

/** The same for a policy that is in no registry. */
export function runPolicy(
  scenario: Scenario,
  {
    createPolicy: create,
    process,
    seed,
    usersMax = 0,
    signals: watched,
    prepare,
    checkpoints,
  }: {
    readonly createPolicy: () => Policy;
    readonly process?: ProcessSpec;
    readonly seed: number;
    readonly usersMax?: number;
    /** Present: the detectors look on. */
    readonly signals?: SignalLogOptions;
    /** Scripts what no scenario can say. */
    readonly prepare?: (simulation: Simulation) => void;
    readonly checkpoints?: Checkpoints;
  },
): RunResult {
  const startedAt = performance.now();
  const stage = stageOf(scenario, { seed, usersMax });
  const { nodes, recorder, sampler, users, clients } = stage;
  const simulation = new Simulation({
    createPolicy: create,
    nodes,
    clients,
    observer: recorder,
    ...(process === undefined ? {} : { process }),
  });
  schedule(simulation, scenario, stage);
  scheduleFaults(simulation, scenario.faults, scenario.fleet);
  prepare?.(simulation);
  const log = watched === undefined ? undefined : new SignalLog(watched);
  log?.watch(simulation);
  const facts = (): RunFacts => ({
    decisionHash: simulation.hash.digest(),
    now: simulation.now,
    crashes: simulation.crashes,
    resumeSeconds: simulation.resumeUs / 1e6,
    wallSeconds: (performance.now() - startedAt) / 1_000,
  });
  const until = scenario.spanUs + scenario.drainUs;
  if (checkpoints !== undefined)
    for (let at: MonoUs = 0 + checkpoints.everyUs; at < until; at = at + checkpoints.everyUs) {
      simulation.runUntil(at);
      checkpoints.take(recorder.report([], facts()));
    }
  simulation.runUntil(until);
  clients.finish(simulation.now);
  const report = recorder.report(simulation.jobs(), facts());
  return {
    report,
    ...(sampler === undefined ? {} : { samples: sampler.samples(sampled(nodes)) }),
    ...(users === undefined ? {} : { users: users.rows(simulation.now) }),
    ...(log === undefined ? {} : { signals: log.report() }),
  };
}

interface Stage {
  readonly nodes: readonly SimNode[];
  readonly recorder: Recorder;
  readonly sampler: Sampler | undefined;
  readonly users: UserLog | undefined;
  readonly clients: RunClients;
}

function stageOf(
  scenario: Scenario,
  { seed, usersMax }: { readonly seed: number; readonly usersMax: number },
): Stage {
  const { streams } = scenario;
  const mixes = new Map(streams.map((stream) => [stream, mixOf(stream, seed)]));
  const nodes = buildFleet(scenario.fleet, {
    seed,
    mix: ratesMix([...mixes.values()].flat(), scenario.fleet),
  });
  const capacities = new Map([...mixes].map(([stream, mix]) => [stream, fleetCapacity(nodes, mix)]));
  const capacity = streams.map((stream) => capacities.get(stream)?.workUsPerUs ?? 0);
  const sampler = samplerOf(scenario, capacity);
  const probe = [...mixes.values()].flat()[0]?.demands[0];
  // Their twins: what a user may expect does not change with a fault.
  const twins = buildFleet(scenario.fleet, { seed, mix: [] });
  const bestServiceUs = bestServiceOf(twins, scenario.fleet, probe);
  const fastestRate = probe === undefined ? 1 : referenceWorkUs(probe) / bestServiceUs(probe);
  const users = usersMax > 0 ? userLogOf(scenario, { twins, probe, usersMax }) : undefined;
  const recorder = recorderOf(scenario, { nodes, capacity, fastestRate, sampler, users });
  const clients = createClients({
    streams,
    spanUs: scenario.spanUs,
    seed,
    mixPerSecond: (stream) => capacities.get(stream)?.requestsPerSecond ?? 0,
    bestServiceUs,
    readTrace,
    observer: recorder,
  });
  return { nodes, recorder, sampler, users, clients };
}

function userLogOf(
  { config, streams, fleet }: Scenario,
  {
    twins,
    probe,
    usersMax,
  }: { readonly twins: readonly SimNode[]; readonly probe: Demand | undefined; readonly usersMax: number },
): UserLog {
  return new UserLog({
    usersMax,
    classes: config.classes.map(({ name }) => name),
    streams: streams.map(({ name }) => name),
    nodes: twins.map(({ spec }) => spec.id),
    times: new FleetTimes(twins, { groups: fleet, streams, probe }),
  });
}

/** Scenarios name traces by paths that can be opened. */
function readTrace(file: string): string {
  return readFileSync(file, 'utf8');
}

/** What a stream asks of each of its models. */
function mixOf(stream: StreamSpec, seed: number): Mix {
  const demands = sampleMix(stream, MIX_SAMPLES, { seed, readTrace });
  return stream.models.map(({ id, share }) => ({ model: id, share, demands }));
}

/** Known rates are worked out for each node and model: in a large fleet from fewer demands, so that runs begin soon. */
function ratesMix(mix: Mix, groups: readonly NodeGroup[]): Mix {
  const nodes = groups.reduce((sum, { count }) => sum + count, 0);
  const most = Math.max(RATE_SAMPLES_MIN, Math.floor(RATE_STEPS_MAX / Math.max(1, nodes * mix.length)));
  return mix.map((part) => ({ ...part, demands: part.demands.slice(0, most) }));
}

/** Nodes of a group differ by a factor only: the fastest for one demand is the fastest for all. */
function bestServiceOf(
  nodes: readonly SimNode[],
  groups: readonly NodeGroup[],
  probe: Demand | undefined,
): (demand: Demand) => DurationUs {
  let from = 0;
  const fastest = groups.flatMap(({ count }) => {
    const group = nodes.slice(from, from + count);
    from += count;
    return group.length === 0 ? [] : [probe === undefined ? (group[0] as SimNode) : fastestOf(group, probe)];
  });
  return (demand) => {
    let bestUs = Number.POSITIVE_INFINITY;
    for (let group = 0; group < fastest.length; group++) {
      const { machine } = fastest[group] as SimNode;
      bestUs = Math.min(bestUs, machine.serviceUs(demand));
    }
    return bestUs;
  };
}

function fastestOf(group: readonly SimNode[], probe: Demand): SimNode {
  return group.reduce((best, node) =>
    node.machine.serviceUs(probe) < best.machine.serviceUs(probe) ? node : best,
  );
}

function schedule(simulation: Simulation, { window }: Scenario, { recorder, sampler, nodes }: Stage): void {
  simulation.at(window.from, () => recorder.markWindow('from', simulation.now));
  simulation.at(window.until, () => recorder.markWindow('until', simulation.now));
  if (sampler === undefined) return;
  const shown = sampled(nodes);
  const sample = (at: MonoUs): void =>
    simulation.at(at, () => {
      const next = sampler.close(simulation.now, {
        ...recorder.levels(),
        nodes: shown,
        drainUs: drainOf(simulation.policy),
      });
      sample(next);
    });
  sample(sampler.close(0, { ...recorder.levels(), nodes: shown, drainUs: undefined }));
}

function drainOf(policy: Policy | undefined): ((node: SimNode) => DurationUs) | undefined {
  return policy?.drainUs === undefined ? undefined : ({ spec }) => policy.drainUs?.(spec.id) ?? 0;
}

/** Evenly over the fleet, so that every group is among them. */
function sampled(nodes: readonly SimNode[]): readonly SimNode[] {
  if (nodes.length <= SAMPLED_NODES_MAX) return nodes;
  const step = nodes.length / SAMPLED_NODES_MAX;
  return Array.from({ length: SAMPLED_NODES_MAX }, (_, row) => nodes[Math.floor(row * step)] as SimNode);
}

function samplerOf(
  { sampleUs, config, streams }: Scenario,
  capacity: readonly number[],
): Sampler | undefined {
  if (sampleUs <= 0) return undefined;
  return new Sampler({
    periodUs: sampleUs,
    classes: config.classes.map(({ name }) => name),
    // Streams of one fleet may have unlike capacities; their mean is what the scale of a plot needs.
    capacity: capacity.reduce((sum, each) => sum + each, 0) / streams.length,
  });
}

interface Measured {
  readonly nodes: readonly SimNode[];
  readonly capacity: readonly number[];
  readonly fastestRate: number;
  readonly sampler: Sampler | undefined;
  readonly users: UserLog | undefined;
}

function recorderOf(scenario: Scenario, { sampler, ...measured }: Measured): Recorder {
  const classes = scenario.config.classes.map(({ name }) => name);
  const shares = effectiveWeights(scenario.config.classes);
  return new Recorder({
    window: scenario.window,
    classes,
    classShares: new Map(classes.map((name, index) => [name, shares[index] ?? 0])),
    streams: scenario.streams.map(({ name }) => name),
    tenantWeights: scenario.config.tenantWeights,
    ...measured,
    changes: scenario.streams.flatMap(changesOf),
    disturbance: disturbanceOf(scenario),
    deadlineUs: deadlineOf(scenario.streams, classes[Math.min(1, classes.length - 1)] as string),
    sampler,
  });
}

/** The longest that a stream gives requests of the class; of all classes where nobody uses it. */
function deadlineOf(streams: readonly StreamSpec[], className: string): DurationUs {
  const all = streams.flatMap(({ classes }) => classes);
  const own = all.filter(({ name }) => name === className);
  return Math.max(0, ...(own.length > 0 ? own : all).map(({ deadlineUs }) => deadlineUs));
}

/** From the first change of the rates or the first fault to the end of the last; undefined in a calm scenario. */
export function disturbanceOf({ streams, faults }: Scenario): Disturbance | undefined {
  const changes = streams.flatMap(changesOf);
  const begins = [...changes, ...faults.map(({ at }) => at)];
  const ends = [...changes, ...faults.map((fault) => fault.at + lengthOf(fault))];
  if (begins.length === 0) return undefined;
  return { from: Math.min(...begins), until: Math.max(...ends) };
}

function changesOf({ course }: StreamSpec): readonly MonoUs[] {
  return course.map(({ from }) => from).filter((from) => from > 0);
}

function lengthOf(fault: Scenario['faults'][number]): DurationUs {
  if ('forUs' in fault) return fault.forUs;
  return 'downUs' in fault ? fault.downUs : 0;
}
