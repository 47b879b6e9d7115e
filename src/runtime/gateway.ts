/**
 * The gateway's composition: one scheduler, one loop, the table of requests, the fleet, and the order in which all
 * of it starts and stops.
 *
 * Start: the registry is read and every known node is told to the scheduler before `createGateway` resolves, so the
 * first connection finds them. Stop: not ready, queued requests refused, running ones go on until the drain limit,
 * what is left is cut, transport ended, registry closed last.
 */
import { lookup } from 'node:dns/promises';
import { type MonoUs, US_PER_S } from '../base/units.ts';
import type { GatewayConfig } from '../core/config/types.ts';
import { causeText, type FailureCause, FailureCauses } from '../core/ledgers/index.ts';
import type { Scheduler } from '../core/scheduler/contract.ts';
import type { OutsideSample } from '../core/signals/index.ts';
import type { DeviceTelemetry } from '../ports/device-telemetry.ts';
import type { EngineDriver } from '../ports/engine-driver.ts';
import type { UserSideSample } from '../core/signals/user-side.ts';
import type { NodeTransport } from '../ports/node-transport.ts';
import type { RegistryStore } from '../ports/registry-store.ts';
import { createSystemClock, type RuntimeClock } from './clock.ts';
import { mergeConfig } from './config-change.ts';
import type { Gateway } from './contract.ts';
import { Dispatcher } from './dispatcher.ts';
import type { EffectPerformer } from './effect-buffer.ts';
import { EventLoop } from './event-loop.ts';
import { createFleet } from './fleet/fleet.ts';
import type { GivenNode } from './fleet/membership.ts';
import { createModelNames } from './fleet/model-names.ts';
import type { NameResolver } from './fleet/node-url.ts';
import { JournalRecorder, type JournalOptions } from './journal/journal-recorder.ts';
import { decisionsView, decisionView } from './journal/decision-view.ts';
import { Recording } from './journal/recording.ts';
import { type RuntimeLog, reasonOf, SILENT_LOG } from './log.ts';
import { type SignalsWatch, watchSignals } from './signals-watch.ts';
import { isLive, TaskTable, viewRow } from './task-table.ts';
import { TenantUsage } from './tenant-usage.ts';

/** Time for attempts that were cut at the drain limit to report their end. */
const CUT_GRACE_MS = 1_000;
/** Decisions that are told of one request: the last ones. */
const DECISIONS_PER_REQUEST_MAX = 64;

export interface GatewayOptions {
  readonly config: GatewayConfig;
  readonly scheduler: Scheduler;
  readonly store: RegistryStore;
  readonly transport: NodeTransport;
  readonly drivers: readonly EngineDriver[];
  /** Asks hosts about their accelerators, for nodes that name such a page. */
  readonly telemetry?: DeviceTelemetry;
  /** Nodes that are not in the configuration: from the command line, or found on this machine. */
  readonly givenNodes?: readonly GivenNode[];
  /** Keeps a journal of everything that happens to the scheduler. */
  readonly journal?: JournalOptions | undefined;
  readonly clock?: RuntimeClock;
  readonly log?: RuntimeLog;
  readonly resolveName?: NameResolver;
  /** What clients say they saw. */
  readonly userSide?: (now: MonoUs) => UserSideSample | undefined;
}

/** Resolves when every known node has been told to the scheduler; rejects when the registry cannot be read. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const parts = assemble(options);
  const configured = options.config.nodes.map((node): GivenNode => ({ node, source: 'config' }));
  await parts.fleet.load([...(options.givenNodes ?? []), ...configured]);
  parts.state.ready = true;
  return gatewayOf(options, parts);
}

interface Parts {
  readonly clock: RuntimeClock;
  readonly log: RuntimeLog;
  readonly loop: EventLoop;
  readonly table: TaskTable;
  readonly dispatcher: Dispatcher;
  readonly usage: TenantUsage;
  readonly recording: Recording;
  readonly fleet: ReturnType<typeof createFleet>;
  readonly names: ReturnType<typeof createModelNames>;
  readonly state: GatewayState;
  readonly signals: SignalsWatch;
  readonly causes: FailureCauses;
}

interface GatewayState {
  config: GatewayConfig;
  ready: boolean;
  shedClasses: number;
  stopping: Promise<void> | undefined;
  onIdle: () => void;
}

function assemble(options: GatewayOptions): Parts {
  const clock = options.clock ?? createSystemClock();
  const log = options.log ?? SILENT_LOG;
  const state: GatewayState = {
    config: options.config,
    ready: false,
    shedClasses: 0,
    stopping: undefined,
    onIdle: () => {},
  };
  const names = createModelNames(options.config.scheduler.models);
  const recording = recordingOf(options, clock);
  const usage = new TenantUsage(clock.wallMs());
  const causes = new FailureCauses();
  const table = new TaskTable(usage);
  const fleet = createFleet({
    scheduler: options.scheduler,
    store: options.store,
    transport: options.transport,
    drivers: options.drivers,
    ...(options.telemetry === undefined ? {} : { telemetry: options.telemetry }),
    clock,
    log,
    names,
    reconcileMs: () => state.config.scheduler.health.reconcileMs,
    resolveName: options.resolveName ?? resolveByDns,
    apply: (event) => loop.applyNow(event),
  });
  const dispatcher = new Dispatcher({
    table,
    usage,
    clock,
    nodes: fleet,
    log,
    silence: (taskId) => options.scheduler.attemptLimits(taskId),
    fingerprintAsked: (taskId, fingerprint) => recording.fingerprint(taskId, fingerprint),
    onIdle: () => state.onIdle(),
  });
  const performer: EffectPerformer = {
    admitted: (taskId) => dispatcher.admitted(taskId),
    assign: (taskId, nodeId, attempt) => dispatcher.assign(taskId, nodeId, attempt),
    degraded: (taskId, step) => dispatcher.degraded(taskId, step),
    abort: (taskId) => dispatcher.abort(taskId),
    outcome: (taskId, outcome) => dispatcher.outcome(taskId, outcome),
    nodeState: (nodeId, nodeState) => fleet.nodeState(nodeId, nodeState),
    nodeDrained: (nodeId) => fleet.nodeDrained(nodeId),
  };
  const loop = new EventLoop(options.scheduler, clock, { performer, recorder: recording });
  dispatcher.tie(loop);
  const signals = watchSignals({
    scheduler: options.scheduler,
    clock,
    sampleMs: options.config.signals.sampleMs,
    outside() {
      const userSide = options.userSide?.(clock.nowUs());
      return {
        staleReadings: fleet.staleReadings(),
        hosts: fleet.lackingHosts(),
        failures: failuresSample(causes.rows()),
        ...connectionsOf(options.transport),
        ...(userSide === undefined ? {} : { userSide }),
      };
    },
  });
  return { clock, log, loop, table, dispatcher, usage, recording, fleet, names, state, signals, causes };
}

function recordingOf({ scheduler, config, journal }: GatewayOptions, clock: RuntimeClock): Recording {
  const start = { clock, config: config.scheduler };
  return new Recording(
    scheduler,
    journal === undefined ? undefined : new JournalRecorder(journal, scheduler, start),
  );
}

function failuresSample(causes: readonly FailureCause[]): NonNullable<OutsideSample['failures']> {
  return causes.map((cause) => ({ id: cause.id, cause: causeText(cause), count: cause.count }));
}

function connectionsOf(transport: NodeTransport): Pick<OutsideSample, 'connections'> {
  const connections = transport.connections?.();
  return connections === undefined ? {} : { connections };
}

async function resolveByDns(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true });
  return found.map((entry) => entry.address);
}

function gatewayOf(options: GatewayOptions, parts: Parts): Gateway {
  const { scheduler } = options;
  const { clock, log, loop, table, dispatcher, usage, recording, fleet, names, state, signals, causes } =
    parts;
  const now = (): MonoUs => clock.nowUs();
  // One for all decisions, so that each is told with the same instant whenever somebody asks.
  const startedAt = { monoUs: now(), wallMs: clock.wallMs() };
  return {
    get config() {
      return state.config;
    },
    get ready() {
      return state.ready;
    },
    now,
    submit: (spec, listener) => dispatcher.submit(spec, listener),
    noteRefused: (refusal) => table.noteRefused(refusal, now()),
    noteAnswered: (answer) => table.noteAnswered(answer, now()),
    nextId() {
      const taskId = table.nextId();
      return { taskId, publicId: table.publicId(taskId) };
    },
    noteJoined: (taskId, end) => table.noteJoined(taskId, end, now()),
    cancel: (taskId) => dispatcher.cancel(taskId),
    attemptSent: (taskId) => dispatcher.attemptSent(taskId),
    attemptFirstByte: (taskId) => dispatcher.attemptFirstByte(taskId),
    attemptEnded: (taskId, result, attempt) => dispatcher.attemptEnded(taskId, result, attempt),
    estimate: (model, shape) => scheduler.estimate(model, shape),
    keepsPrompts: (model) => scheduler.keepsPrompts(model),
    learn(model, shape, usage) {
      recording.learn(model, shape, usage);
      scheduler.learn(model, shape, usage);
    },
    classDeadlineUs: (className, stream) => scheduler.classDeadlineUs(className, stream),
    resolveModel: (name) => names.resolve(name),
    models: () => names.list(),
    nodes: () => fleet.rows(),
    node: (nodeId) => fleet.row(nodeId),
    register: (node, source, bearer) => fleet.register(node, source, bearer),
    heartbeat: (nodeId, bearer, change) => fleet.heartbeat(nodeId, bearer, change),
    setCordoned: (nodeId, cordoned) => fleet.setCordoned(nodeId, cordoned),
    setDraining: (nodeId, draining) => fleet.setDraining(nodeId, draining),
    removeNode: (nodeId) => fleet.removeNode(nodeId),
    queue: () => scheduler.queue(now()),
    gates: () => scheduler.gates(),
    limitsOf: (tenant) => scheduler.limitsOf(tenant, now()),
    limits: () => scheduler.limits(now()),
    ladder: () => scheduler.ladder(now()),
    overrideLadder(wish) {
      if (state.config.scheduler.gates.ladder === 'off') return false;
      const seconds = wish === null ? 0 : wish.forUs / US_PER_S;
      const { stage = null, who = '', why = '' } = wish ?? {};
      log.warn({ stage, seconds, who, why }, 'The overload ladder was set by hand');
      loop.applyNow({ kind: 'ladder-override', override: wish });
      return true;
    },
    retryBudget: () => scheduler.retryBudget(now()),
    preemptions: () => scheduler.preemptions(),
    signals: () => signals.view(),
    ledgers: () => scheduler.ledgers(now()),
    noteFailure: (failure) => causes.note(failure, now()),
    failureCauses: () => causes.rows(),
    publicId: (taskId) => table.publicId(taskId),
    request(publicId) {
      const row = table.find(publicId);
      if (row === undefined) return undefined;
      const live = isLive(row) ? scheduler.explain(row.id, now()) : undefined;
      const anchor = { monoUs: now(), wallMs: clock.wallMs() };
      const rows = recording.ring.of(row.id, DECISIONS_PER_REQUEST_MAX);
      const decisions = rows.map((each) => decisionView(each, startedAt, table));
      return { ...viewRow(row, publicId, anchor, live), decisions };
    },
    decisions: (since, limit) =>
      decisionsView(recording.ring.page(since, limit), since, {
        anchor: startedAt,
        table,
      }),
    journal: () => recording.journal?.status(),
    usageOf: (tenant) => usage.of(tenant),
    requests(listed, limit) {
      const anchor = { monoUs: now(), wallMs: clock.wallMs() };
      return table.list(listed, limit).map((row) => viewRow(row, table.publicId(row.id), anchor, undefined));
    },
    accounts: () => scheduler.accounts(),
    dump: () => ({
      ready: state.ready,
      scheduler: scheduler.dump(now()),
      runtime: {
        liveRequests: table.live,
        ...dispatcher.counters(),
        ...fleet.counters(),
        journal: recording.journal?.status() ?? null,
      },
      nodes: fleet.rows(),
    }),
    setSurvival(shedClasses) {
      if (shedClasses === state.shedClasses) return;
      state.shedClasses = shedClasses;
      loop.applyNow({ kind: 'survival', shedClasses });
    },
    reconfigure(next) {
      const { config, needsRestart } = mergeConfig(state.config, next);
      state.config = config;
      names.configure(config.scheduler.models);
      loop.applyNow({ kind: 'config', config: config.scheduler });
      fleet.configure(config.nodes);
      return { needsRestart };
    },
    shutdown() {
      state.stopping ??= shutdown(options, parts);
      return state.stopping;
    },
  };
}

async function shutdown(options: GatewayOptions, parts: Parts): Promise<void> {
  const { clock, log, loop, table, dispatcher, recording, fleet, state, signals } = parts;
  state.ready = false;
  loop.applyNow({ kind: 'shutdown' });
  await idle(parts, state.config.server.drainMs);
  if (table.live > 0) {
    const cut = dispatcher.cutRunning();
    log.warn(
      { cut, drainMs: state.config.server.drainMs },
      'The drain limit is over; running requests are cut',
    );
    await idle(parts, CUT_GRACE_MS);
  }
  signals.stop();
  fleet.stop();
  await fleet.flush();
  loop.stop();
  await recording.journal?.close();
  try {
    await options.transport.shutdown();
  } catch (thrown) {
    log.error({ reason: reasonOf(thrown) }, 'The transport did not end cleanly');
  }
  await options.store.close();
  log.info({ atUs: clock.nowUs() }, 'The gateway stopped');
}

/** Resolves when no request is live, or after the limit. */
function idle(parts: Parts, limitMs: number): Promise<void> {
  const { clock, table, state } = parts;
  if (table.live === 0) return Promise.resolve();
  return new Promise((resolve) => {
    const cancel = clock.after(limitMs, resolve);
    state.onIdle = () => {
      cancel();
      resolve();
    };
  });
}
