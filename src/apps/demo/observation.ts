/**
 * What goes on beside the load: the frames of the live view, the gateway's memory, and the one event of the plan, the
 * node that throttles in the middle of the spike.
 */
import type { Bytes, DurationMs } from '../../base/units.ts';
import type { NodeTruth } from '../../emulator/index.ts';
import type { SpeedSpan } from './capacity.ts';
import { setFaults, truthOf } from './fleet-control.ts';
import type { GatewayWatch, NodeReading, QueueReading } from './gateway-watch.ts';
import type { LoadTick } from './load.ts';
import { type DemoPlan, lastArrivalMs, spikeEndMs, spikeStartMs } from './plan.ts';
import { memoryOf } from './processes.ts';
import { longer, NO_STALL, type Stall, type StallWatch, watchStalls } from './stall-watch.ts';
import type { View } from './view.ts';

const FRAME_MS = 500;

export interface Observation {
  start(): void;
  tick(tick: LoadTick): void;
  stop(): Promise<void>;
  peakRssBytes(): Bytes;
  /** The longest of the gateway, as it says itself, and of this process. */
  stalls(): { readonly gateway: Stall; readonly view: Stall };
  /** The spike as spans of constant true speed: before and after the throttle. */
  spans(): SpeedSpan[];
}

export interface Observed {
  readonly plan: DemoPlan;
  readonly policy: string;
  readonly view: View;
  readonly watch: GatewayWatch;
  readonly gatewayPid: number;
  readonly controlUrl: string;
}

const NO_TICK: LoadTick = {
  users: 0,
  ended: { served: 0, refused: 0, failed: 0, cancelled: 0 },
  attempts: 0,
  refusedAttempts: 0,
  outstanding: 0,
  untypedErrors: 0,
  embeddingServed: 0,
};

interface Scene {
  readonly observed: Observed;
  startedAt: DurationMs;
  timer: NodeJS.Timeout | undefined;
  throttle: Promise<void> | undefined;
  throttledAtMs: DurationMs;
  truthBefore: readonly NodeTruth[];
  truthAfter: readonly NodeTruth[];
  latest: LoadTick;
  shown: LoadTick;
  shownAt: DurationMs;
  queue: QueueReading | undefined;
  nodes: readonly NodeReading[];
  peakRssBytes: Bytes;
  stallWatch: StallWatch | undefined;
  gatewayStall: Stall;
  isReading: boolean;
}

export function observe(observed: Observed): Observation {
  const { plan } = observed;
  const scene: Scene = {
    observed,
    startedAt: 0,
    timer: undefined,
    throttle: undefined,
    throttledAtMs: (spikeStartMs(plan) + spikeEndMs(plan)) / 2,
    truthBefore: [],
    truthAfter: [],
    latest: NO_TICK,
    shown: NO_TICK,
    shownAt: 0,
    queue: undefined,
    nodes: [],
    peakRssBytes: 0,
    stallWatch: undefined,
    gatewayStall: NO_STALL,
    isReading: false,
  };
  return {
    start() {
      scene.startedAt = performance.now();
      scene.shownAt = scene.startedAt;
      scene.stallWatch = watchStalls();
      scene.timer = setInterval(() => void frame(scene), FRAME_MS);
    },
    tick(tick) {
      scene.latest = tick;
    },
    async stop() {
      clearInterval(scene.timer);
      scene.stallWatch?.stop();
      await scene.throttle;
    },
    peakRssBytes: () => scene.peakRssBytes,
    stalls: () => ({ gateway: scene.gatewayStall, view: scene.stallWatch?.longest() ?? NO_STALL }),
    spans: () => [
      { durationMs: scene.throttledAtMs - spikeStartMs(plan), nodes: scene.truthBefore },
      { durationMs: spikeEndMs(plan) - scene.throttledAtMs, nodes: scene.truthAfter },
    ],
  };
}

async function frame(scene: Scene): Promise<void> {
  const { plan, policy, view, gatewayPid, watch } = scene.observed;
  const now = performance.now();
  const elapsedMs = now - scene.startedAt;
  if (elapsedMs >= scene.throttledAtMs) scene.throttle ??= turnSlow(scene);
  const memory = memoryOf(gatewayPid);
  scene.peakRssBytes = Math.max(scene.peakRssBytes, memory.rssBytes, memory.peakRssBytes);
  if (scene.isReading) return;
  scene.isReading = true;
  const [queue, nodes, lagMs] = await Promise.all([watch.queue(), watch.nodes(), watch.loopLagMaxMs()]);
  scene.isReading = false;
  scene.gatewayStall = longer(scene.gatewayStall, { longestMs: lagMs ?? 0, atMs: elapsedMs });
  scene.queue = queue ?? scene.queue;
  scene.nodes = nodes ?? scene.nodes;
  const tick = scene.latest;
  view.show({
    title: policy,
    phase: phaseAt(plan, elapsedMs),
    elapsedMs,
    totalMs: lastArrivalMs(plan),
    tick,
    before: scene.shown,
    betweenMs: now - scene.shownAt,
    queue: scene.queue,
    nodes: scene.nodes,
    rssBytes: memory.rssBytes,
  });
  scene.shown = tick;
  scene.shownAt = now;
}

async function turnSlow(scene: Scene): Promise<void> {
  const { controlUrl, plan } = scene.observed;
  scene.truthBefore = await truthOf(controlUrl);
  await setFaults(controlUrl, plan.throttle.nodeId, { slowFactor: plan.throttle.factor });
  scene.throttledAtMs = performance.now() - scene.startedAt;
  scene.truthAfter = await truthOf(controlUrl);
}

function phaseAt(plan: DemoPlan, elapsedMs: DurationMs): string {
  if (elapsedMs < spikeStartMs(plan)) return 'calm: 35 % of capacity';
  if (elapsedMs < spikeEndMs(plan)) return 'SPIKE: twelve times that';
  return 'after the spike';
}
