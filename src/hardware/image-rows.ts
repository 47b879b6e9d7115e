/**
 * Pictures: Stable Diffusion 1 in fp16, 512 x 512, 30 steps. Fits are over batches of 1 to 8 of the benchmark's CSV files;
 * time is linear in steps and in pixels.
 */
import type { ImageModel } from './service-time.ts';
import type { Sourced } from './sourced.ts';

const LAMBDA =
  'LambdaLabsML/lambda-diffusers, benchmarks/*.csv: diffusers 0.11, torch 1.13, 512 x 512, 30 steps, fp16';

function fitted(fixedMs: number, perImageMs: number): Sourced<ImageModel> {
  return { model: { fixedMs, perImageMs }, derivation: 'fitted', uncertainty: 0.1, source: LAMBDA };
}

/** From slow to fast. */
export const IMAGE_ROWS: Readonly<Record<string, Sourced<ImageModel>>> = {
  'M1-Max': {
    model: { fixedMs: 500, perImageMs: 10_300 },
    derivation: 'scaled',
    uncertainty: 0.3,
    source:
      'apple/ml-stable-diffusion, README.md: 32 cores, 18 s at 50 steps; by steps, half a second taken as fixed',
  },
  T4: {
    model: { fixedMs: 1_330, perImageMs: 4_011 },
    derivation: 'stand-in',
    uncertainty: 0.3,
    source: `${LAMBDA}; a seventh of an H100 (MIG 1g), whose 5.6 steps/s are what T4 owners report (4 to 6)`,
  },
  A10: fitted(490, 1_555),
  'RTX-3090': {
    model: { fixedMs: 510, perImageMs: 1_470 },
    derivation: 'scaled',
    uncertainty: 0.4,
    source:
      'LambdaLabsML/lambda-diffusers, benchmark.csv: 4.83 and 8.42 s for 1 and 2 pictures at 50 steps; by steps, and by what xformers gained on the A10 (0.685)',
  },
  V100: fitted(580, 1_258),
  'A100-80': fitted(750, 591),
  H100: fitted(530, 551),
  'A100-40': fitted(620, 526),
  'RTX-4090': {
    model: { fixedMs: 374, perImageMs: 317 },
    derivation: 'stand-in',
    uncertainty: 0.35,
    source:
      'vladmandic/sdnext, wiki Benchmark: torch 2.1, newer than the other rows, 73 steps/s over batches of 4; split into fixed and per picture as on the A100',
  },
};
