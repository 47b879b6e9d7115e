/**
 * How far predictions of service time must be stretched to be kept: two percentiles of actual over predicted, each
 * followed by a stochastic step (Robbins and Monro 1951): for the 90th up by 0.9 of a step when exceeded, down by 0.1 when not.
 */
import type { DurationUs, Ratio } from '../../base/units.ts';

const USUAL: Ratio = 0.9;
const SURE: Ratio = 0.98;
const STEP = 0.02;
const START = 1.25;

export class PredictionMargin {
  #usual = START;
  #sure = START;

  observe(actualUs: DurationUs, predictedUs: DurationUs): void {
    if (predictedUs <= 0) return;
    this.#usual += actualUs > predictedUs * this.#usual ? STEP * USUAL : -STEP * (1 - USUAL);
    this.#sure += actualUs > predictedUs * this.#sure ? STEP * SURE : -STEP * (1 - SURE);
  }

  /** Nine of ten predictions, stretched by it, are kept. */
  get usual(): number {
    return this.#usual;
  }

  /** The same within bounds. */
  usualWithin(min: number, max: number): number {
    return Math.min(max, Math.max(min, this.#usual));
  }

  /** The same for 98 of 100. */
  sureWithin(min: number, max: number): number {
    return Math.min(max, Math.max(min, this.#sure));
  }
}
