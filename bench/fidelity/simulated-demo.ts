/**
 * The demo in virtual time: the same users at the same instants, the same nodes, the gateway's own configuration file and
 * scheduler; no sockets, no processes. What it returns has the shape of what the demo's load clients record, so that
 * both go through the same report.
 *
 * Left out, on purpose: what the gateway, the network and the clients themselves cost. That is what the comparison is for.
 */
import { HeapSlot, KeyedHeap } from '../../src/base/keyed-heap.ts';
import type { DurationMs, MonoUs, TaskId } from '../../src/base/units.ts';
import { fleetRate, type NodeSpeed } from '../../src/apps/demo/capacity.ts';
import { type DemoPolicy, gatewayConfigText } from '../../src/apps/demo/gateway-config.ts';
import {
  type DemoPlan,
  IMAGE_MODEL_ID,
  lastArrivalMs,
  spikeEndMs,
  spikeStartMs,
} from '../../src/apps/demo/plan.ts';
import type { RunMeasures, UserRecord } from '../../src/apps/demo/report.ts';
import { IMAGE_SIDE_PX, IMAGE_SIZES } from '../../src/apps/demo/sizes.ts';
import { type AttemptEnd, createUserStream, nextStep, type UserWish } from '../../src/apps/demo/users.ts';
import { resolveConfig } from '../../src/core/config/resolve.ts';
import type { SchedulerConfig } from '../../src/core/config/types.ts';
import { NO_NEEDS } from '../../src/core/request/needs.ts';
import type { Scheduler } from '../../src/core/scheduler/contract.ts';
import { createScheduler } from '../../src/core/scheduler/index.ts';
import {
  IMAGE_MODELS,
  type ImageSize,
  imageUnits,
  seededUniform,
  seedFor,
} from '../../src/emulator/index.ts';
import { lognormalFactor } from '../../src/emulator/noise.ts';
import type { Clients, ClientSink } from '../../src/simulator/clients/clients.ts';
import { SlotMachine } from '../../src/simulator/machines/slot-machine.ts';
import type { JobEnd } from '../../src/simulator/observer.ts';
import { SimNode } from '../../src/simulator/sim-node.ts';
import { Simulation } from '../../src/simulator/simulation.ts';
import { parse } from 'yaml';

/** Of a request of the demo: its body and heads. */
const REQUEST_BYTES = 400;
/** Lognormal sigma of the emulated fleet's service times. */
const NOISE_SIGMA = 0.2;
/** The gateway stretches what it tells by up to a quarter, and tells nothing beyond a minute. */
const HINT_JITTER = 0.25;
const HINT_MS_MAX = 60_000;
const HINT_MS_DEFAULT = 1_000;
const US_PER_MS = 1_000;

/** Embeddings are real in the demo and have no part here. */
type SimulatedMeasures = Pick<RunMeasures, 'users' | 'peakOutstanding' | 'capacityWorkMs'>;

export function simulateDemo(plan: DemoPlan, policy: DemoPolicy): SimulatedMeasures {
  const config = configOf(plan, policy);
  const scheduler = createScheduler(config);
  const users = new DemoUsers(plan, scheduler);
  const nodes = plan.nodes.map((node, index) => nodeOf(plan, node, index));
  const simulation = new Simulation({
    createPolicy: () => scheduler,
    nodes,
    clients: users,
    observer: {
      assigned: (job, _nodeId, now) => users.assigned(job.task.id, now),
    },
  });
  const throttleAtMs = (spikeStartMs(plan) + spikeEndMs(plan)) / 2;
  simulation.at(throttleAtMs * US_PER_MS, () => {
    const node = simulation.nodes.get(plan.throttle.nodeId) as SimNode;
    node.machine.setSpeed(1 / plan.throttle.factor, simulation.now);
    simulation.touch(node);
  });
  simulation.runUntil((lastArrivalMs(plan) + plan.drainMs) * US_PER_MS);
  users.hangUp();
  return {
    users: users.records,
    peakOutstanding: users.peakOutstanding,
    capacityWorkMs: capacityWorkMs(plan, throttleAtMs),
  };
}

function capacityWorkMs(plan: DemoPlan, throttleAtMs: DurationMs): DurationMs {
  const speeds = (isThrottled: (id: string) => boolean): NodeSpeed[] =>
    plan.nodes.map((node) => {
      const model = IMAGE_MODELS[node.trueHardware];
      const slowness = isThrottled(node.id) ? plan.throttle.factor : 1;
      const perWall = slowness / (node.trueSpeed ?? 1) / plan.speedup;
      return { fixedMs: model.fixedMs * perWall, perImageMs: model.perImageMs * perWall };
    });
  const before = fleetRate(
    plan,
    speeds(() => false),
  );
  const after = fleetRate(
    plan,
    speeds((id) => id === plan.throttle.nodeId),
  );
  return before * (throttleAtMs - spikeStartMs(plan)) + after * (spikeEndMs(plan) - throttleAtMs);
}

/** The very file that the demo's gateway is started with. */
function configOf(plan: DemoPlan, policy: DemoPolicy): SchedulerConfig {
  const imageNodes = plan.nodes.map((node, index) => ({
    id: node.id,
    url: `http://127.0.0.1:${10_000 + index}`,
    hardware: node.statedHardware,
  }));
  const text = gatewayConfigText({
    plan,
    policy,
    imageNodes,
    stateFolder: '',
    embeddingUrls: [],
    journalFolder: '',
    port: 0,
  });
  const resolved = resolveConfig(parse(text));
  if (resolved.kind === 'issues') throw new Error(`The demo's configuration: ${resolved.issues[0]?.rule}`);
  return resolved.config.scheduler;
}

function nodeOf(plan: DemoPlan, node: DemoPlan['nodes'][number], index: number): SimNode {
  const model = IMAGE_MODELS[node.trueHardware];
  const speed = (node.trueSpeed ?? 1) * plan.speedup;
  const models = node.distilled === undefined ? [IMAGE_MODEL_ID] : [IMAGE_MODEL_ID, node.distilled.model];
  return new SimNode(
    {
      spec: {
        id: node.id,
        models: models.map((name) => ({ model: name })),
        slots: 1,
        batching: false,
        hardware: node.statedHardware,
        labels: { emulated: 'yes' },
        heartbeats: false,
      },
      machine: new SlotMachine({
        slots: 1,
        serviceUs: (demand) =>
          ((model.fixedMs + model.perImageMs * (demand.kind === 'image' ? demand.units : 0)) * US_PER_MS) /
          speed,
      }),
      rttUs: 0,
      beatUs: 0,
    },
    index,
  );
}

class DemoUser {
  readonly wish: UserWish;
  readonly noise: number;
  attempts = 0;
  taskId: TaskId = 0;
  startedAt: MonoUs = 0;
  /** When it tries again, or gives the present try up; outside the agenda in between. */
  readonly slot: HeapSlot<DemoUser>;

  constructor(wish: UserWish, noise: number) {
    this.wish = wish;
    this.noise = noise;
    this.slot = new HeapSlot<DemoUser>(this, wish.index);
  }
}

/** The demo's users, by the same rules as its load clients. */
class DemoUsers implements Clients {
  readonly records: UserRecord[] = [];
  peakOutstanding = 0;
  readonly #plan: DemoPlan;
  readonly #scheduler: Scheduler;
  readonly #stream;
  readonly #thinking;
  readonly #noise;
  readonly #jitter;
  readonly #byTask: Map<TaskId, DemoUser> = new Map();
  readonly #waiting: Set<DemoUser> = new Set();
  readonly #agenda = new KeyedHeap<DemoUser>();
  #next: UserWish | undefined;
  #lastId: TaskId = 0;

  constructor(plan: DemoPlan, scheduler: Scheduler) {
    this.#plan = plan;
    this.#scheduler = scheduler;
    this.#stream = createUserStream(plan);
    this.#thinking = seededUniform(seedFor(plan.seed, 'thinking'));
    this.#noise = seededUniform(seedFor(plan.seed, 'noise'));
    this.#jitter = seededUniform(seedFor(plan.seed, 'jitter'));
    this.#next = this.#stream.next();
  }

  nextAt(): MonoUs {
    const arrivalAt =
      this.#next === undefined ? Number.POSITIVE_INFINITY : Math.round(this.#next.atMs * US_PER_MS);
    return Math.min(arrivalAt, this.#agenda.leastKey);
  }

  advance(now: MonoUs, sink: ClientSink): void {
    if (this.#agenda.leastKey <= now) {
      const user = this.#agenda.peek() as DemoUser;
      this.#agenda.remove(user.slot);
      if (this.#byTask.has(user.taskId)) this.#timeOut(user, now, sink);
      else this.#try(user, now, sink);
    } else if (this.#next !== undefined) this.#arrive(now, sink);
  }

  assigned(taskId: TaskId, now: MonoUs): void {
    const user = this.#byTask.get(taskId);
    if (user !== undefined) user.startedAt = now;
  }

  outcome(taskId: TaskId, end: JobEnd, now: MonoUs): void {
    const user = this.#byTask.get(taskId);
    if (user === undefined) return;
    this.#byTask.delete(taskId);
    if (user.slot.isInHeap) this.#agenda.remove(user.slot);
    this.#after(user, this.#endOf(user, end, now), now);
  }

  /** Who is left gives up. */
  hangUp(): void {
    const now = (lastArrivalMs(this.#plan) + this.#plan.drainMs) * US_PER_MS;
    for (const user of this.#waiting) this.#leave(user, 'cancelled', { now, serviceMs: 0 });
  }

  #arrive(now: MonoUs, sink: ClientSink): void {
    const wish = this.#next as UserWish;
    this.#next = this.#stream.next();
    const user = new DemoUser(wish, lognormalFactor(this.#noise, NOISE_SIGMA));
    this.#waiting.add(user);
    this.#try(user, now, sink);
  }

  #try(user: DemoUser, now: MonoUs, sink: ClientSink): void {
    const { wish } = user;
    const size = IMAGE_SIZES[wish.sizeIndex] as ImageSize;
    user.attempts += 1;
    user.taskId = ++this.#lastId;
    this.#byTask.set(user.taskId, user);
    this.peakOutstanding = Math.max(this.peakOutstanding, this.#byTask.size);
    const deadlineAt = now + wish.deadlineMs * US_PER_MS;
    this.#agenda.push(user.slot, deadlineAt);
    const { workUs } = this.#scheduler.estimate(IMAGE_MODEL_ID, {
      promptBytes: REQUEST_BYTES,
      outputTokensMax: 0,
      images: size.images,
      steps: size.steps,
      pixelsPerImage: IMAGE_SIDE_PX ** 2,
      statedWorkUs: 0,
    });
    sink.submit({
      task: {
        id: user.taskId,
        className: this.#plan.classes[wish.classIndex]?.name ?? '',
        tenant: 'anonymous',
        model: IMAGE_MODEL_ID,
        needs: NO_NEEDS,
        workUs,
        firstByteWorkUs: workUs,
        bytes: REQUEST_BYTES,
        deadlineAt,
        deadlineWished: true,
        stream: false,
        fingerprint: `user ${wish.index}`,
      },
      demand: { kind: 'image', units: imageUnits(size) },
      noise: user.noise,
    });
  }

  #timeOut(user: DemoUser, now: MonoUs, sink: ClientSink): void {
    this.#byTask.delete(user.taskId);
    sink.cancel(user.taskId);
    this.#after(user, { kind: 'timed-out' }, now);
  }

  #endOf(user: DemoUser, end: JobEnd, now: MonoUs): AttemptEnd {
    if (end.kind === 'served') {
      const serviceMs = (now - user.startedAt) / US_PER_MS;
      const { steps } = IMAGE_SIZES[user.wish.sizeIndex] as ImageSize;
      return { kind: 'served', serviceMs, lesser: '', steps };
    }
    if (!('hint' in end) || end.kind === 'failed') return { kind: 'failed', isTyped: true };
    const { retryable, afterUs } = end.hint;
    const estimateMs = afterUs > 0 ? Math.ceil(afterUs / US_PER_MS) : HINT_MS_DEFAULT;
    if (!retryable || estimateMs > HINT_MS_MAX) return { kind: 'refused', isFinal: true };
    const stretchedMs = estimateMs * (1 + HINT_JITTER * this.#jitter());
    return { kind: 'refused', retryAfterMs: Math.min(HINT_MS_MAX, stretchedMs), isFinal: false };
  }

  #after(user: DemoUser, end: AttemptEnd, now: MonoUs): void {
    const step = nextStep(end, {
      isPatient: user.wish.isPatient,
      attempts: user.attempts,
      thinkMs: this.#plan.thinkMs,
      uniform: this.#thinking,
    });
    const serviceMs = end.kind === 'served' ? end.serviceMs : 0;
    if (step.kind === 'end') this.#leave(user, step.as, { now, serviceMs });
    else this.#agenda.push(user.slot, now + Math.round(step.afterMs * US_PER_MS));
  }

  #leave(user: DemoUser, as: UserRecord['end'], at: { now: MonoUs; serviceMs: DurationMs }): void {
    const { wish, attempts } = user;
    this.#waiting.delete(user);
    this.records.push({
      classIndex: wish.classIndex,
      end: as,
      attempts,
      firstAtMs: wish.atMs,
      endedAtMs: at.now / US_PER_MS,
      serviceMs: at.serviceMs,
      deadlineMs: wish.deadlineMs,
      workMs: wish.workMs,
      consents: wish.consents,
      lesser: '',
      isUnmarked: false,
      told: undefined,
      trail: [],
    });
  }
}
