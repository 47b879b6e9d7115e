/** True work of a demand: its time alone on the reference accelerator, without noise. */
import type { RefUs } from '../../base/units.ts';
import type { Demand } from '../machines/machine.ts';

/** An A100: pictures as `a + c * units` (LambdaLabsML/lambda-diffusers), text by Splitwise's tables (Llama-2-70B, four of them). */
const IMAGE_FIXED_US = 620_000;
const IMAGE_UNIT_US = 526_000;
const PREFILL_US_PER_TOKEN = 332;
const STEP_US = 43_400 + 215;
/** Assumed: a small encoder. */
const EMBEDDING_FIXED_US = 2_000;
const EMBEDDING_US_PER_TOKEN = 10;

export function referenceWorkUs(demand: Demand): RefUs {
  switch (demand.kind) {
    case 'work':
      return demand.workUs;
    case 'image':
      return Math.max(1, Math.round(IMAGE_FIXED_US + IMAGE_UNIT_US * demand.units));
    case 'text':
      return Math.max(
        1,
        Math.round(PREFILL_US_PER_TOKEN * demand.promptTokens + STEP_US * demand.outputTokens),
      );
    case 'embedding':
      return Math.max(1, Math.round(EMBEDDING_FIXED_US + EMBEDDING_US_PER_TOKEN * demand.tokens));
  }
}
