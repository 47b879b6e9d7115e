/**
 * Shapes of service times: how long an accelerator takes, by what is asked of it. Pure formulas; the numbers are in the
 * catalogue.
 *
 * Images: one pass over `u` units (pictures of 512 x 512 at 30 steps) takes `fixed + perImage * u`; time is linear in
 * steps and in pixels. Text: one decoding step of B sequences with T tokens of context in all takes `a + b * B + c * T`,
 * and each new prompt token adds its prefill. Embeddings: `fixed + perToken * n`.
 */
import type { DurationMs, Tokens } from '../base/units.ts';

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

/** Milliseconds of one embedding request: `fixedMs + perTokenMs * tokens`. */
export interface EmbeddingModel {
  readonly fixedMs: DurationMs;
  readonly perTokenMs: DurationMs;
}

export const STEPS_REFERENCE = 30;
export const PIXELS_REFERENCE: number = 512 * 512;

export interface ImageSize {
  readonly images: number;
  readonly steps: number;
  readonly pixels: number;
}

/** Images of 512 x 512 at 30 steps that cost as much as these. */
export function imageUnits(size: ImageSize): number {
  return size.images * (size.steps / STEPS_REFERENCE) * (size.pixels / PIXELS_REFERENCE);
}

/** On an otherwise idle accelerator, without noise. */
export function imageUnitsMs(model: ImageModel, units: number): DurationMs {
  return model.fixedMs + model.perImageMs * units;
}

/** The same of a request as clients state it. */
export function imageServiceMs(model: ImageModel, size: ImageSize): DurationMs {
  return imageUnitsMs(model, imageUnits(size));
}

/** Alone on the accelerator: prefill, then one step per output token while the context grows by one. */
export function textServiceMs(model: TextModel, promptTokens: Tokens, outputTokens: Tokens): DurationMs {
  const contextSum = outputTokens * promptTokens + (outputTokens * (outputTokens - 1)) / 2;
  const stepsMs = outputTokens * (model.stepMs + model.perSequenceMs) + model.perContextTokenMs * contextSum;
  return model.prefillMsPerToken * promptTokens + stepsMs;
}

export function embeddingServiceMs(model: EmbeddingModel, tokens: Tokens): DurationMs {
  return model.fixedMs + model.perTokenMs * tokens;
}
