/**
 * Embeddings of an encoder with 335 million parameters in fp16. Nobody published them by card in one place: a token
 * computes 335 / 6,740 of what one of Llama-2-7B does in a prompt, and cards without a profile go by their dense fp16 rate.
 * Five milliseconds a request are the launches of 24 layers and the host.
 */
import type { EmbeddingModel } from './service-time.ts';
import type { Sourced } from './sourced.ts';

const VIDUR = 'microsoft/vidur, data/profiling: Llama-2-7B, steps without attention';
const PARAMETERS = 335 / 6_740;
const FIXED_MS = 5;

function scaled(perTokenMsOf7B: number, source: string): Sourced<EmbeddingModel> {
  return {
    model: { fixedMs: FIXED_MS, perTokenMs: perTokenMsOf7B * PARAMETERS },
    derivation: 'scaled',
    uncertainty: 0.5,
    source: `${VIDUR}; ${source}`,
  };
}

/** From slow to fast. */
export const EMBEDDING_ROWS: Readonly<Record<string, Sourced<EmbeddingModel>>> = {
  T4: scaled((0.0646 * 312) / 65, '0.0646 ms per token on the A100, by 312 / 65 TFLOP/s and by parameters'),
  'RTX-3090': scaled(
    (0.0646 * 312) / 71,
    '0.0646 ms per token on the A100, by 312 / 71 TFLOP/s and by parameters',
  ),
  V100: scaled(
    (0.0646 * 312) / 125,
    '0.0646 ms per token on the A100, by 312 / 125 TFLOP/s and by parameters',
  ),
  A10: scaled((0.125 * 150) / 125, '0.125 ms per token on the A40, by 150 / 125 TFLOP/s and by parameters'),
  'RTX-4090': scaled(
    (0.0646 * 312) / 165,
    '0.0646 ms per token on the A100, by 312 / 165 TFLOP/s and by parameters',
  ),
  'A100-40': scaled(0.0646, '0.0646 ms per token on the A100, by parameters'),
  'A100-80': scaled(0.0646, '0.0646 ms per token on the A100, by parameters'),
  H100: scaled(0.0204, '0.0204 ms per token on the H100, by parameters'),
};
