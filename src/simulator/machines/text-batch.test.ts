import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runMachine, type ScriptEntry } from '../../../test/support/machine-run.ts';
import { type NaiveRequest, runNaively } from '../../../test/support/naive-text-engine.ts';
import type { Demand } from './machine.ts';
import { PrefixCache } from './prefix-cache.ts';
import { type StepTimes, TextBatch, type TextBatchOptions } from './text-batch.ts';

const TIMES: StepTimes = {
  stepUs: 90,
  perSequenceUs: 7,
  perContextTokenUs: 0.3,
  prefillUs: (tokens) => 2.5 * tokens,
};

function createEngine(change: Partial<TextBatchOptions> = {}): TextBatch {
  return new TextBatch({
    times: TIMES,
    shapeOf: (demand) => demand as Extract<Demand, { kind: 'text' }>,
    sequencesMax: 8,
    cacheTokensMax: 100_000,
    ...change,
  });
}

function start(id: number, at: number, [promptTokens, outputTokens]: readonly [number, number]): ScriptEntry {
  return { at, action: { kind: 'start', id, demand: { kind: 'text', promptTokens, outputTokens } } };
}

describe('TextBatch', () => {
  const request = fc.record({
    at: fc.integer({ min: 0, max: 3_000 }),
    demand: fc.record({
      kind: fc.constant('text' as const),
      promptTokens: fc.integer({ min: 0, max: 30 }),
      outputTokens: fc.integer({ min: 1, max: 25 }),
    }),
    noise: fc.double({ min: 0.5, max: 2, noNaN: true }),
  });

  test.each([100_000, 70])(
    'jumps to the same instants as stepping token by token, cache of %d',
    (cacheTokensMax) => {
      let putOut = 0;
      fc.assert(
        fc.property(fc.array(request, { minLength: 1, maxLength: 30 }), (entries) => {
          const requests: NaiveRequest[] = entries.map((entry, id) => ({ ...entry, id }));
          const options = { times: TIMES, sequencesMax: 4, cacheTokensMax };
          const expected = runNaively(requests, options);
          const { firstBytes, ends } = runMachine(
            createEngine(options),
            requests.map(({ id, at, demand, noise }) => ({
              at,
              action: { kind: 'start', id, demand, noise },
            })),
          );
          for (const { id } of requests) {
            expect(
              Math.abs((firstBytes.get(id) as number) - (expected.firstBytes.get(id) as number)),
            ).toBeLessThanOrEqual(1);
            expect(
              Math.abs((ends.get(id) as number) - (expected.ends.get(id) as number)),
            ).toBeLessThanOrEqual(1);
          }
          putOut += expected.putOut;
        }),
        { numRuns: 300 },
      );
      expect(putOut > 0).toBe(cacheTokensMax === 70);
    },
  );

  test('is looked at a few times per request, however many tokens it makes', () => {
    const starts = Array.from({ length: 20 }, (_, id) => start(id, id * 1_000, [100, 2_000]));
    expect(runMachine(createEngine(), starts).advances).toBeLessThanOrEqual(3 * 20);
  });

  test('tells the first byte at the end of the step that computed the prompt', () => {
    const { firstBytes, ends } = runMachine(createEngine(), [start(1, 0, [100, 3])]);
    const first = 90 + 7 + 0.3 * 100 + 2.5 * 100;
    expect(firstBytes.get(1)).toBe(Math.ceil(first));
    expect(ends.get(1)).toBe(Math.ceil(first + 2 * 97 + 0.3 * (101 + 102)));
  });

  test('lets a newcomer join at the end of the step under way, and makes everybody wait for its prompt', () => {
    const { firstBytes, ends } = runMachine(createEngine(), [start(1, 0, [0, 3]), start(2, 50, [40, 1])]);
    const joined = 97;
    const step = 90 + 2 * 7 + 0.3 * (1 + 40) + 2.5 * 40;
    expect(firstBytes.get(2)).toBe(Math.ceil(joined + step));
    expect(ends.get(2)).toBe(firstBytes.get(2));
    expect(ends.get(1)).toBe(Math.ceil(joined + step + 97 + 0.3 * 2));
  });

  test('takes the sequence that is aborted out at once, and gives its place away', () => {
    const engine = createEngine({ sequencesMax: 1 });
    const { ends } = runMachine(engine, [
      start(1, 0, [0, 1_000]),
      start(2, 10, [0, 1]),
      { at: 500, action: { kind: 'abort', id: 1 } },
    ]);
    expect([...ends]).toEqual([[2, 597]]);
    expect(engine.busyUs(597)).toBe(597);
  });

  test('tells what runs, what waits and how full its cache is', () => {
    const engine = createEngine({ sequencesMax: 2, cacheTokensMax: 1_000 });
    const starts = [start(1, 0, [100, 50]), start(2, 0, [100, 50]), start(3, 0, [100, 50])];
    const sink = { firstByte: () => {}, ended: () => {} };
    for (const { action } of starts)
      if (action.kind === 'start')
        engine.start({ task: { id: action.id }, demand: action.demand, noise: 1 } as never, 'm', 0);
    engine.advance(engine.nextAt(), sink);
    expect(engine.reading(engine.nextAt() - 1)).toEqual({
      running: 2,
      waiting: 1,
      cacheUse: expect.any(Number),
    });
    expect(engine.reading(engine.nextAt() - 1).cacheUse).toBeGreaterThanOrEqual(0.2);
    expect(engine.reading(engine.nextAt() - 1).cacheUse).toBeLessThanOrEqual(0.3);
    expect(createEngine().reading(5)).toEqual({ running: 0, waiting: 0, cacheUse: 0 });
  });

  test('skips the prefill of blocks that it has, but never of the whole prompt', () => {
    const cache = new PrefixCache(10);
    const engine = createEngine({ prefixes: { cache, tokensPerBlock: 10 } });
    const ask = (id: number, at: number, blocks: readonly number[]): ScriptEntry => ({
      at,
      action: { kind: 'start', id, demand: { kind: 'text', promptTokens: 30, outputTokens: 1, blocks } },
    });
    const { ends } = runMachine(engine, [
      ask(1, 0, [1, 2, 3]),
      ask(2, 1_000, [1, 2, 4]),
      ask(3, 2_000, [1, 2, 4]),
    ]);
    const alone = 97 + 0.3 * 30;
    expect(ends.get(1)).toBe(Math.ceil(alone + 30 * 2.5));
    expect(ends.get(2)).toBe(Math.ceil(1_000 + alone + 10 * 2.5));
    expect(ends.get(3)).toBe(Math.ceil(2_000 + alone + 1 * 2.5));
    expect(engine.prefixStats).toEqual({ blocksAsked: 9, blocksHit: 5 });
  });

  test('makes what is left of the step under way longer when it slows down', () => {
    const engine = createEngine();
    const { ends } = runMachine(engine, [
      start(1, 0, [0, 2]),
      { at: 47, action: { kind: 'speed', factor: 0.5 } },
    ]);
    expect(ends.get(1)).toBe(Math.ceil(47 + 2 * 50 + 2 * 97.3));
  });
});
