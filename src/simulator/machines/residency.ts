/**
 * Which models are in an accelerator's memory. Up to `modelsMax` fit; loading another one takes `swapUs` and puts the least
 * recently used one out. What is in use stays: where all of them are, the newcomer waits.
 */
import type { DurationUs, ModelId } from '../../base/units.ts';

interface Resident {
  readonly model: ModelId;
  users: number;
}

export interface ResidencyOptions {
  readonly modelsMax: number;
  readonly swapUs: DurationUs;
  /** Loaded at the start; as many of them as fit. */
  readonly loaded: readonly ModelId[];
}

export class Residency {
  readonly #options: ResidencyOptions;
  /** Least recently used first. */
  #residents: Resident[];
  #swaps = 0;

  constructor(options: ResidencyOptions) {
    this.#options = options;
    this.#residents = options.loaded.slice(0, options.modelsMax).map((model) => ({ model, users: 0 }));
  }

  /** Models loaded so far, those of the start aside. */
  get swaps(): number {
    return this.#swaps;
  }

  /** Begins a use: the time that loading takes, 0 where it is resident, or undefined where no place can be made. */
  acquire(model: ModelId): DurationUs | undefined {
    const known = this.#residents.findIndex((resident) => resident.model === model);
    if (known >= 0) {
      const [resident] = this.#residents.splice(known, 1) as [Resident];
      resident.users += 1;
      this.#residents.push(resident);
      return 0;
    }
    if (this.#residents.length >= this.#options.modelsMax) {
      const idle = this.#residents.findIndex((resident) => resident.users === 0);
      if (idle < 0) return undefined;
      this.#residents.splice(idle, 1);
    }
    this.#residents.push({ model, users: 1 });
    this.#swaps += 1;
    return this.#options.swapUs;
  }

  /** Ends a use. */
  release(model: ModelId): void {
    const resident = this.#residents.find((other) => other.model === model);
    if (resident !== undefined) resident.users -= 1;
  }

  /** The process died: memory is empty. */
  clear(): void {
    this.#residents = [];
  }
}
