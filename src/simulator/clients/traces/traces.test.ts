import { describe, expect, test } from 'vitest';
import { S } from '../../../../test/support/specs.ts';
import { readAzureTrace } from './azure.ts';
import { readMooncakeTrace } from './mooncake.ts';
import { readServegenTrace } from './servegen.ts';
import { TRACE_ISSUES_MAX, TraceError, type TraceIssue, type TraceReading } from './trace.ts';
import { readRows } from './read-trace.ts';

const AZURE = `TIMESTAMP,ContextTokens,GeneratedTokens
2023-12-31 23:59:59.5000000,374,44
2023-12-31 23:59:59.5000000,0,0
2024-01-01 00:00:01.2500001,396,109
2024-03-01 00:00:01.2500000+00:00,7,1
`;

function issuesOf(reading: TraceReading<unknown>): readonly Omit<TraceIssue, 'file'>[] {
  return reading.kind === 'invalid' ? reading.issues.map(({ file: _file, ...issue }) => issue) : [];
}

describe('readAzureTrace', () => {
  test('tells instants from the first row on, over the turn of a year and a leap day', () => {
    expect(readAzureTrace(AZURE.replaceAll('\n', '\r\n'), 'conv.csv')).toEqual({
      kind: 'read',
      entries: [
        { atUs: 0, promptTokens: 374, outputTokens: 44 },
        { atUs: 0, promptTokens: 0, outputTokens: 0 },
        { atUs: 1.75 * S, promptTokens: 396, outputTokens: 109 },
        { atUs: (60 * 86_400 + 1.75) * S, promptTokens: 7, outputTokens: 1 },
      ],
    });
  });

  test('tells every wrong line with its number, what stands there and the rule', () => {
    const lines = ['2024-01-01 00:00:01,-1,2', '2024-01-01 00:00:01,1,2', '2024-01-01 00:00:00,1,2', 'x,1,2'];
    const text = `${['TIMESTAMP', ...lines].join('\n')}\n`;
    expect(issuesOf(readAzureTrace(text, 'conv.csv'))).toEqual([
      { line: 1, value: 'TIMESTAMP', rule: 'must be the header TIMESTAMP,ContextTokens,GeneratedTokens' },
      { line: 2, value: '-1', rule: 'ContextTokens must be a whole number of at least 0' },
      { line: 4, value: '2024-01-01 00:00:00,1,2', rule: 'must not be before the line above' },
      { line: 5, value: 'x', rule: 'TIMESTAMP must be as 2023-11-16 18:17:03.9799600' },
    ]);
  });

  test.each(['2024-13-01 00:00:00', '2024-00-01 00:00:00', '2024-01-32 00:00:00', '2024-01-01 24:00:00'])(
    'refuses %s',
    (instant) => {
      const text = `TIMESTAMP,ContextTokens,GeneratedTokens\n${instant},1,1\n`;
      expect(issuesOf(readAzureTrace(text, 'f'))).toHaveLength(1);
    },
  );

  test('refuses a file without rows, and tells of at most so many lines', () => {
    expect(issuesOf(readAzureTrace('TIMESTAMP,ContextTokens,GeneratedTokens\n', 'f'))).toMatchObject([
      { line: 1, rule: 'must have rows' },
    ]);
    expect(issuesOf(readAzureTrace(`${'wrong\n'.repeat(1_000)}`, 'f'))).toHaveLength(TRACE_ISSUES_MAX);
  });
});

describe('readMooncakeTrace', () => {
  test('tells the blocks of prompts', () => {
    const text = [
      '{"timestamp": 27000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}',
      '{"timestamp": 30000, "input_length": 600, "output_length": 1, "hash_ids": [0, 3]}',
    ].join('\n');
    expect(readMooncakeTrace(text, 'f')).toEqual({
      kind: 'read',
      entries: [
        { atUs: 0, promptTokens: 6758, outputTokens: 500, blocks: [0, 1, 2] },
        { atUs: 3 * S, promptTokens: 600, outputTokens: 1, blocks: [0, 3] },
      ],
    });
  });

  test.each([
    ['{"timestamp": 1', 'must be a JSON object'],
    ['[1]', 'must be a JSON object'],
    ['{"input_length": 1}', 'timestamp must be whole milliseconds of at least 0'],
    [
      '{"timestamp": 1, "input_length": 1.5, "output_length": 1, "hash_ids": []}',
      'input_length must be a whole number of at least 0',
    ],
    [
      '{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": ["a"]}',
      'hash_ids must be a list of whole numbers of at least 0',
    ],
  ])('refuses %s', (line, rule) => {
    expect(issuesOf(readMooncakeTrace(line, 'f'))).toMatchObject([{ line: 1, rule }]);
  });
});

describe('readServegenTrace', () => {
  test('tells windows of a rate with the law of their gaps, silent ones too', () => {
    const text = '600,0,0,,0,0\n1200,1.5,2.3,Gamma,0.25,0.01\n1800,0.5,1.1,Weibull,0.8,0.3\n';
    expect(readServegenTrace(text, 'f')).toEqual({
      kind: 'read',
      entries: [
        { atUs: 0, perSecond: 0, law: { kind: 'gamma', shape: 1 } },
        { atUs: 600 * S, perSecond: 1.5, law: { kind: 'gamma', shape: 0.25 } },
        { atUs: 1_200 * S, perSecond: 0.5, law: { kind: 'weibull', shape: 0.8 } },
      ],
    });
  });

  test.each([
    ['0,1,1,Pareto,1,1', 'law must be Gamma, Weibull, or empty'],
    ['0,1,1,Gamma,0,1', 'shape must be at least 0.001'],
    ['0,x,1,Gamma,1,1', 'rate must be a number of at least 0'],
    ['0,1,1', 'must have 6 fields'],
    ['0,1,1,Gamma,1,1\n0,1,1,Gamma,1,1', 'must not be before the line above'],
  ])('refuses %s', (text, rule) => {
    expect(issuesOf(readServegenTrace(text, 'f'))).toMatchObject([{ rule }]);
  });
});

test('readRows throws all issues of a file as one error', () => {
  const read = (): unknown => readRows('azure', 'a\nb,c,d', 'conv.csv');
  expect(read).toThrow(TraceError);
  expect(read).toThrow(/conv\.csv:1: must be the header .*, got a\nconv\.csv:2: TIMESTAMP must be/);
});
