/**
 * What a baseline knows of a node's speed for a model: work over time of what it completed, as sums that fade by 5 % with
 * each completion. It starts from what the node was registered with (its memory), or else from the class of its hardware
 * as the node states it, which counts as one observation: as much as Spillway's own scheduler knows.
 */
import type { DurationUs, Rate, RefUs } from '../../../base/units.ts';
import { priorOf } from '../../../core/capacity/index.ts';
import type { NodeMemory } from '../../../core/scheduler/events.ts';

const FADE = 0.95;
/** Weight of a remembered rate, in observations: where sums that fade by 5 % settle. */
const OBSERVATIONS_MAX = 20;
const RATE_MIN: Rate = 1e-6;
const RATE_MAX: Rate = 1e6;

interface Sums {
  /** Before the first completion: the rate known beforehand, and how many observations it stands for. */
  readonly knownRate: Rate;
  readonly knownWeight: number;
  rate: Rate;
  workUs: number;
  timeUs: number;
}

export class Pace {
  readonly stated: Rate;
  readonly remembered: NodeMemory['rates'];
  readonly #models: Map<string, Sums> = new Map();

  constructor(hardware: string, remembered: NodeMemory['rates']) {
    this.stated = priorOf(hardware).rate;
    this.remembered = remembered.filter(({ rate }) => rate >= RATE_MIN && rate <= RATE_MAX);
  }

  /** What is known without looking at completions: what people write as a weight. */
  givenRate(model: string): Rate {
    return this.#memoryOf(model)?.rate ?? this.stated;
  }

  rate(model: string): Rate {
    return this.#models.get(model)?.rate ?? this.givenRate(model);
  }

  observe(model: string, workUs: RefUs, timeUs: DurationUs): void {
    const sums = this.#models.get(model) ?? this.#begin(model);
    const known = sums.timeUs === 0 ? sums.knownWeight * timeUs : 0;
    sums.timeUs = FADE * (sums.timeUs + known) + timeUs;
    sums.workUs = FADE * (sums.workUs + known * sums.knownRate) + workUs;
    sums.rate = Math.min(RATE_MAX, Math.max(RATE_MIN, sums.workUs / sums.timeUs));
  }

  #begin(model: string): Sums {
    const observations = this.#memoryOf(model)?.observations ?? 1;
    const sums: Sums = {
      knownRate: this.givenRate(model),
      knownWeight: Math.min(OBSERVATIONS_MAX, Math.max(1, observations)),
      rate: this.givenRate(model),
      workUs: 0,
      timeUs: 0,
    };
    this.#models.set(model, sums);
    return sums;
  }

  /** A remembered rate for '' stands for every model. */
  #memoryOf(model: string): NodeMemory['rates'][number] | undefined {
    return (
      this.remembered.find((row) => row.model === model) ?? this.remembered.find((row) => row.model === '')
    );
  }
}
