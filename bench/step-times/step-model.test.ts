import { describe, expect, test } from 'vitest';
import { fitRelative } from './least-squares.ts';
import { fitDecode, fitPrompt } from './step-model.ts';
import { type Measurement, parseTable } from './table.ts';

const HEAD =
  'model,hardware,prompt_size,batch_size,token_size,peak_power,average_power,prompt_time,token_time,e2e_time,tensor_parallel';

function grid(
  timesOf: (tokens: number, batch: number, context: number) => Pick<Measurement, 'promptMs' | 'tokenMs'>,
): Measurement[] {
  return [128, 256, 512, 1_024, 4_096, 8_192].flatMap((promptTokens) =>
    [1, 4, 16].map((batch) => ({
      promptTokens,
      batch,
      outputTokens: 100,
      ...timesOf(batch * promptTokens, batch, batch * (promptTokens + 50)),
    })),
  );
}

describe('fitRelative', () => {
  test('finds the coefficients of an exact law', () => {
    const samples = [1, 2, 3, 5].map((x) => ({ features: [1, x, x * x], measured: 2 + 3 * x + 0.5 * x * x }));
    const [a, b, c] = fitRelative(samples) as [number, number, number];
    expect(a).toBeCloseTo(2);
    expect(b).toBeCloseTo(3);
    expect(c).toBeCloseTo(0.5);
  });

  test('leaves out a feature that would count against the time', () => {
    const samples = [1, 2, 3, 4].map((x) => ({ features: [1, x], measured: 10 - x }));
    const [a, b] = fitRelative(samples) as [number, number];
    expect(b).toBe(0);
    expect(a).toBeGreaterThan(6);
    expect(a).toBeLessThan(9);
  });
});

describe('fitDecode and fitPrompt', () => {
  test('find the model that the times were made by', () => {
    const rows = grid((tokens, batch, context) => ({
      promptMs: Math.max(60, 20 + 0.1 * tokens + 0.05 * Math.max(0, tokens - 2_048)),
      tokenMs: 30 + 0.2 * batch + 0.0003 * context,
    }));
    const decode = fitDecode(rows);
    expect(decode.stepMs).toBeCloseTo(30);
    expect(decode.perSequenceMs).toBeCloseTo(0.2);
    expect(decode.perContextTokenMs).toBeCloseTo(0.0003);
    const prompt = fitPrompt(rows);
    expect(prompt.floorMs).toBeCloseTo(60);
    expect(prompt.perTokenMs).toBeCloseTo(0.1);
    expect(prompt.perLongTokenMs).toBeCloseTo(0.05);
  });
});

describe('parseTable', () => {
  test('groups rows and leaves out those whose whole is not the sum of their parts', () => {
    const { groups, inconsistent } = parseTable(
      `${HEAD}\nm,h,512,1,100,0,0,50,10,1040,2\nm,h,512,64,100,0,0,50,10,9000,2\nm,h,512,1,100,0,0,50,10,1040,4\n`,
    );
    expect(groups.map(({ cards, rows }) => [cards, rows.length])).toEqual([
      [2, 1],
      [4, 1],
    ]);
    expect(inconsistent).toBe(1);
  });

  test('throws for a table without the columns', () => {
    expect(() => parseTable('a,b\n1,2\n')).toThrow(/must have the columns/);
  });
});
