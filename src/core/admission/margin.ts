/**
 * How far predictions of service time must be stretched to be kept: the 90th percentile of actual over predicted,
 * followed by a stochastic step (Robbins and Monro 1951): up by 0.9 of a step when exceeded, down by 0.1 when not.
 */
import type { DurationUs, Ratio } from '../../base/units.ts';

const QUANTILE: Ratio = 0.9;
const STEP = 0.02;

export class PredictionMargin {
  #quantile = 1.25;

  observe(actualUs: DurationUs, predictedUs: DurationUs): void {
    if (predictedUs <= 0) return;
    this.#quantile += actualUs > predictedUs * this.#quantile ? STEP * QUANTILE : -STEP * (1 - QUANTILE);
  }

  within(min: number, max: number): number {
    return Math.min(max, Math.max(min, this.#quantile));
  }
}
