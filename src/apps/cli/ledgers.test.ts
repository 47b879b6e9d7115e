import { expect, test } from 'vitest';
import { type LedgersPage, ledgersText } from './ledgers.ts';

const EMPTY: LedgersPage = {
  refusals: { classes: [], examples: [] },
  eta: { classes: [], hints: { kept: 0, broken: 0 } },
  work: { usefulSeconds: 0, wastedSeconds: 0, wastedRatio: 0, wastedByCause: { failed: 0 } },
  failures: [],
};
const EXAMPLE = {
  id: 'abc.1',
  class: 'low',
  reason: 'queue-full',
  node: 'gpu-7',
  refusedAt: 1_000,
  couldStartAt: 1_250,
  couldBeDoneAt: 4_000,
};
const PAGE: LedgersPage = {
  refusals: {
    classes: [
      {
        class: 'low',
        refused: 12,
        couldHaveServed: 3,
        couldNot: 7,
        pending: 1,
        unjudged: 1,
        byReason: { shed: 2, 'queue-full': 10 },
      },
    ],
    examples: [EXAMPLE],
  },
  eta: {
    classes: [{ class: 'low', admission: null, dispatch: { p50: 0.25, p95: 2, bias: 1.104, samples: 40 } }],
    hints: { kept: 3, broken: 1 },
  },
  work: {
    usefulSeconds: 90,
    wastedSeconds: 5,
    wastedRatio: 5 / 95,
    wastedByCause: { failed: 1, deadline: 0, 'client-left': 4 },
  },
  failures: [
    {
      failure: 'server-error',
      status: 500,
      pattern: 'CUDA out of memory *',
      count: 9,
      nodes: 3,
      node: 'gpu-7',
      onNode: 6,
    },
    { failure: 'protocol', status: null, pattern: '', count: 1, nodes: 1, node: 'gpu-1', onNode: 1 },
  ],
};

test('ledgersText tells refusals with their witnesses, errors of predictions, work for nobody by cause, and why attempts failed', () => {
  expect(ledgersText(PAGE, 100).split('\n')).toEqual([
    '12 refused for want of capacity, 3 of them could have been served',
    'CLASS  REFUSED  COULD HAVE  COULD NOT  PENDING  UNJUDGED  REASONS',
    'low    12       3           7          1        1         queue-full 10, shed 2',
    '',
    'The newest that could have been served, where, and how long after the refusal:',
    'ID     CLASS  REASON      NODE   START AFTER  DONE AFTER',
    'abc.1  low    queue-full  gpu-7  250 ms       3.0 s',
    '',
    'CLASS  PREDICTION  OFF BY, P50  P95    BIAS    SAMPLES',
    'low    dispatch    25 %         200 %  x 1.10  40',
    'Clients that came back when told: 3 let in, 1 refused again',
    '',
    'Work of the reference accelerator: 90.0 s useful, 5.0 s (5.3 %) for nobody: client-left 4.0 s,',
    'failed 1.0 s',
    '',
    '10 attempts failed; what nodes and connections said, * for what varies:',
    'FAILED  KIND              NODES            SAID',
    '9       server-error 500  gpu-7 6, 2 more  CUDA out of memory *',
    '1       protocol          gpu-1            -',
  ]);
});

test('ledgersText says what there is nothing to tell of', () => {
  expect(ledgersText(EMPTY, 100).split('\n')).toEqual([
    '0 refused for want of capacity, 0 of them could have been served',
    '',
    'No prediction has come to its end yet. Clients that came back when told: 0 let in, 0 refused again',
    '',
    'Work of the reference accelerator: 0.0 s useful, 0.0 s (0.0 %) for nobody',
    '',
    'No attempt has failed',
  ]);
});

test('ledgersText shows the five newest examples, fits into eighty columns, and lets nobody write control characters', () => {
  const examples = Array.from({ length: 9 }, (_, i) => ({
    ...EXAMPLE,
    id: `${'long'.repeat(10)}.${i}`,
    node: '\u001b[2J'.padEnd(60, 'n'),
  }));
  const text = ledgersText({ ...PAGE, refusals: { ...PAGE.refusals, examples } }, 80);
  expect(text.match(/^long/gm)).toHaveLength(5);
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(text).not.toContain('\u001b');
});
