/**
 * What the host of a node says of its accelerators, held against what we know of our own work there. Either alone looks
 * well: a busy device is a good device, and a node without work of ours is idle. Together they tell who is wrong.
 *
 *   device-error     a fault of the hardware was reported
 *   hot              so warm that devices lower their clocks
 *   used-by-others   busy, and nothing of ours has run there for a while
 *   works-in-vain    idle, and work of ours has run there for a while
 *   shared           its engine runs more than what we sent
 *   starved          its host lacks CPU, memory or disk; see host-pressure.ts
 *   agrees           none of these
 *
 * The first that holds is told. Where one of the two sides is unknown, or began only now, there is none.
 */
import type { DurationUs, Ratio } from '../../base/units.ts';
import { type HostPressure, pressurePattern } from './host-pressure.ts';

/** What a page says of one device; absent is unknown. */
export interface AcceleratorReading {
  /** As the page names it, with the instance of a divided one: `0`, `0/3`. */
  readonly id: string;
  /** Part of the last second in which anything ran on it, and, more exactly, in which its engines computed. */
  readonly busy?: Ratio;
  readonly engineActive?: Ratio;
  /** Part of the time in which its memory moved data. */
  readonly memoryActive?: Ratio;
  readonly memoryUsedBytes?: number;
  readonly memoryFreeBytes?: number;
  readonly temperatureC?: number;
  readonly powerW?: number;
  /** Number of the last fault that its driver reported; 0 for none. */
  readonly xid?: number;
  readonly pcieReplays?: number;
}

export interface HostView {
  /** Empty: unknown. */
  readonly accelerators: readonly AcceleratorReading[];
  /** Age of that reading. */
  readonly readingAgeUs: DurationUs;
  /** Tasks of ours on these devices, over all nodes that use them, and since when there are some or there are none. */
  readonly inflight: number;
  readonly steadyUs: DurationUs;
  /** Requests that the engine says it runs, others' included; absent is unknown. */
  readonly engineRunning?: number;
  /** Tasks of ours on this node alone. */
  readonly engineInflight: number;
  /** Absent is unknown. */
  readonly pressure?: HostPressure;
}

export interface HostFinding {
  readonly kind:
    | 'device-error'
    | 'hot'
    | 'used-by-others'
    | 'works-in-vain'
    | 'shared'
    | 'starved'
    | 'agrees';
  /** One sentence for people. */
  readonly says: string;
}

/** Above this a device counts as busy, and below the other as idle: a driver that polls shows a few per cent. */
export const BUSY_MIN: Ratio = 0.8;
export const IDLE_MAX: Ratio = 0.05;
/** Where data-centre devices begin to lower their clocks, less a few degrees. */
export const HOT_C = 85;
/** Ours must have been there, or gone, for so long before the reading was taken: exporters average over seconds. */
export const SETTLED_US: DurationUs = 10_000_000;
/** An engine's account and our count are not of the same instant. */
const SHARED_MIN = 2;

/**
 * Faults of the hardware or its driver. Others (13, 31, 43, 45) usually come from a program, and the last one reported
 * stays on the page for ever. Source: NVIDIA, XID errors.
 */
const HARDWARE_XIDS: ReadonlyMap<number, string> = new Map([
  [48, 'double-bit memory error'],
  [62, 'micro-controller halted'],
  [63, 'memory page retired'],
  [64, 'memory page could not be retired'],
  [74, 'NVLink error'],
  [79, 'fallen off the bus'],
  [92, 'many single-bit memory errors'],
  [94, 'contained memory error'],
  [95, 'uncontained memory error'],
  [119, 'system processor does not answer'],
  [120, 'system processor failed'],
]);

/** Undefined where too little is known. */
export function hostFinding(view: HostView): HostFinding | undefined {
  return deviceError(view) ?? hot(view) ?? work(view);
}

function deviceError({ accelerators }: HostView): HostFinding | undefined {
  for (const { id, xid } of accelerators) {
    const what = HARDWARE_XIDS.get(xid ?? 0);
    if (what !== undefined)
      return { kind: 'device-error', says: `Device ${id} last reported XID ${xid}: ${what}` };
  }
  return undefined;
}

function hot({ accelerators }: HostView): HostFinding | undefined {
  const warmest = Math.max(
    ...accelerators.map(({ temperatureC }) => temperatureC ?? Number.NEGATIVE_INFINITY),
  );
  if (warmest < HOT_C) return undefined;
  return { kind: 'hot', says: `Its warmest device is at ${Math.round(warmest)} °C: expect it to slow down` };
}

function work(view: HostView): HostFinding | undefined {
  const { inflight, engineRunning, engineInflight } = view;
  const busy = busiest(view.accelerators);
  if (busy !== undefined) {
    const percent = `${Math.round(busy * 100)} %`;
    const isSettled = view.steadyUs - view.readingAgeUs >= SETTLED_US;
    if (inflight === 0 && busy >= BUSY_MIN) {
      const says = `Busy by its host (${percent}) but nothing of ours runs there: somebody else uses it`;
      return isSettled ? { kind: 'used-by-others', says } : undefined;
    }
    if (inflight > 0 && busy <= IDLE_MAX) {
      const says = `${inflight} of ours run there but its host is idle (${percent}): they hang, or run on no accelerator`;
      return isSettled ? { kind: 'works-in-vain', says } : undefined;
    }
  }
  if (engineRunning !== undefined && engineRunning >= engineInflight + SHARED_MIN) {
    return { kind: 'shared', says: `Its engine runs ${engineRunning}, of which ${engineInflight} are ours` };
  }
  const lack = view.pressure === undefined ? undefined : pressurePattern(view.pressure);
  if (lack !== undefined)
    return { kind: 'starved', says: `${lack.says[0]?.toUpperCase()}${lack.says.slice(1)}` };
  if (busy === undefined) return undefined;
  return {
    kind: 'agrees',
    says: `Busy by its host (${Math.round(busy * 100)} %), ${inflight} of ours run there`,
  };
}

/** Of the devices that tell it: one that computes is enough. */
export function busiest(accelerators: readonly AcceleratorReading[]): Ratio | undefined {
  let most: Ratio | undefined;
  for (const { engineActive, busy } of accelerators) {
    const one = engineActive ?? busy;
    if (one !== undefined) most = Math.max(most ?? 0, one);
  }
  return most;
}
