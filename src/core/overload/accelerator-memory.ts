/**
 * How full the memory of a node's accelerators is, as far as anybody says.
 *
 * The engine's own cache use where it tells; else what the device uses beyond what the engine takes at start, over what
 * that leaves: `(device - reserved) / (1 - reserved)`. An engine that reserves 90 % by design is empty at 90 %, and
 * full at 100 %. The reserve is stated, or it is what the device used when nothing of ours ran there. Without either
 * the use is unknown, which is neither zero nor full.
 *
 * Each account is a lease: what is not told again becomes unknown. An unchanged one is told again and stays, since
 * memory that was taken in advance does not move.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';

/** Twice the interval of heartbeats. */
export const MEMORY_LEASE_US: DurationUs = 60_000_000;
/** A reserve above this leaves nothing that could be measured. */
const RESERVED_USE_MAX: Ratio = 0.99;

/** What a node's host says of its accelerators. */
export interface DeviceMemory {
  /** Used memory over all memory; of several devices the fullest. */
  readonly memoryUse: Ratio;
  /** What the engine takes at start, over all memory; absent when nobody says. */
  readonly reservedUse?: Ratio;
}

export class AcceleratorMemory {
  #cacheUse: Ratio = 0;
  #cacheUntil: MonoUs = Number.NEGATIVE_INFINITY;
  #deviceUse: Ratio = 0;
  #deviceUntil: MonoUs = Number.NEGATIVE_INFINITY;
  #statedUse: Ratio | undefined;
  #restingUse: Ratio | undefined;

  /** The engine's account of its cache; undefined when it gives none any more. */
  tellCache(cacheUse: Ratio | undefined, now: MonoUs): void {
    if (cacheUse !== undefined && isRatio(cacheUse)) {
      this.#cacheUse = cacheUse;
      this.#cacheUntil = now + MEMORY_LEASE_US;
    } else this.#cacheUntil = Number.NEGATIVE_INFINITY;
  }

  tellDevice(device: DeviceMemory, isResting: boolean, now: MonoUs): void {
    if (!isRatio(device.memoryUse)) return;
    this.#deviceUse = device.memoryUse;
    this.#deviceUntil = now + MEMORY_LEASE_US;
    const { reservedUse } = device;
    if (reservedUse !== undefined && isRatio(reservedUse)) this.#statedUse = reservedUse;
    if (isResting) this.#restingUse = device.memoryUse;
  }

  /** Used memory of the device over all of it, the engine's reserve included; undefined when nobody tells it now. */
  deviceUseAt(now: MonoUs): Ratio | undefined {
    return now < this.#deviceUntil ? this.#deviceUse : undefined;
  }

  /** From 0 to 1, or undefined when it is unknown now. */
  useAt(now: MonoUs): Ratio | undefined {
    if (now < this.#cacheUntil) return this.#cacheUse;
    const reserved = this.#statedUse ?? this.#restingUse;
    if (now >= this.#deviceUntil || reserved === undefined) return undefined;
    const floor = Math.min(reserved, RESERVED_USE_MAX);
    return Math.max(0, (this.#deviceUse - floor) / (1 - floor));
  }
}

function isRatio(value: number): boolean {
  return value >= 0 && value <= 1;
}
