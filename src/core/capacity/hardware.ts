/**
 * Priors of speed by hardware class, relative to an A100. They only decide where a node starts: rates are measured.
 *
 * Sources: Stable Diffusion seconds per image of LambdaLabs' diffusers benchmark (A100 0.53, A10 1.56, V100 1.26,
 * H100 0.55; its MIG 1g row, 4.0, stands for the T4), and memory bandwidth where no measurement is public.
 */
import type { Rate } from '../../base/units.ts';

const SPEEDS: Readonly<Record<string, Rate>> = {
  T4: 0.15,
  L4: 0.3,
  A10: 0.36,
  V100: 0.43,
  A40: 0.45,
  L40S: 0.8,
  A100: 1,
  H100: 1.2,
  H200: 1.4,
  B200: 2,
  RTX3090: 0.45,
  RTX4090: 0.8,
  M2: 0.15,
  M3: 0.2,
  M4: 0.25,
  CPU: 0.02,
};

export interface RatePrior {
  readonly rate: Rate;
  /** Measurements are clamped to [rate / span, rate * span]. */
  readonly span: number;
}

/** Known hardware is trusted within a factor of 8, as a clamp on noise; unknown hardware within 1,000. */
const KNOWN_SPAN = 8;
const UNKNOWN: RatePrior = { rate: 1, span: 1_000 };

export function priorOf(hardware: string): RatePrior {
  const rate = SPEEDS[hardware.toUpperCase().replaceAll(/[\s_-]/g, '')];
  return rate === undefined ? UNKNOWN : { rate, span: KNOWN_SPAN };
}
