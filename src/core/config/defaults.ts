/**
 * The complete default configuration, built from the numbers in `settings.ts`. `tasksMax` and `bytesMax` shrink with
 * the memory limit, which the applications read and pass in.
 */
import type { Bytes } from '../../base/units.ts';
import { defaultOf } from './settings.ts';
import type {
  AdmissionConfig,
  BoundsConfig,
  CacheConfig,
  ClassConfig,
  DegradeConfig,
  GateName,
  GatesConfig,
  GatewayConfig,
  HealthConfig,
  LadderConfig,
  IdempotencyConfig,
  JournalConfig,
  PlacementConfig,
  PreemptionConfig,
  RetryConfig,
  RumConfig,
  SchedulerConfig,
  ServerConfig,
  SignalsConfig,
  StateConfig,
  SurvivalConfig,
  TimeoutsConfig,
  TracingConfig,
  WorkProfile,
} from './types.ts';

/** Memory that one waiting request takes beyond its body, with the connection that holds it. Measured, rounded up. */
const WAITING_TASK_BYTES = 24 * 1024;
/** Part of the memory limit that waiting requests may take. */
const WAITING_MEMORY_RATIO = 0.5;
/** Part of the memory limit that waiting bodies may take. */
const BODY_MEMORY_RATIO = 0.25;

/** Most important first. Weights 8 : 2 : 1; floors below what the weights give, so that they bind only when changed. */
export const DEFAULT_CLASSES: readonly ClassConfig[] = Object.freeze([
  Object.freeze({ name: 'critical', weight: 8, shareMin: 0.3, firstByteMs: 10_000, completionMs: 60_000 }),
  Object.freeze({ name: 'normal', weight: 2, shareMin: 0.1, firstByteMs: 30_000, completionMs: 120_000 }),
  Object.freeze({ name: 'low', weight: 1, shareMin: 0.05, firstByteMs: 600_000, completionMs: 600_000 }),
]);

export const DEFAULT_CLASS = 'normal';

/** Work of a request to a model of which nothing is known yet; learned from completions afterwards. */
export const DEFAULT_PROFILE: WorkProfile = Object.freeze({ kind: 'generic', meanMs: 1_000 });

/** Bounds that follow the memory limit; without one (0) the plain defaults. */
export function defaultBounds(memoryLimitBytes: Bytes = 0): BoundsConfig {
  const tasksMax = defaultOf('bounds.tasksMax');
  const bytesMax = defaultOf('bounds.bytesMax');
  const limited = memoryLimitBytes > 0;
  return Object.freeze({
    tasksMax: limited
      ? Math.max(
          1,
          Math.min(tasksMax, Math.floor((memoryLimitBytes * WAITING_MEMORY_RATIO) / WAITING_TASK_BYTES)),
        )
      : tasksMax,
    bytesMax: limited ? Math.min(bytesMax, Math.floor(memoryLimitBytes * BODY_MEMORY_RATIO)) : bytesMax,
    workMsMax: defaultOf('bounds.workMsMax'),
    classShareMax: defaultOf('bounds.classShareMax'),
    tenantShareMax: defaultOf('bounds.tenantShareMax'),
  });
}

export const DEFAULT_ADMISSION: AdmissionConfig = Object.freeze({
  flowWaitMsMax: defaultOf('admission.flowWaitMsMax'),
  flowWaitDeadlineShare: defaultOf('admission.flowWaitDeadlineShare'),
  refusedShareMax: defaultOf('admission.refusedShareMax'),
  deadlineMsMin: defaultOf('admission.deadlineMsMin'),
  deadlineMsMax: defaultOf('admission.deadlineMsMax'),
  serviceTimesMin: defaultOf('admission.serviceTimesMin'),
  marginMin: defaultOf('admission.marginMin'),
  marginMax: defaultOf('admission.marginMax'),
  crowdedMarginMax: defaultOf('admission.crowdedMarginMax'),
});

export const DEFAULT_PLACEMENT: PlacementConfig = Object.freeze({
  heldMax: defaultOf('placement.heldMax'),
  nearTieRatio: defaultOf('placement.nearTieRatio'),
  drainMsMax: defaultOf('placement.drainMsMax'),
  healthMin: defaultOf('placement.healthMin'),
  exploreEveryMs: defaultOf('placement.exploreEveryMs'),
  swapMs: defaultOf('placement.swapMs'),
  cacheUseMax: defaultOf('placement.cacheUseMax'),
  cacheUseResume: defaultOf('placement.cacheUseResume'),
  slotsDefault: defaultOf('placement.slotsDefault'),
  batchSlotsMax: defaultOf('placement.batchSlotsMax'),
  prefixBlockBytes: defaultOf('placement.prefixBlockBytes'),
});

export const DEFAULT_HEALTH: HealthConfig = Object.freeze({
  heartbeatMs: defaultOf('health.heartbeatMs'),
  suspectAfterMs: defaultOf('health.suspectAfterMs'),
  reconcileMs: defaultOf('health.reconcileMs'),
  suspectLeaseMs: defaultOf('health.suspectLeaseMs'),
  ejectMs: defaultOf('health.ejectMs'),
  ejectMsMax: defaultOf('health.ejectMsMax'),
  refusedMs: defaultOf('health.refusedMs'),
  slowStartTasks: defaultOf('health.slowStartTasks'),
});

export const DEFAULT_RETRY: RetryConfig = Object.freeze({
  attemptsMax: defaultOf('retry.attemptsMax'),
  budgetRatio: defaultOf('retry.budgetRatio'),
  budgetReserve: defaultOf('retry.budgetReserve'),
});

export const DEFAULT_PREEMPTION: PreemptionConfig = Object.freeze({
  budgetRatio: defaultOf('preemption.budgetRatio'),
  budgetReserve: defaultOf('preemption.budgetReserve'),
});

/** All classes but the first: who may not wait may not be put off with less either. */
export function defaultDegrade(classes: readonly ClassConfig[]): DegradeConfig {
  return Object.freeze({
    classes: Object.freeze(classes.slice(1).map((one) => one.name)),
    flowWaitTimes: defaultOf('degrade.flowWaitTimes'),
  });
}

export const DEFAULT_TIMEOUTS: TimeoutsConfig = Object.freeze({
  safetyFactor: defaultOf('timeouts.safetyFactor'),
  firstByteMsMin: defaultOf('timeouts.firstByteMsMin'),
  idleMsMin: defaultOf('timeouts.idleMsMin'),
  coldMs: defaultOf('timeouts.coldMs'),
});

/** Every gate is on: what is not configured refuses nothing. */
export const DEFAULT_GATES: GatesConfig = Object.freeze({
  'flow-wait': 'on',
  limits: 'on',
  'retry-shed': 'on',
  breaker: 'on',
  bulkhead: 'on',
  concurrency: 'on',
  timeouts: 'on',
  ladder: 'on',
  preemption: 'on',
});

export const DEFAULT_LADDER: LadderConfig = Object.freeze({
  memoryUseMax: defaultOf('ladder.memoryUseMax'),
  memoryUseResume: defaultOf('ladder.memoryUseResume'),
  memoryMs: defaultOf('ladder.memoryMs'),
  queueRatioMax: defaultOf('ladder.queueRatioMax'),
  depthMax: defaultOf('ladder.depthMax'),
  queueMs: defaultOf('ladder.queueMs'),
  queueResumeRatio: defaultOf('ladder.queueResumeRatio'),
  waitShare: defaultOf('ladder.waitShare'),
  missRatioMax: defaultOf('ladder.missRatioMax'),
  missRatioResume: defaultOf('ladder.missRatioResume'),
  calmMs: defaultOf('ladder.calmMs'),
  leaseMs: defaultOf('ladder.leaseMs'),
  criticalOnlyMs: defaultOf('ladder.criticalOnlyMs'),
});

export const GATE_NAMES: readonly GateName[] = Object.freeze(Object.keys(DEFAULT_GATES) as GateName[]);

export const DEFAULT_SERVER: ServerConfig = Object.freeze({
  host: '127.0.0.1',
  port: defaultOf('server.port'),
  headerBytesMax: defaultOf('server.headerBytesMax'),
  bodyBytesMax: defaultOf('server.bodyBytesMax'),
  connectionsMax: defaultOf('server.connectionsMax'),
  headersMs: defaultOf('server.headersMs'),
  requestMs: defaultOf('server.requestMs'),
  earlyCommitMs: defaultOf('server.earlyCommitMs'),
  keepAliveCommentMs: defaultOf('server.keepAliveCommentMs'),
  spoolBytesMax: defaultOf('server.spoolBytesMax'),
  spoolBytesTotalMax: defaultOf('server.spoolBytesTotalMax'),
  stallMs: defaultOf('server.stallMs'),
  connectMs: defaultOf('server.connectMs'),
  nodeIdleMs: defaultOf('server.nodeIdleMs'),
  drainMs: defaultOf('server.drainMs'),
  overloadStatus: 429,
});

export const DEFAULT_SURVIVAL: SurvivalConfig = Object.freeze({
  loopLagMs: defaultOf('survival.loopLagMs'),
  heapRatio: defaultOf('survival.heapRatio'),
  descriptorsRatio: defaultOf('survival.descriptorsRatio'),
});

export const DEFAULT_CACHE: CacheConfig = Object.freeze({
  mode: 'degrade',
  bytesMax: defaultOf('cache.bytesMax'),
  entryBytesMax: defaultOf('cache.entryBytesMax'),
  ttlMs: defaultOf('cache.ttlMs'),
  compareEvery: defaultOf('cache.compareEvery'),
});

export const DEFAULT_IDEMPOTENCY: IdempotencyConfig = Object.freeze({
  entriesMax: defaultOf('idempotency.entriesMax'),
  answerBytesMax: defaultOf('idempotency.answerBytesMax'),
  bytesTotalMax: defaultOf('idempotency.bytesTotalMax'),
  ttlMs: defaultOf('idempotency.ttlMs'),
  keyCharsMax: defaultOf('idempotency.keyCharsMax'),
  joinersMax: defaultOf('idempotency.joinersMax'),
});

export const DEFAULT_TRACING: TracingConfig = Object.freeze({
  endpoint: '',
  sampleRatio: defaultOf('tracing.sampleRatio'),
  queueSpansMax: defaultOf('tracing.queueSpansMax'),
  exportMs: defaultOf('tracing.exportMs'),
  timeoutMs: defaultOf('tracing.timeoutMs'),
  serviceName: 'spillway',
  headers: Object.freeze({}),
});

export const DEFAULT_RUM: RumConfig = Object.freeze({
  enabled: false,
  ratePerS: defaultOf('rum.ratePerS'),
  tenantRatePerS: defaultOf('rum.tenantRatePerS'),
  tokenMs: defaultOf('rum.tokenMs'),
  originsAllowed: Object.freeze([]),
});

/** In memory; the command line passes a folder. */
export const DEFAULT_STATE: StateConfig = Object.freeze({ folder: '' });

export const DEFAULT_JOURNAL: JournalConfig = Object.freeze({
  folder: '',
  segmentBytesMax: defaultOf('journal.segmentBytesMax'),
  bytesMax: defaultOf('journal.bytesMax'),
});

export const DEFAULT_SIGNALS: SignalsConfig = Object.freeze({ sampleMs: defaultOf('signals.sampleMs') });

/** Sections may be given in part: the rest is filled with defaults. */
export interface SchedulerOverrides extends Partial<Omit<SchedulerConfig, SchedulerSection>> {
  readonly bounds?: Partial<BoundsConfig>;
  readonly admission?: Partial<AdmissionConfig>;
  readonly placement?: Partial<PlacementConfig>;
  readonly health?: Partial<HealthConfig>;
  readonly retry?: Partial<RetryConfig>;
  readonly preemption?: Partial<PreemptionConfig>;
  readonly timeouts?: Partial<TimeoutsConfig>;
  readonly gates?: Partial<GatesConfig>;
  readonly degrade?: Partial<DegradeConfig>;
  readonly ladder?: Partial<LadderConfig>;
}

type SchedulerSection =
  | 'bounds'
  | 'admission'
  | 'placement'
  | 'health'
  | 'retry'
  | 'preemption'
  | 'timeouts'
  | 'gates'
  | 'degrade'
  | 'ladder';

export interface GatewayOverrides extends Partial<Pick<GatewayConfig, 'tenants' | 'nodes'>> {
  readonly scheduler?: SchedulerOverrides;
  readonly server?: Partial<ServerConfig>;
  readonly cache?: Partial<CacheConfig>;
  readonly idempotency?: Partial<IdempotencyConfig>;
  readonly survival?: Partial<SurvivalConfig>;
  readonly tracing?: Partial<TracingConfig>;
  readonly rum?: Partial<RumConfig>;
  readonly state?: Partial<StateConfig>;
  readonly journal?: Partial<JournalConfig>;
  readonly signals?: Partial<SignalsConfig>;
}

/**
 * A complete scheduler configuration: defaults with `overrides` on top. Nothing is checked here; files and users go
 * through `resolveConfig`.
 */
export function defaultSchedulerConfig(overrides: SchedulerOverrides = {}): SchedulerConfig {
  return Object.freeze({
    policy: 'spillway',
    seed: defaultOf('seed'),
    classes: DEFAULT_CLASSES,
    defaultClass: DEFAULT_CLASS,
    models: [],
    groups: [],
    tenantWeights: [],
    tenantLimitsOwn: [],
    ...overrides,
    bounds: Object.freeze({ ...defaultBounds(), ...overrides.bounds }),
    admission: Object.freeze({ ...DEFAULT_ADMISSION, ...overrides.admission }),
    placement: Object.freeze({ ...DEFAULT_PLACEMENT, ...overrides.placement }),
    health: Object.freeze({ ...DEFAULT_HEALTH, ...overrides.health }),
    retry: Object.freeze({ ...DEFAULT_RETRY, ...overrides.retry }),
    preemption: Object.freeze({ ...DEFAULT_PREEMPTION, ...overrides.preemption }),
    timeouts: Object.freeze({ ...DEFAULT_TIMEOUTS, ...overrides.timeouts }),
    gates: Object.freeze({ ...DEFAULT_GATES, ...overrides.gates }),
    degrade: Object.freeze({
      ...defaultDegrade(overrides.classes ?? DEFAULT_CLASSES),
      ...overrides.degrade,
    }),
    ladder: Object.freeze({ ...DEFAULT_LADDER, ...overrides.ladder }),
  });
}

/** A complete gateway configuration: defaults with `overrides` on top, unchecked as above. */
export function defaultGatewayConfig(overrides: GatewayOverrides = {}): GatewayConfig {
  return Object.freeze({
    scheduler: defaultSchedulerConfig(overrides.scheduler),
    server: Object.freeze({ ...DEFAULT_SERVER, ...overrides.server }),
    cache: Object.freeze({ ...DEFAULT_CACHE, ...overrides.cache }),
    idempotency: Object.freeze({ ...DEFAULT_IDEMPOTENCY, ...overrides.idempotency }),
    survival: Object.freeze({ ...DEFAULT_SURVIVAL, ...overrides.survival }),
    tracing: Object.freeze({ ...DEFAULT_TRACING, ...overrides.tracing }),
    rum: Object.freeze({ ...DEFAULT_RUM, ...overrides.rum }),
    state: Object.freeze({ ...DEFAULT_STATE, ...overrides.state }),
    journal: Object.freeze({ ...DEFAULT_JOURNAL, ...overrides.journal }),
    signals: Object.freeze({ ...DEFAULT_SIGNALS, ...overrides.signals }),
    tenants: overrides.tenants ?? [],
    nodes: overrides.nodes ?? [],
  });
}
