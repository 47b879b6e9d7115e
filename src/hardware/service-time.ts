/**
 * Shapes of service times: how long an accelerator takes, by what is asked of it. Pure formulas; the numbers are in the
 * catalogue.
 *
 * Images: one pass over `u` units (pictures of 512 x 512 at 30 steps) takes `fixed + perImage * u`; time is linear in
 * steps and in pixels. Embeddings: `fixed + perToken * n`.
 *
 * Text: one step of B sequences with T tokens of context in all takes `a + b * B + c * T`. Where n tokens of new prompts
 * are computed in it, they take the place of `a` when they last longer: `max(a, prompt(n)) + b * B + c * T`. A prompt is
 * linear, `a + prefill * n`, or where it was measured
 *
 *   prompt(n) = max(floor, fixed + perToken * n + perLongToken * max(0, n - 2048))
 *
 * flat while reading the weights is what takes time, then linear, and steeper beyond some two thousand tokens.
 */
import type { DurationMs, Tokens } from '../base/units.ts';

/** Milliseconds of one image request: `fixedMs + perImageMs * images * steps/30 * pixels/262144`. */
export interface ImageModel {
  readonly fixedMs: DurationMs;
  readonly perImageMs: DurationMs;
}

/** Milliseconds of a step that computes n tokens of prompts, by themselves. */
export interface PromptModel {
  readonly floorMs: DurationMs;
  readonly fixedMs: DurationMs;
  readonly perTokenMs: DurationMs;
  /** On top, for each token beyond `LONG_PROMPT_TOKENS`. */
  readonly perLongTokenMs: DurationMs;
}

export const LONG_PROMPT_TOKENS: Tokens = 2_048;

/** Milliseconds of one decoding step: `stepMs + perSequenceMs * B + perContextTokenMs * T`, and more with new prompts. */
export interface TextModel {
  readonly stepMs: DurationMs;
  readonly perSequenceMs: DurationMs;
  readonly perContextTokenMs: DurationMs;
  /** Of a prompt that is linear. */
  readonly prefillMsPerToken: DurationMs;
  /** Absent: `stepMs + prefillMsPerToken * n`. */
  readonly prompt?: PromptModel;
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

export function promptMs(
  { floorMs, fixedMs, perTokenMs, perLongTokenMs }: PromptModel,
  tokens: Tokens,
): DurationMs {
  const longTokens = Math.max(0, tokens - LONG_PROMPT_TOKENS);
  return Math.max(floorMs, fixedMs + perTokenMs * tokens + perLongTokenMs * longTokens);
}

/** How much longer a step is in which so many tokens of new prompts are computed. */
export function prefillMs(model: TextModel, tokens: Tokens): DurationMs {
  if (tokens === 0) return 0;
  if (model.prompt === undefined) return model.prefillMsPerToken * tokens;
  return Math.max(0, promptMs(model.prompt, tokens) - model.stepMs);
}

/** Alone on the accelerator: prefill, then one step per output token while the context grows by one. */
export function textServiceMs(model: TextModel, promptTokens: Tokens, outputTokens: Tokens): DurationMs {
  const contextSum = outputTokens * promptTokens + (outputTokens * (outputTokens - 1)) / 2;
  const stepsMs = outputTokens * (model.stepMs + model.perSequenceMs) + model.perContextTokenMs * contextSum;
  return prefillMs(model, promptTokens) + stepsMs;
}

export function embeddingServiceMs(model: EmbeddingModel, tokens: Tokens): DurationMs {
  return model.fixedMs + model.perTokenMs * tokens;
}
