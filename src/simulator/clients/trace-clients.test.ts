import { describe, expect, test } from 'vitest';
import { answerByScript, SERVED } from '../../../test/support/scripted-gateway.ts';
import { S } from '../../../test/support/specs.ts';
import { streamSpec } from '../../../test/support/stream-spec.ts';
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { ArrivalSpec, StreamSpec } from '../scenario/types.ts';
import type { Request } from './clients.ts';
import { createClients } from './create-clients.ts';
import { sampleMix } from './sample-mix.ts';
import { TraceError } from './traces/trace.ts';

type TraceArrivals = Extract<ArrivalSpec, { kind: 'trace' }>;

const FILES: Readonly<Record<string, string>> = {
  'conv.jsonl': [0, 10, 20, 30]
    .map((s, row) =>
      JSON.stringify({
        timestamp: s * 1_000,
        input_length: 100 + row,
        output_length: row,
        hash_ids: [0, row],
      }),
    )
    .join('\n'),
  'rates.csv': '0,0,0,,0,0\n600,2,1,Gamma,1,1\n1200,8,3,Gamma,0.1,1\n1800,0,0,,0,0\n',
};

function replay(
  arrivals: Partial<TraceArrivals>,
  change: Partial<StreamSpec> = {},
  spanUs: DurationUs = 100_000 * S,
): readonly (Request & { readonly at: number })[] {
  const until: MonoUs = 0 + spanUs;
  const trace = { kind: 'trace', format: 'mooncake', file: 'conv.jsonl', times: 1, ...arrivals } as const;
  const stream = streamSpec({ arrivals: trace, sizes: { kind: 'trace' }, ...change });
  const clients = createClients({
    streams: [stream],
    spanUs,
    seed: 1,
    mixPerSecond: () => 1,
    bestServiceUs: () => 1,
    readTrace: (file) => FILES[file] ?? '',
  });
  return answerByScript(clients, until, () => ({ end: SERVED, afterUs: 0 })).requests;
}

const seconds = (requests: ReturnType<typeof replay>): number[] => requests.map(({ at }) => at / S);

describe('a trace of requests', () => {
  test('comes when it says and asks for what it says', () => {
    const requests = replay({});
    expect(seconds(requests)).toEqual([0, 10, 20, 30]);
    expect(requests[0]?.demand).toEqual({ kind: 'text', promptTokens: 100, outputTokens: 1, blocks: [0, 0] });
    expect(requests[3]?.demand).toEqual({ kind: 'text', promptTokens: 103, outputTokens: 3, blocks: [0, 3] });
    expect(requests[3]?.task).toMatchObject({ promptTokens: 103, tokens: 106 });
  });

  test('is compressed in time as a whole, and by a course for a while', () => {
    expect(seconds(replay({ times: 4 }))).toEqual([0, 2.5, 5, 7.5]);
    const course = [
      { from: 5 * S, times: 10 },
      { from: 6 * S, times: 1 },
    ];
    expect(seconds(replay({}, { course }))).toEqual([0, 5.5, 11, 21]);
  });

  test('is spliced: stretches are repeated and joined, and repeated prompts are other prompts', () => {
    const parts = [
      { fromUs: 10 * S, untilUs: 25 * S, repeats: 2 },
      { fromUs: 25 * S, untilUs: 26 * S, repeats: 3 },
      { fromUs: 0, untilUs: 11 * S, repeats: 1 },
    ];
    const requests = replay({ parts });
    expect(seconds(requests)).toEqual([0, 10, 15, 25, 33, 43]);
    const blocks = requests.map(({ demand }) => (demand.kind === 'text' ? demand.blocks : undefined));
    expect(blocks.slice(0, 2)).toEqual([
      [0, 1],
      [0, 2],
    ]);
    expect(blocks[2]).not.toEqual(blocks[0]);
    expect((blocks[2]?.[1] ?? 0) - (blocks[2]?.[0] ?? 0)).toBe(1);
  });

  test('ends with the span of the run', () => {
    expect(seconds(replay({}, {}, 20 * S))).toEqual([0, 10]);
  });

  test('may have drawn sizes instead, and its own sizes make up its mix', () => {
    const [first] = replay({}, { sizes: { kind: 'images', units: 2 } });
    expect(first?.demand).toEqual({ kind: 'image', units: 2 });
    const arrivals = { kind: 'trace', format: 'mooncake', file: 'conv.jsonl', times: 1 } as const;
    const readTrace = (file: string): string => FILES[file] ?? '';
    const mix = sampleMix(streamSpec({ arrivals, sizes: { kind: 'trace' } }), 400, { seed: 1, readTrace });
    const prompts = mix.map((demand) => (demand.kind === 'text' ? demand.promptTokens : 0));
    expect(new Set(prompts)).toEqual(new Set([100, 101, 102, 103]));
  });

  test('is refused with its lines when it is none', () => {
    expect(() => replay({ file: 'absent' })).toThrow(TraceError);
  });
});

describe('a trace of rates', () => {
  const rates = { format: 'servegen', file: 'rates.csv' } as const;
  const sizes = { kind: 'work', meanUs: S, sigma: 0 } as const;
  const between = (requests: ReturnType<typeof replay>, from: number, until: number): number =>
    seconds(requests).filter((at) => at >= from && at < until).length;

  test('draws arrivals of its rates, window by window', () => {
    const requests = replay(rates, { sizes });
    expect(between(requests, 0, 600)).toBe(0);
    expect(between(requests, 600, 1_200)).toBeGreaterThan(1_100);
    expect(between(requests, 600, 1_200)).toBeLessThan(1_300);
    expect(between(requests, 1_200, 1_800)).toBeGreaterThan(4_000);
    expect(between(requests, 1_200, 1_800)).toBeLessThan(5_600);
    expect(between(requests, 1_800, 100_000)).toBe(0);
  });

  test('has the burstiness of each window', () => {
    const at = seconds(replay(rates, { sizes }));
    const cv = (from: number, until: number): number => {
      const within = at.filter((instant) => instant >= from && instant < until);
      const gaps = within.slice(1).map((instant, index) => instant - (within[index] ?? 0));
      const mean = gaps.reduce((a, b) => a + b, 0) / gaps.length;
      return Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length) / mean;
    };
    expect(cv(600, 1_200)).toBeCloseTo(1, 1);
    expect(cv(1_200, 1_800)).toBeGreaterThan(2.5);
    expect(cv(1_200, 1_800)).toBeLessThan(3.8);
  });

  test('is compressed, spliced and multiplied', () => {
    const parts = [{ fromUs: 600 * S, untilUs: 1_200 * S, repeats: 2 }];
    const course = [{ from: 60 * S, times: 3 }];
    const requests = replay({ ...rates, times: 10, parts }, { sizes, course });
    expect(Math.abs(between(requests, 0, 60) - 1_200)).toBeLessThan(140);
    expect(between(requests, 60, 120) / 3_600).toBeCloseTo(1, 1);
    expect(between(requests, 120, 100_000)).toBe(0);
  });
});
