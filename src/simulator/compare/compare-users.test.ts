import { describe, expect, test } from 'vitest';
import { policySpec, scenarioSpec, streamSpec } from '../../../test/support/scenarios.ts';
import { S } from '../../../test/support/specs.ts';
import { served, type UserFate, userRows } from '../../../test/support/user-rows.ts';
import { runScenario } from '../run-scenario.ts';
import { COMPARE_CSV_HEAD, compareCsv } from './compare-csv.ts';
import { type Comparison, compareUsers } from './compare-users.ts';

const REFUSED: UserFate = { kind: 'refused', seconds: 0 };
const GONE: UserFate = { kind: 'gave-up', seconds: 10 };
const late = (seconds: number): UserFate => ({ kind: 'served', inTime: false, seconds, node: 1 });
const less = (seconds: number): UserFate => ({ kind: 'degraded', inTime: true, seconds, node: 1 });

function compare(a: readonly UserFate[], b: readonly UserFate[], usersMax?: number): Comparison {
  const rows = (fates: readonly UserFate[]): ReturnType<typeof userRows> => userRows(fates, usersMax);
  return compareUsers({ name: 'a', rows: rows(a) }, { name: 'b', rows: rows(b) });
}

describe('compareUsers', () => {
  test('puts a whole answer in time above a lesser one, a late one and none, and the sooner one above another', () => {
    const ladder: readonly UserFate[] = [served(9), less(1), late(11), GONE];
    for (const [at, better] of ladder.entries())
      for (const worse of ladder.slice(at + 1)) {
        expect(compare([better], [worse])).toMatchObject({ betterUnderA: 1, betterUnderB: 0, equal: 0 });
        expect(compare([worse], [better])).toMatchObject({ betterUnderA: 0, betterUnderB: 1, equal: 0 });
      }
    expect(compare([late(12)], [late(11)])).toMatchObject({ betterUnderB: 1 });
    expect(compare([served(2)], [served(2.001)])).toMatchObject({ betterUnderA: 1 });
    expect(compare([served(2)], [served(2.0009)])).toMatchObject({ equal: 1 });
    expect(compare([GONE], [REFUSED])).toMatchObject({ equal: 1 });
  });

  test('counts by class who was answered in time under which', () => {
    const low = { className: 'low' };
    const comparison = compare(
      [served(1), served(1), REFUSED, late(11), served(1, low), { ...GONE, ...low }],
      [served(2), REFUSED, less(1), GONE, late(20), served(1, low)],
    );
    expect(comparison.byClass).toEqual({
      critical: {
        users: 4,
        attainedUnderBoth: 1,
        attainedOnlyUnderA: 1,
        attainedOnlyUnderB: 1,
        attainedUnderNeither: 1,
      },
      low: {
        users: 2,
        attainedUnderBoth: 0,
        attainedOnlyUnderA: 1,
        attainedOnlyUnderB: 1,
        attainedUnderNeither: 0,
      },
    });
  });

  test('tells the difference of responses by nearest rank, of those who were answered under both', () => {
    const fates = (step: number): readonly UserFate[] =>
      Array.from({ length: 100 }, (_, index) => served(100 + step * (index + 1)));
    const { responseDifferenceMs } = compare([...fates(0), REFUSED], [...fates(1), served(1)]);
    expect(responseDifferenceMs).toEqual({
      users: 100,
      mean: 50_500,
      p1: 1_000,
      p5: 5_000,
      p50: 50_000,
      p95: 95_000,
      p99: 99_000,
    });
  });

  test('shows the ten who gained and lost most: the larger step, the class, then the time', () => {
    const low = { className: 'low' };
    const sooner = Array.from({ length: 12 }, (_, index) => [served(20 + index), served(1)] as const);
    const pairs: readonly (readonly [UserFate, UserFate])[] = [
      ...sooner,
      [late(12), served(1)],
      [{ ...REFUSED, ...low }, served(3, low)],
      [REFUSED, served(3)],
      [REFUSED, served(2)],
      [served(1, { node: 0 }), REFUSED],
    ];
    const { gainedMost, lostMost } = compare(
      pairs.map(([a]) => a),
      pairs.map(([, b]) => b),
    );
    expect(gainedMost.map(({ user }) => user)).toEqual([15, 14, 13, 12, 11, 10, 9, 8, 7, 6]);
    expect(lostMost).toEqual([
      {
        user: 16,
        stream: 'chat',
        className: 'critical',
        tenant: 't',
        arrivedSeconds: 16,
        workSeconds: 1,
        deadlineSeconds: 10,
        a: { outcome: 'served', node: 'n-1', tries: 1, waitMs: 500, responseMs: 1_000, endedMs: 1_000 },
        b: { outcome: 'refused', node: null, tries: 1, waitMs: null, responseMs: null, endedMs: 0 },
        responseDifferenceMs: null,
      },
    ]);
  });

  test('knows users again by their draw, and counts those who came under one policy only', () => {
    const comparison = compare(
      [served(1, { draw: 0 }), served(1, { draw: 7 }), served(1, { draw: 3 })],
      [served(2, { draw: 3 }), served(1, { draw: 0 }), served(1, { draw: 9 })],
    );
    expect(comparison).toMatchObject({ users: 2, onlyUnderA: 1, onlyUnderB: 1, betterUnderA: 1, equal: 1 });
    expect(comparison.lostMost.map(({ user }) => user)).toEqual([2]);
  });

  test('says from which user on nobody is compared', () => {
    const fates = [served(1), served(1), served(1)];
    expect(compare(fates, fates, 2)).toMatchObject({ users: 2, stoppedAtUser: 2 });
    expect(compare(fates, fates)).not.toHaveProperty('stoppedAtUser');
  });

  test('meets the same users under every policy of the simulator, closed loops included', () => {
    const closed = streamSpec({ name: 'loop', arrivals: { kind: 'closed', users: 5, thinkMeanUs: 2 * S } });
    const open = streamSpec({ sizes: { kind: 'work', meanUs: S, sigma: 1 } });
    const run = (streams: readonly (typeof open)[], policy: string): Parameters<typeof compareUsers>[0] => {
      const scenario = scenarioSpec({ streams, spanUs: 100 * S });
      const { users } = runScenario(scenario, policySpec({ policy }), 1, { usersMax: 10_000 });
      if (users === undefined) throw new Error('users are kept');
      return { name: policy, rows: users };
    };
    const alone = compareUsers(run([open], 'spillway'), run([open], 'round-robin'));
    expect(alone).toMatchObject({ onlyUnderA: 0, onlyUnderB: 0 });
    expect(alone.users).toBeGreaterThan(150);
    const [a, b] = [run([open, closed], 'spillway'), run([open, closed], 'round-robin')];
    const mixed = compareUsers(a, b);
    expect(mixed.users).toBeGreaterThan(alone.users);
    expect(mixed.onlyUnderA + mixed.onlyUnderB).toBeGreaterThan(0);
    for (const { className, workSeconds } of [...mixed.gainedMost, ...mixed.lostMost])
      expect([className, workSeconds > 0]).toEqual(['normal', true]);
  });
});

describe('compareCsv', () => {
  test('gives a line for each user, quoted where it must be, in pieces', () => {
    const rows = userRows([
      served(1.25, { tenant: 'a,"b"' }),
      ...Array.from({ length: 6_000 }, () => served(2)),
    ]);
    const other = userRows([REFUSED, ...Array.from({ length: 6_000 }, () => served(2.5, { node: 1 }))]);
    const pieces = [...compareCsv('2x', { name: 'a', rows }, { name: 'b', rows: other })];
    expect(pieces.length).toBe(2);
    const lines = pieces.join('').trimEnd().split('\n');
    expect(lines.length).toBe(6_001);
    expect(lines[0]).toBe(
      '2x,a,b,0,chat,critical,"a,""b""",0,1,10,served,n-1,1,625,1250,1250,refused,,1,,,0,',
    );
    expect(lines[6_000]).toBe(
      '2x,a,b,6000,chat,critical,t,6000,1,10,served,n-1,1,1000,2000,2000,served,n-2,1,1250,2500,2500,500',
    );
    expect(COMPARE_CSV_HEAD.split(',').length).toBe(lines[6_000]?.split(',').length);
  });
});
