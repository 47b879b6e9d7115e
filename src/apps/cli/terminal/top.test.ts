import { describe, expect, test } from 'vitest';
import type { Picture, WatchedFleet, WatchedNode } from '../../../edge/admin/picture.ts';
import type { Finding } from '../signals.ts';
import { type CountSample, countsOf, RATE_WINDOW_MS, ratesOf, withSample } from './rates.ts';
import { topParts } from './top-lines.ts';
import { type Sort, type TopInputs, topView } from './top-view.ts';

const PAGE = `# TYPE spillway_requests_total counter
spillway_requests_total{class="critical",model="a\\"b",outcome="served"} 10
spillway_requests_total{class="critical",model="m",outcome="served"} 5
spillway_requests_total{class="critical",model="m",outcome="shed"} 3
spillway_requests_total{class="critical",model="m",outcome="node-failed"} 1
spillway_requests_total{class="critical",model="m",outcome="cancelled"} 7
spillway_requests_total{class="low",model="m",outcome="degraded"} 2
spillway_requests_total{class="",model="m",outcome="unknown-model"} 9
spillway_queue_bytes 12
`;

function sample(at: number, served: number, refused = 0): CountSample {
  return { at, byClass: { normal: { served, degraded: 0, refused, failed: 0 } } };
}

describe('countsOf', () => {
  test('sums by class over models, and leaves out what is neither good nor bad', () => {
    expect(countsOf(PAGE)).toEqual({
      critical: { served: 15, degraded: 0, refused: 3, failed: 1 },
      low: { served: 0, degraded: 2, refused: 0, failed: 0 },
    });
  });
});

describe('ratesOf', () => {
  test('are differences over the window, unknown before there are two samples', () => {
    expect(ratesOf([sample(0, 5)], 'normal')).toBeUndefined();
    expect(ratesOf([sample(0, 5), sample(2_000, 11, 2)], 'normal')).toEqual({
      servedPerS: 3,
      degradedPerS: 0,
      refusedPerS: 1,
      failedPerS: 0,
      servedRatio: 0.75,
    });
    expect(ratesOf([sample(0, 5), sample(2_000, 5)], 'normal')?.servedRatio).toBeNull();
    expect(ratesOf([sample(0, 5), sample(2_000, 5)], 'other')?.servedPerS).toBe(0);
  });

  test('withSample forgets what is older than the window', () => {
    let samples: readonly CountSample[] = [];
    for (let at = 0; at <= 5 * RATE_WINDOW_MS; at += 1_000) samples = withSample(samples, sample(at, at));
    expect(samples).toHaveLength(RATE_WINDOW_MS / 1_000 + 1);
  });

  test('withSample begins anew after the gateway was started again', () => {
    const samples = withSample(withSample([], sample(0, 100)), sample(1_000, 1));
    expect(samples).toEqual([sample(1_000, 1)]);
  });
});

const FLEET: WatchedFleet = {
  fleet: 1,
  states: ['active', 'ejected'],
  ids: ['a', 'b', 'a-node-with-a-very-long-name-of-its-own'],
  total: 3,
};
const ROWS: readonly WatchedNode[] = [
  [0, 500, 1, 2, 4, 1.5],
  [1, 9_000, 0.2, 0, null, null],
  [0, 100, 0.9, 4, 4, 0.5],
];

function finding(change: Partial<Finding>): Finding {
  const subject = { kind: 'node', id: 'b' };
  const told = { since: 0, evidence: {}, says: 'It looks well and is not', remedy: '', docs: '' };
  return { signal: 'latched', severity: 'warn', subject, ...told, ...change };
}

function inputs(change: Partial<TopInputs> = {}): TopInputs {
  const group = { depth: 12, workMs: 9_000, oldestWaitMs: 3_210 };
  const picture = {
    at: 60_000,
    ready: true,
    queue: { ...group, bytes: 0, running: 6, byClass: { normal: group, low: { ...group, depth: 0 } } },
    retryBudget: 0.42,
    ladder: { stage: 2, model: 'm', unblock: 'A queue below 4 s for 10 s' },
    nodes: { fleet: 1, byState: { active: 2, ejected: 1 }, rows: ROWS },
  } as unknown as Picture;
  const samples = [sample(0, 0), sample(2_000, 30, 10)];
  return { picture, fleet: FLEET, samples, signals: [finding({}), finding({ severity: 'page' })], ...change };
}

function screenOf(columns: number, change?: Partial<TopInputs>): string[] {
  const { head, nodes } = topParts(topView(inputs(change), 'drain'), { columns });
  return [...head, ...nodes].map(({ text }) => text);
}

describe('topView', () => {
  test.each<[Sort, string[]]>([
    ['drain', ['b', 'a', 'a-node-with-a-very-long-name-of-its-own']],
    ['rate', ['a-node-with-a-very-long-name-of-its-own', 'a', 'b']],
    ['health', ['b', 'a-node-with-a-very-long-name-of-its-own', 'a']],
    ['busy', ['a-node-with-a-very-long-name-of-its-own', 'a', 'b']],
    ['name', ['a', 'a-node-with-a-very-long-name-of-its-own', 'b']],
  ])('sorts nodes by %s, what needs looking at first', (sort, ids) => {
    expect(topView(inputs(), sort).nodes.rows.map(({ id }) => id)).toEqual(ids);
  });

  test('keeps unknown apart from zero', () => {
    const view = topView(inputs({ samples: [], signals: undefined }), 'name');
    expect(view.classes[0]?.rates).toBeNull();
    expect(view.signals).toBeNull();
    expect(view.nodes.rows[2]).toMatchObject({ slots: null, rate: null, state: 'ejected' });
  });
});

describe('topParts', () => {
  test('tells what is wrong first, then classes, then nodes', () => {
    expect(screenOf(80)).toEqual([
      '12 waiting, 6 running, oldest 3.2 s',
      'ladder 2 (m), retry budget 42 %: A queue below 4 s for 10 s',
      'page  latched: node b, for 60.0 s',
      '      It looks well and is not',
      'warn  latched: node b, for 60.0 s',
      '      It looks well and is not',
      '',
      'CLASS   WAIT  OLDEST  SERVED  SERVED/S  REFUSED/S  FAILED/S  LESSER/S',
      'normal  12    3.2 s   75.0 %  15        5.0        -         -',
      'low     0     -       -       -         -          -         -',
      '',
      '3 nodes: 2 active, 1 ejected',
      'NODE                                     STATE    BUSY  DRAIN   RATE  HEALTH',
      'b                                        ejected  0/?   9.0 s   ?     0.20',
      'a                                        active   2/4   500 ms  1.50  1.00',
      'a-node-with-a-very-long-name-of-its-own  active   4/4   100 ms  0.50  0.90',
    ]);
  });

  test.each([20, 40, 60])('keeps what matters in %i columns', (columns) => {
    const screen = screenOf(columns);
    const tables = screen.filter((line) => /^(CLASS|normal|NODE|a-node|b )/.test(line));
    expect(tables.length).toBeGreaterThanOrEqual(4);
    expect(Math.max(...tables.map((line) => line.length))).toBeLessThanOrEqual(columns);
  });

  test('shows a few findings and counts the rest', () => {
    const screen = screenOf(80, { signals: Array.from({ length: 9 }, () => finding({})) });
    expect(screen).toContain('and 4 more: spillway signals');
  });
});
