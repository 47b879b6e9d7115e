/**
 * The scheduler's state, shared by the modules that each hold one part of its rules. Nothing outside this folder
 * sees it; `dump` and the views describe it.
 */
import { KeyedHeap } from '../../base/keyed-heap.ts';
import { createPrng, type Prng } from '../../base/prng.ts';
import type { MonoUs, TenantId } from '../../base/units.ts';
import { Gates } from '../admission/gates.ts';
import { PredictionMargin } from '../admission/margin.ts';
import { RetryMarks } from '../admission/retry-marks.ts';
import { Timeouts } from '../capacity/timeouts.ts';
import type { DegradeStep } from '../degrade/alternative.ts';
import type { PendingEnd } from '../degrade/pending.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { ModelAnywhere } from '../health/model-breakers.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { EtaLedger } from '../ledgers/eta.ts';
import type { Ledgers } from '../ledgers/view.ts';
import { WasteLedger } from '../ledgers/waste.ts';
import { Limits } from '../limits/index.ts';
import { type Choice, type ChooseContext, emptyChoice } from '../placement/choose.ts';
import { Ladder } from '../overload/ladder.ts';
import { groupsOf } from '../placement/bulkhead.ts';
import { Fleet } from '../placement/fleet.ts';
import { PrefixIndex } from '../placement/prefix-index.ts';
import { Ranking } from '../placement/ranking.ts';
import { DeadlineWheel } from '../queue/deadline-wheel.ts';
import { ClassRecord, effectiveWeights, Flow, type Holding } from '../queue/flow.ts';
import type { Lane } from '../queue/lane.ts';
import { LiveTasks } from '../queue/live-tasks.ts';
import { TaskRecords } from '../queue/task-record.ts';
import { GENERIC_PROFILE, WorkModel } from '../request/work.ts';
import type { Outcome } from '../request/outcome.ts';
import { RetryBudget } from '../retry/budget.ts';
import { Tallies } from '../signals/index.ts';
import { Preemptions } from '../retry/preemptions.ts';
import { PoisonMarks } from '../retry/poison.ts';
import { type EffectSink, SILENT_SINK } from './effects.ts';
import type { SchedulerEvent } from './events.ts';
import { HeldTasks } from './held-tasks.ts';
import type { DecisionWatch } from './watch.ts';

/** Idle flows are forgotten beyond this number; a flow with tasks is bounded by the bound on tasks. */
export const FLOWS_MAX = 131_072;
/** Models whose token ratios are remembered; configured and offered models come first by nature. */
export const WORK_MODELS_MAX = 10_000;

export interface Counts {
  arrived: number;
  served: number;
  degraded: number;
  rejected: number;
  evicted: number;
  failed: number;
  cancelled: number;
  /** Assigned and without an outcome. */
  running: number;
}

/** By name of the field: an index by a name that varies is looked up each time. */
export function countOutcome(counts: Counts, { kind }: Outcome): void {
  if (kind === 'served') counts.served += 1;
  else if (kind === 'rejected') counts.rejected += 1;
  else counts[kind] += 1;
}

export interface SchedulerState {
  config: SchedulerConfig;
  classes: ClassRecord[];
  classByName: Map<string, ClassRecord>;
  tenantWeights: Map<TenantId, number>;
  readonly fleet: Fleet;
  /** Every task without an outcome or with a permit not yet released. */
  readonly tasks: LiveTasks;
  readonly records: TaskRecords;
  /** Tasks that may go on with a lesser answer; looked at before the event ends, and empty between events. */
  readonly degrading: PendingEnd[];
  /** The alternative that is being tried: told when the task is admitted with it. */
  offered: DegradeStep | null;
  /** Models that the configuration switches off. */
  modelsOff: ReadonlySet<string>;
  readonly wheel: DeadlineWheel;
  readonly counts: Counts;
  readonly tallies: Tallies;
  /** Next instant at which a node's marks must be looked at. */
  readonly nodeTimers: KeyedHeap<NodeRecord>;
  readonly margin: PredictionMargin;
  readonly ledgers: Ledgers;
  readonly gates: Gates;
  readonly limits: Limits;
  readonly retryMarks: RetryMarks;
  readonly ladder: Ladder;
  readonly timeouts: Timeouts;
  readonly budget: RetryBudget;
  readonly preemptions: Preemptions;
  readonly poison: PoisonMarks;
  /** Models that failed lately, while anything speaks against them. */
  readonly modelBreakers: Map<string, ModelAnywhere>;
  readonly workModels: Map<string, WorkModel>;
  readonly choice: Choice;
  readonly held: HeldTasks;
  readonly context: ChooseContext;
  readonly prng: Prng;
  /** Lanes that left a node idle on purpose, and when to think again. */
  readonly heldLanes: Set<Lane>;
  heldRecheckAt: MonoUs;
  relayAt: MonoUs;
  flowOrder: number;
  nodeOrder: number;
  shedClasses: number;
  isShuttingDown: boolean;
  /** Once it shuts down: when a gateway may be back. */
  returnAt: MonoUs;
  out: EffectSink;
  /** Told why, beside what; null while nobody watches, and then nothing is worked out for it. */
  watch: DecisionWatch | null;
  readonly ranking: Ranking;
  now: MonoUs;
}

/** How events change the state: the product's rules, or a baseline's. `state.now` and `state.out` are set before. */
export interface SchedulerRules {
  apply(state: SchedulerState, event: SchedulerEvent): void;
  nextWakeAt(state: SchedulerState): MonoUs;
}

export function createState(config: SchedulerConfig): SchedulerState {
  const prng = createPrng(config.seed);
  const classes = classRecords(config, new Map());
  const fleet = new Fleet(classes);
  const state: SchedulerState = {
    config,
    classes,
    classByName: new Map(classes.map((record) => [record.config.name, record])),
    tenantWeights: new Map(),
    fleet,
    tasks: new LiveTasks(),
    records: new TaskRecords(),
    degrading: [],
    offered: null,
    modelsOff: new Set(),
    wheel: new DeadlineWheel(),
    counts: {
      arrived: 0,
      served: 0,
      degraded: 0,
      rejected: 0,
      evicted: 0,
      failed: 0,
      cancelled: 0,
      running: 0,
    },
    tallies: new Tallies(),
    nodeTimers: new KeyedHeap(),
    margin: new PredictionMargin(),
    ledgers: { refusals: fleet.refusals, eta: new EtaLedger(), waste: new WasteLedger() },
    gates: new Gates(config.gates),
    limits: new Limits(),
    retryMarks: new RetryMarks(),
    ladder: new Ladder(config),
    timeouts: new Timeouts(),
    budget: new RetryBudget(),
    preemptions: new Preemptions(),
    poison: new PoisonMarks(),
    modelBreakers: new Map(),
    workModels: new Map(),
    choice: emptyChoice(),
    held: new HeldTasks(),
    context: { config, prng, now: 0, timeLeft: null, prefixes: new PrefixIndex() },
    prng,
    heldLanes: new Set(),
    heldRecheckAt: Number.POSITIVE_INFINITY,
    relayAt: 0,
    flowOrder: 0,
    nodeOrder: 0,
    shedClasses: 0,
    isShuttingDown: false,
    returnAt: 0,
    out: SILENT_SINK,
    watch: null,
    ranking: new Ranking(),
    now: 0,
  };
  applyConfig(state, config);
  state.fleet.regroup(groupsOf(config, state.gates));
  return state;
}

/** Takes over what does not touch queued tasks: weights, profiles. Counters, rates and marks stay. */
export function applyConfig(state: SchedulerState, config: SchedulerConfig): void {
  state.config = config;
  state.gates.configure(config.gates);
  state.modelsOff = new Set(config.models.filter((model) => model.off === true).map((model) => model.id));
  state.limits.configure(config, state.now);
  state.ladder.configure(config);
  state.fleet.setLoading(config.placement.swapMs > 0);
  state.ledgers.refusals.swapUs = config.placement.swapMs * 1_000;
  for (const { name } of config.classes) state.ledgers.refusals.expect(name);
  (state.context as { config: SchedulerConfig }).config = config;
  state.tenantWeights = new Map(config.tenantWeights.map((row) => [row.id, row.weight]));
  for (const record of state.classes) {
    for (const flow of record.flows.values()) flow.weight = state.tenantWeights.get(flow.tenant) ?? 1;
  }
  for (const model of config.models) {
    const known = state.workModels.get(model.id);
    state.workModels.set(
      model.id,
      known === undefined
        ? new WorkModel(model.profile, model.imageTokens)
        : known.withProfile(model.profile, model.imageTokens),
    );
  }
}

/** Class records in configured order; those that exist keep their counters. */
export function classRecords(
  config: SchedulerConfig,
  known: ReadonlyMap<string, ClassRecord>,
): ClassRecord[] {
  const weights = effectiveWeights(config.classes);
  return config.classes.map((classConfig, index) => {
    return new ClassRecord(index, classConfig, weights[index] as number, known.get(classConfig.name));
  });
}

export function flowOf(state: SchedulerState, record: ClassRecord, tenant: TenantId): Flow {
  const known = record.flows.get(tenant);
  if (known !== undefined) return known;
  if (record.flows.size >= FLOWS_MAX) forgetIdleFlows(record);
  const flow = new Flow(record, {
    tenant,
    weight: state.tenantWeights.get(tenant) ?? 1,
    order: state.flowOrder++,
    tenantQueued: tenantHolding(state, tenant),
  });
  record.flows.set(tenant, flow);
  return flow;
}

function tenantHolding(state: SchedulerState, tenant: TenantId): Holding {
  for (const record of state.classes) {
    const flow = record.flows.get(tenant);
    if (flow !== undefined) return flow.tenantQueued;
  }
  return { tasks: 0, workUs: 0, bytes: 0 };
}

function forgetIdleFlows(record: ClassRecord): void {
  for (const [tenant, flow] of record.flows) {
    if (!flow.isIdle) continue;
    flow.leaveVictims();
    record.flows.delete(tenant);
  }
}

export function workModelOf(state: SchedulerState, model: string): WorkModel {
  const known = state.workModels.get(model);
  if (known !== undefined) return known;
  const created = new WorkModel(GENERIC_PROFILE);
  if (state.workModels.size < WORK_MODELS_MAX) state.workModels.set(model, created);
  return created;
}
