import { describe, expect, test } from 'vitest';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { ModelConfig } from '../config/types.ts';
import { NO_NEEDS } from '../request/needs.ts';
import type { RequestShape } from '../request/task.ts';
import { WorkModel } from '../request/work.ts';
import {
  alternativeLabel,
  type DegradeConsent,
  lowerShape,
  planAnswers,
  type WholeRequest,
} from './index.ts';

const TEXT: RequestShape = {
  promptBytes: 400,
  outputTokensMax: 100,
  images: 0,
  steps: 0,
  pixelsPerImage: 0,
  statedWorkUs: 0,
};
const PICTURE: RequestShape = {
  ...TEXT,
  outputTokensMax: 0,
  images: 2,
  steps: 30,
  pixelsPerImage: 768 * 768,
};
const IMAGE = {
  profile: { kind: 'image', fixedMs: 1, msPerMegapixelStep: 1, stepsDefault: 30, pixelsDefault: 262_144 },
} as const;
const LLM = { profile: { kind: 'llm', fixedMs: 1, prefillMsPerToken: 0, decodeMsPerToken: 10 } } as const;

const MODEL: ModelConfig = {
  id: 'm',
  aliases: [],
  ...LLM,
  variants: [{ model: 'small' }, { model: 'tiny' }],
  quality: [
    { name: 'short', maxTokens: 50 },
    { name: 'long', maxTokens: 500 },
  ],
};
const CONFIG = defaultSchedulerConfig({ models: [MODEL] });
const ALL: DegradeConsent = { cache: true, model: true, quality: true, default: true };
const WHOLE: WholeRequest = {
  className: 'low',
  model: 'm',
  shape: TEXT,
  needs: { ...NO_NEEDS, contextTokens: 200 },
  stream: false,
  usesContext: true,
  hasRemembered: true,
  hasDefault: true,
};

function labels(consent: DegradeConsent, change: Partial<WholeRequest> = {}): string[] {
  const work = new WorkModel(LLM.profile);
  const request = { ...WHOLE, ...change };
  return planAnswers(CONFIG, consent, { request, estimate: (_model, shape) => work.estimate(shape) }).map(
    (one) => alternativeLabel(one.alternative),
  );
}

describe('planAnswers', () => {
  test('orders what is remembered, cheaper models, lower qualities that lower something, and the default', () => {
    expect(labels(ALL)).toEqual(['cache', 'model:small', 'model:tiny', 'quality:short', 'default']);
  });

  test('holds only what the client consented to, the class allows, and there is', () => {
    expect(labels({ ...ALL, model: false, default: false })).toEqual(['cache', 'quality:short']);
    expect(labels(ALL, { className: 'critical' })).toEqual([]);
    expect(labels(ALL, { hasRemembered: false, hasDefault: false, model: 'other' })).toEqual([]);
  });

  test('estimates each alternative by what it does: a shorter answer is less work and needs less context', () => {
    const work = new WorkModel(LLM.profile);
    const planned = planAnswers(CONFIG, ALL, {
      request: WHOLE,
      estimate: (_model, shape) => work.estimate(shape),
    });
    expect(planned[3]).toMatchObject({
      alternative: { how: 'quality', model: 'm', workUs: 491_000, needs: { contextTokens: 150 } },
      lowered: { outputTokensMax: 50, steps: 0, size: '' },
    });
  });
});

describe('lowerShape', () => {
  test('takes the lesser of a bound and a part of what was asked for, and never nothing', () => {
    const tokens = (
      asked: number,
      quality: { maxTokens?: number; maxTokensRatio?: number },
    ): number | undefined =>
      lowerShape({ ...TEXT, outputTokensMax: asked }, { name: 'q', ...quality }, LLM)?.outputTokensMax;
    expect(tokens(100, { maxTokensRatio: 0.5 })).toBe(50);
    expect(tokens(100, { maxTokens: 30, maxTokensRatio: 0.5 })).toBe(30);
    expect(tokens(100, { maxTokens: 80, maxTokensRatio: 0.5 })).toBe(50);
    expect(tokens(1, { maxTokensRatio: 0.01 })).toBeUndefined();
    expect(tokens(0, { maxTokens: 80 })).toBe(80);
    expect(tokens(0, { maxTokensRatio: 0.5 }), 'a part of what nobody named').toBeUndefined();
    expect(tokens(20, { maxTokens: 80 }), 'nothing is raised').toBeUndefined();
  });

  test('lowers steps and size of pictures, and the defaults of the model where they are open', () => {
    const quality = { name: 'draft', steps: 8, size: '512x512' };
    expect(lowerShape(PICTURE, quality, IMAGE)).toMatchObject({
      steps: 8,
      pixelsPerImage: 262_144,
      images: 2,
    });
    const open = { ...PICTURE, steps: 0, pixelsPerImage: 0 };
    expect(lowerShape(open, quality, IMAGE)).toMatchObject({ steps: 8, pixelsPerImage: 0 });
    expect(lowerShape({ ...open, steps: 5 }, quality, IMAGE)).toBeUndefined();
    expect(lowerShape(PICTURE, { name: 'q', maxTokens: 1 }, IMAGE), 'of another kind').toBeUndefined();
  });
});
