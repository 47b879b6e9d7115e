/**
 * Published service times of accelerators, as numbers that an emulated node plays back. Nothing here was measured on
 * this machine.
 *
 * Images: seconds for `b` images of 512 x 512 at 30 steps are `a + c * b`, fitted to the CSV files of
 * LambdaLabsML/lambda-diffusers (diffusers 0.11, fp16). Time is linear in steps and in pixels. No primary number
 * exists for the T4; the row measured on a seventh of an H100 (MIG 1g, 5.6 steps/s) is of the same class (4 to 6
 * steps/s) and stands in for it.
 *
 * Text: one decoding step of a batch of B sequences with T tokens of context in all takes `a + b * B + c * T`
 * milliseconds, and each new prompt token adds its prefill time. A100 and H100: fitted to the Splitwise measurements
 * (Llama-2-70B, four GPUs). V100 and T4 have no such table; their rows are the A100's scaled by memory bandwidth (2.0
 * against 0.9 and 0.32 TB/s), the usual roofline for decoding.
 */
import type { DurationMs } from '../base/units.ts';

export type Hardware = 'T4' | 'V100' | 'A100' | 'H100';

export const HARDWARE: readonly Hardware[] = ['T4', 'V100', 'A100', 'H100'];

/** Milliseconds of one image request: `fixedMs + perImageMs * images * steps/30 * pixels/262144`. */
export interface ImageModel {
  readonly fixedMs: DurationMs;
  readonly perImageMs: DurationMs;
}

/** Milliseconds of one decoding step: `stepMs + perSequenceMs * B + perContextTokenMs * T + prefillMs * new tokens`. */
export interface TextModel {
  readonly stepMs: DurationMs;
  readonly perSequenceMs: DurationMs;
  readonly perContextTokenMs: DurationMs;
  readonly prefillMsPerToken: DurationMs;
}

export const STEPS_REFERENCE = 30;
export const PIXELS_REFERENCE: number = 512 * 512;

export const IMAGE_MODELS: Readonly<Record<Hardware, ImageModel>> = {
  T4: { fixedMs: 1_330, perImageMs: 4_011 },
  V100: { fixedMs: 580, perImageMs: 1_258 },
  A100: { fixedMs: 620, perImageMs: 526 },
  H100: { fixedMs: 530, perImageMs: 551 },
};

const A100_TEXT: TextModel = {
  stepMs: 43.4,
  perSequenceMs: 0.215,
  perContextTokenMs: 0.0004,
  prefillMsPerToken: 0.332,
};

export const TEXT_MODELS: Readonly<Record<Hardware, TextModel>> = {
  T4: scaled(A100_TEXT, 2.0 / 0.32),
  V100: scaled(A100_TEXT, 2.0 / 0.9),
  A100: A100_TEXT,
  H100: { stepMs: 28.8, perSequenceMs: 0.29, perContextTokenMs: 0.0001, prefillMsPerToken: 0.107 },
};

function scaled(model: TextModel, times: number): TextModel {
  return {
    stepMs: model.stepMs * times,
    perSequenceMs: model.perSequenceMs * times,
    perContextTokenMs: model.perContextTokenMs * times,
    prefillMsPerToken: model.prefillMsPerToken * times,
  };
}

export interface ImageSize {
  readonly images: number;
  readonly steps: number;
  readonly pixels: number;
}

/** Images of 512 x 512 at 30 steps that cost as much as these. */
export function imageUnits(size: ImageSize): number {
  return size.images * (size.steps / STEPS_REFERENCE) * (size.pixels / PIXELS_REFERENCE);
}

/** Service time on an otherwise idle accelerator, without noise and at its own speed. */
export function imageServiceMs(model: ImageModel, size: ImageSize): DurationMs {
  return model.fixedMs + model.perImageMs * imageUnits(size);
}

/** The accelerator that defines one unit of work for images: work of a request is its service time there. */
export const REFERENCE_HARDWARE: Hardware = 'A100';

export function imageWorkMs(size: ImageSize): DurationMs {
  return imageServiceMs(IMAGE_MODELS[REFERENCE_HARDWARE], size);
}

/** Work of a text request: its time alone on the reference accelerator. */
export function textWorkMs(promptTokens: number, outputTokens: number): DurationMs {
  const model = TEXT_MODELS[REFERENCE_HARDWARE];
  return model.prefillMsPerToken * promptTokens + (model.stepMs + model.perSequenceMs) * outputTokens;
}
