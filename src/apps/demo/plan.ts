/**
 * The scenario of the demo: an outage as it happened to others, shortened by the speed-up.
 *
 * A fleet of 20 T4-class and 10 A100-class nodes (emulated) lives at 35 % of its capacity; then demand rises to twelve
 * times that for what would be 45 minutes, and falls back. All durations of the scenario are divided by the speed-up:
 * service times, deadlines, think times, and the gateway's own time bounds.
 */
import type { ClassName, DurationMs, Ratio } from '../../base/units.ts';
import {
  type EmulatedNodeInput,
  type Hardware,
  IMAGE_MODELS,
  type ImageSize,
  imageServiceMs,
} from '../../emulator/index.ts';
import { meanOverSizes } from './sizes.ts';

export const IMAGE_MODEL_ID = 'emulated-sd';
/** A distilled model, as they are made for few steps: four instead of thirty. Offered by the small cards. */
export const TURBO_MODEL_ID = 'emulated-sd-turbo';
export const TURBO_STEPS = 4;
export const EMBEDDING_MODEL_ID = 'embeddings-en';

export interface DemoClass {
  readonly name: ClassName;
  readonly share: number;
  /** Wall time, before the rule of four service times. */
  readonly deadlineMs: DurationMs;
}

export interface DemoPlan {
  readonly speedup: number;
  readonly seed: number;
  readonly nodes: readonly EmulatedNodeInput[];
  readonly classes: readonly DemoClass[];
  /** True speed of the fastest node, relative to an A100: deadlines are never below four of its service times. */
  readonly fastestSpeed: number;
  /** New users per second in calm and in the spike. */
  readonly calmPerS: number;
  readonly spikePerS: number;
  readonly beforeMs: DurationMs;
  readonly spikeMs: DurationMs;
  readonly afterMs: DurationMs;
  /** Users still waiting this long after the last arrival hang up. */
  readonly drainMs: DurationMs;
  /** One node turns slower in the middle of the spike. */
  readonly throttle: { readonly nodeId: string; readonly factor: number };
  /** Real embedding requests per second, throughout; 0 without embedding nodes. */
  readonly embeddingPerS: number;
  /** Of the low users: how many take less than they asked for, and how many of those ask for one of the same few pictures. */
  readonly consentShare: Ratio;
  readonly favouriteShare: Ratio;
  /** Time for a person to click again, wall, lower and upper bound. */
  readonly thinkMs: readonly [DurationMs, DurationMs];
}

const SPEEDUP = 36;
const LEVEL = 0.35;
const SPIKE_TIMES = 12;
const SERVICE_TIMES_MIN = 4;
const THINK_EMULATED_MS: readonly [DurationMs, DurationMs] = [1_000, 5_000];

/** Deadlines as they would be, before the speed-up. */
const CLASSES: readonly DemoClass[] = [
  { name: 'critical', share: 0.1, deadlineMs: 30_000 },
  { name: 'normal', share: 0.6, deadlineMs: 60_000 },
  { name: 'low', share: 0.3, deadlineMs: 600_000 },
];
/** Of the scenario and of its short form, at the speed-up of the demo. */
const TIMES = { beforeMs: 12_000, spikeMs: 75_000, afterMs: 17_000, drainMs: 2_000 };
const QUICK_TIMES = { beforeMs: 1_500, spikeMs: 3_000, afterMs: 2_000, drainMs: 1_500 };

export interface PlanOptions {
  /** A few seconds and a few nodes, for tests: the same road, no verdict on overload. */
  readonly quick: boolean;
  readonly seed: number;
  /** Emulated time over wall time; 36 unless said. With less the same scenario takes longer. */
  readonly speedup?: number;
}

export function createPlan({ quick, seed, speedup = SPEEDUP }: PlanOptions): DemoPlan {
  const nodes = quick ? fleet(4, 2) : fleet(20, 10);
  const capacityPerS = capacityOf(nodes) * speedup;
  const times = quick ? QUICK_TIMES : TIMES;
  const longer = SPEEDUP / speedup;
  return {
    speedup,
    seed,
    nodes,
    classes: CLASSES.map((one) => ({ ...one, deadlineMs: one.deadlineMs / speedup })),
    fastestSpeed: Math.max(...nodes.map((node) => speedOf(node))),
    calmPerS: capacityPerS * LEVEL,
    spikePerS: capacityPerS * LEVEL * SPIKE_TIMES,
    beforeMs: times.beforeMs * longer,
    spikeMs: times.spikeMs * longer,
    afterMs: times.afterMs * longer,
    drainMs: times.drainMs * longer,
    throttle: { nodeId: quick ? 'a100-01' : 'a100-03', factor: 2 },
    embeddingPerS: 2,
    consentShare: 0.4,
    favouriteShare: 0.15,
    thinkMs: [THINK_EMULATED_MS[0] / speedup, THINK_EMULATED_MS[1] / speedup],
  };
}

/** A quarter of the nodes is twice as fast or half as fast as its hardware says. */
function fleet(t4: number, a100: number): EmulatedNodeInput[] {
  return [...group('T4', t4), ...group('A100', a100)].map((node, index) =>
    index % 4 === 1 ? { ...node, trueSpeed: index % 8 === 1 ? 2 : 0.5 } : node,
  );
}

function group(hardware: Hardware, count: number): EmulatedNodeInput[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${hardware.toLowerCase()}-${String(index + 1).padStart(2, '0')}`,
    kind: 'image' as const,
    model: IMAGE_MODEL_ID,
    statedHardware: hardware,
    trueHardware: hardware,
    ...(hardware === 'T4' ? { distilled: { model: TURBO_MODEL_ID, stepsMax: TURBO_STEPS } } : {}),
  }));
}

/** Only nodes of the fastest class compete for being the fastest. */
function speedOf(node: EmulatedNodeInput): number {
  return node.trueHardware === 'A100' ? (node.trueSpeed ?? 1) : 0;
}

/** Requests of the fitted mix per emulated second. */
function capacityOf(nodes: readonly EmulatedNodeInput[]): number {
  return nodes.reduce((sum, node) => {
    const meanMs = meanOverSizes((size) => imageServiceMs(IMAGE_MODELS[node.trueHardware], size));
    return sum + (1_000 * (node.trueSpeed ?? 1)) / meanMs;
  }, 0);
}

/** A class deadline in wall time, never below four times what the fastest node needs for this size. */
export function deadlineMsOf(plan: DemoPlan, className: DemoClass, size: ImageSize): DurationMs {
  const fastestMs = imageServiceMs(IMAGE_MODELS.A100, size) / plan.fastestSpeed / plan.speedup;
  return Math.round(Math.max(className.deadlineMs, SERVICE_TIMES_MIN * fastestMs));
}

export function spikeStartMs(plan: DemoPlan): DurationMs {
  return plan.beforeMs;
}

export function spikeEndMs(plan: DemoPlan): DurationMs {
  return plan.beforeMs + plan.spikeMs;
}

export function lastArrivalMs(plan: DemoPlan): DurationMs {
  return plan.beforeMs + plan.spikeMs + plan.afterMs;
}
