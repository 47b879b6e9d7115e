/**
 * Work of a request from its shape and its model's profile, corrected by what nodes report.
 *
 * Tokens are estimated from bytes by a ratio learned per model; expected output is the lesser of what was asked for
 * and the model's learned upper quantile. No tokenizer runs on the hot path.
 */
import type { RefUs, Tokens } from '../../base/units.ts';
import type { WorkProfile } from '../config/types.ts';
import type { WorkEstimate } from '../scheduler/contract.ts';
import type { RequestShape, Usage } from './task.ts';

/** English text in common tokenizers; learned per model from the first usage on. */
const BYTES_PER_TOKEN = 4;
/** Expected output before anything is learned: the mean of a public conversation trace (Azure 2023) is 211. */
const OUTPUT_TOKENS = 211;
const LEARN_STEP = 0.05;
/** Output is followed at its 75th percentile: to plan for the mean is to be late half of the time. */
const OUTPUT_QUANTILE = 0.75;

export const GENERIC_PROFILE: WorkProfile = { kind: 'generic', meanMs: 1_000 };

export class WorkModel {
  readonly profile: WorkProfile;
  /** What one image counts against limits. */
  readonly #imageTokens: Tokens;
  #bytesPerToken = BYTES_PER_TOKEN;
  #outputTokens = OUTPUT_TOKENS;

  constructor(profile: WorkProfile, imageTokens: Tokens = 0) {
    this.profile = profile;
    this.#imageTokens = imageTokens;
  }

  /** Keeps what was learned when the profile is configured anew. */
  withProfile(profile: WorkProfile, imageTokens: Tokens = 0): WorkModel {
    const model = new WorkModel(profile, imageTokens);
    model.#bytesPerToken = this.#bytesPerToken;
    model.#outputTokens = this.#outputTokens;
    return model;
  }

  estimate(shape: RequestShape): WorkEstimate {
    const promptTokens = Math.ceil(shape.promptBytes / this.#bytesPerToken);
    const contextTokens = promptTokens + shape.outputTokensMax;
    const tokens = this.#counted(shape, promptTokens);
    if (shape.statedWorkUs > 0) {
      const workUs = shape.statedWorkUs;
      return { workUs, firstByteWorkUs: workUs, contextTokens, tokens, promptTokens };
    }
    const { profile } = this;
    if (profile.kind !== 'llm') {
      const workUs = fixedWork(profile, shape, promptTokens);
      return { workUs, firstByteWorkUs: workUs, contextTokens, tokens, promptTokens };
    }
    const asked = shape.outputTokensMax > 0 ? shape.outputTokensMax : Number.POSITIVE_INFINITY;
    const outputTokens = Math.max(1, Math.min(asked, this.#outputTokens));
    return {
      workUs: llmWork(profile, promptTokens, outputTokens),
      firstByteWorkUs: llmWork(profile, promptTokens, 1),
      promptWorkUs: toUs(profile.prefillMsPerToken * promptTokens),
      contextTokens,
      tokens,
      promptTokens,
    };
  }

  /**
   * Tokens as limits reserve them: by what was asked for, whatever the profile, since a limit that is handed out by
   * usual lengths is passed by whoever asks for long ones.
   */
  #counted(shape: RequestShape, promptTokens: Tokens): Tokens {
    if (shape.images > 0) return shape.images * this.#imageTokens;
    if (shape.hasNoOutput === true) return promptTokens;
    const usual = Math.max(1, Math.round(this.#outputTokens));
    return promptTokens + (shape.outputTokensMax > 0 ? shape.outputTokensMax : usual);
  }

  /** Work of a finished task by the node's own count, or `estimated` where it gave none. */
  actual(usage: Usage | undefined, estimated: RefUs): RefUs {
    const { profile } = this;
    if (usage === undefined || usage.promptTokens === undefined) return estimated;
    if (profile.kind === 'llm') return llmWork(profile, usage.promptTokens, usage.outputTokens ?? 1);
    if (profile.kind === 'embedding') return toUs(profile.fixedMs + profile.msPerToken * usage.promptTokens);
    return estimated;
  }

  learn(shape: RequestShape, usage: Usage): void {
    const { promptTokens, outputTokens } = usage;
    if (promptTokens !== undefined && promptTokens > 0 && shape.promptBytes > 0) {
      this.#bytesPerToken += LEARN_STEP * (shape.promptBytes / promptTokens - this.#bytesPerToken);
      this.#bytesPerToken = Math.max(0.25, this.#bytesPerToken);
    }
    if (outputTokens !== undefined) {
      const step = Math.max(1, this.#outputTokens * LEARN_STEP);
      const isAbove = outputTokens > this.#outputTokens;
      this.#outputTokens += step * (isAbove ? OUTPUT_QUANTILE : OUTPUT_QUANTILE - 1);
      this.#outputTokens = Math.max(1, this.#outputTokens);
    }
  }
}

type LlmProfile = Extract<WorkProfile, { kind: 'llm' }>;

function llmWork(profile: LlmProfile, promptTokens: Tokens, outputTokens: Tokens): RefUs {
  return toUs(
    profile.fixedMs +
      profile.prefillMsPerToken * promptTokens +
      profile.decodeMsPerToken * Math.max(0, outputTokens - 1),
  );
}

function fixedWork(
  profile: Exclude<WorkProfile, LlmProfile>,
  shape: RequestShape,
  promptTokens: Tokens,
): RefUs {
  if (profile.kind === 'generic') return toUs(profile.meanMs);
  if (profile.kind === 'embedding') return toUs(profile.fixedMs + profile.msPerToken * promptTokens);
  const steps = shape.steps > 0 ? shape.steps : profile.stepsDefault;
  const pixels = shape.pixelsPerImage > 0 ? shape.pixelsPerImage : profile.pixelsDefault;
  const megapixelSteps = (Math.max(1, shape.images) * steps * pixels) / 1_000_000;
  return toUs(profile.fixedMs + profile.msPerMegapixelStep * megapixelSteps);
}

function toUs(ms: number): RefUs {
  return Math.max(1, Math.round(ms * 1_000));
}
