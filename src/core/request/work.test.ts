import { describe, expect, test } from 'vitest';
import type { RequestShape } from './task.ts';
import { GENERIC_PROFILE, WorkModel } from './work.ts';

const SHAPE: RequestShape = {
  promptBytes: 4_000,
  outputTokensMax: 0,
  images: 0,
  steps: 0,
  pixelsPerImage: 0,
  statedWorkUs: 0,
};
const LLM = { kind: 'llm', fixedMs: 10, prefillMsPerToken: 0.1, decodeMsPerToken: 20 } as const;
const IMAGE = {
  kind: 'image',
  fixedMs: 100,
  msPerMegapixelStep: 50,
  stepsDefault: 30,
  pixelsDefault: 1_000_000,
} as const;

describe('WorkModel of a language model', () => {
  test('counts the prompt and the tokens to come, and up to the first of them alone', () => {
    const estimate = new WorkModel(LLM).estimate({ ...SHAPE, outputTokensMax: 101 });
    expect(estimate).toMatchObject({ workUs: 2_110_000, firstByteWorkUs: 110_000, contextTokens: 1_101 });
  });

  test('expects no more output than was asked for, and what is usual when nothing was', () => {
    const model = new WorkModel(LLM);
    const usual = model.estimate(SHAPE).workUs;
    expect(model.estimate({ ...SHAPE, outputTokensMax: 100_000 }).workUs).toBe(usual);
    expect(model.estimate({ ...SHAPE, outputTokensMax: 5 }).workUs).toBeLessThan(usual / 5);
  });

  test('learns bytes per token and the usual length of answers from what nodes report', () => {
    const model = new WorkModel(LLM);
    for (let i = 0; i < 400; i++) model.learn(SHAPE, { promptTokens: 2_000, outputTokens: 20 });
    const { workUs, firstByteWorkUs } = model.estimate(SHAPE);
    expect(firstByteWorkUs / 1_000).toBeCloseTo(210, 0);
    expect((workUs - firstByteWorkUs) / 20_000).toBeGreaterThan(15);
    expect((workUs - firstByteWorkUs) / 20_000).toBeLessThan(30);
  });

  test('keeps what it learned when its profile is configured anew', () => {
    const model = new WorkModel(LLM);
    for (let i = 0; i < 400; i++) model.learn(SHAPE, { promptTokens: 2_000, outputTokens: 20 });
    const renewed = model.withProfile({ ...LLM, fixedMs: 11 });
    expect(renewed.estimate(SHAPE).workUs - model.estimate(SHAPE).workUs).toBe(1_000);
  });

  test('takes the node’s own count for what was really used, and the estimate where there is none', () => {
    const model = new WorkModel(LLM);
    expect(model.actual({ promptTokens: 100, outputTokens: 11 }, 7)).toBe(220_000);
    expect(model.actual(undefined, 7)).toBe(7);
    expect(model.actual({ outputTokens: 11 }, 7)).toBe(7);
  });

  test('is not thrown off by absurd reports', () => {
    const model = new WorkModel(LLM);
    for (const count of [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 1e308]) {
      model.learn(SHAPE, { promptTokens: count, outputTokens: count });
      const { workUs, firstByteWorkUs } = model.estimate(SHAPE);
      expect(Number.isFinite(workUs)).toBe(true);
      expect(firstByteWorkUs).toBeGreaterThanOrEqual(1);
    }
  });
});

describe('WorkModel.estimate, for limits,', () => {
  test('counts the prompt and the output asked for, however long answers usually are', () => {
    const model = new WorkModel(LLM);
    expect(model.estimate({ ...SHAPE, outputTokensMax: 5_000 })).toMatchObject({
      tokens: 6_000,
      promptTokens: 1_000,
    });
  });

  test('expects the usual length where none was asked for', () => {
    const model = new WorkModel(GENERIC_PROFILE);
    const before = model.estimate(SHAPE).tokens;
    for (let i = 0; i < 400; i++) model.learn(SHAPE, { outputTokens: 2_000 });
    expect(before).toBe(1_211);
    expect(model.estimate(SHAPE).tokens).toBeGreaterThan(2_500);
  });

  test('counts no output of an embedding, and of an image what the configuration says', () => {
    expect(new WorkModel(GENERIC_PROFILE).estimate({ ...SHAPE, hasNoOutput: true }).tokens).toBe(1_000);
    const images = { ...SHAPE, images: 3 };
    expect(new WorkModel(IMAGE).estimate(images).tokens).toBe(0);
    expect(new WorkModel(IMAGE, 1_000).estimate(images).tokens).toBe(3_000);
    expect(new WorkModel(IMAGE).withProfile(IMAGE, 7).estimate(images).tokens).toBe(21);
  });
});

describe('WorkModel of other models', () => {
  test('multiplies images, steps and pixels, with the defaults of the model where they are open', () => {
    const model = new WorkModel(IMAGE);
    expect(model.estimate(SHAPE).workUs).toBe(1_600_000);
    expect(model.estimate({ ...SHAPE, images: 2, steps: 10, pixelsPerImage: 500_000 }).workUs).toBe(600_000);
  });

  test('counts tokens of an embedding', () => {
    expect(new WorkModel({ kind: 'embedding', fixedMs: 5, msPerToken: 0.01 }).estimate(SHAPE).workUs).toBe(
      15_000,
    );
  });

  test('uses the mean of a model of which nothing is known, and stated work above everything', () => {
    const model = new WorkModel(GENERIC_PROFILE);
    expect(model.estimate(SHAPE).workUs).toBe(1_000_000);
    expect(model.estimate({ ...SHAPE, statedWorkUs: 42 }).workUs).toBe(42);
  });
});
