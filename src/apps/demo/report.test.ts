import { describe, expect, it } from 'vitest';
import { createPlan } from './plan.ts';
import { percentile } from './percentile.ts';
import { NO_STALL } from './stall-watch.ts';
import { boundsOf, type RunMeasures, reportOf, type UserRecord } from './report.ts';

const plan = createPlan({ quick: false, seed: 1 });

function user(change: Partial<UserRecord>): UserRecord {
  return {
    classIndex: 0,
    end: 'served',
    attempts: 1,
    firstAtMs: 20_000,
    endedAtMs: 20_100,
    serviceMs: 60,
    deadlineMs: 800,
    workMs: 50,
    consents: false,
    lesser: '',
    isUnmarked: false,
    told: undefined,
    trail: [],
    ...change,
  };
}

function measures(users: UserRecord[], change: Partial<RunMeasures> = {}): RunMeasures {
  return {
    users,
    untypedErrors: 0,
    peakOutstanding: 100,
    peakRssBytes: 1_000_000,
    capacityWorkMs: 100,
    embedding: { served: 1, failed: 0 },
    stalls: { clients: NO_STALL, gateway: NO_STALL, view: NO_STALL },
    ...change,
  };
}

describe('reportOf', () => {
  const users = [
    user({}),
    user({ attempts: 3, endedAtMs: 21_500 }),
    user({ end: 'refused', attempts: 4 }),
    user({ classIndex: 1, end: 'cancelled', attempts: 2 }),
    user({ classIndex: 2, end: 'failed' }),
  ];
  const report = reportOf(plan, measures(users));

  it('adds up, whole and by class', () => {
    for (const part of [report, ...Object.values(report.byClass)]) {
      expect(part.served + part.refused + part.failed + part.cancelled).toBe(part.users);
    }
    expect(report.users).toBe(5);
    expect(Object.values(report.byClass).reduce((sum, part) => sum + part.users, 0)).toBe(5);
  });

  it('counts attempts as offered', () => {
    expect(report.offered).toBe(11);
  });

  it('takes the deadline from the first attempt: served late is served, not attained', () => {
    expect(report.byClass['critical']).toMatchObject({ users: 3, served: 2, attained: 0.33333 });
  });

  it('counts work towards goodput only when it ended in time and inside the spike', () => {
    const early = user({ firstAtMs: 1_000, endedAtMs: 1_100 });
    expect(reportOf(plan, measures([...users, early])).goodputRatio).toBe(0.5);
  });

  it('takes as wait what is not service, and never less than nothing', () => {
    const waits = reportOf(plan, measures([user({}), user({ endedAtMs: 20_050 })])).byClass['critical']
      ?.waitMs;
    expect(waits).toEqual({ p50: 0, p95: 40, p99: 40 });
  });

  it('counts as queued what is beyond the nodes', () => {
    expect(report.peakQueued).toBe(100 - plan.nodes.length);
    expect(reportOf(plan, measures(users, { peakOutstanding: 3 })).peakQueued).toBe(0);
  });

  it('has zeros, not gaps, for a class without users', () => {
    const empty = reportOf(plan, measures([])).byClass['low'];
    expect(empty).toMatchObject({ users: 0, attained: 0, waitMs: { p50: 0 } });
  });
});

describe('critical users who were missed', () => {
  it('are told with what became of every attempt, a bounded number of them, and no one else', () => {
    const trail = [{ sentAtMs: 20_000, endedAtMs: 20_050, kind: 'refused' as const }];
    const late = user({ end: 'refused', trail });
    const missed = reportOf(
      plan,
      measures([user({}), user({ classIndex: 1, end: 'failed' }), late]),
    ).missedCritical;
    expect(missed).toEqual([{ end: 'refused', deadlineMs: 800, trail }]);
    const many = Array.from({ length: 100 }, () => late);
    expect(reportOf(plan, measures(many)).missedCritical).toHaveLength(10);
  });
});

describe('what became of low users', () => {
  const low = (change: Partial<UserRecord>): UserRecord =>
    user({ classIndex: 2, deadlineMs: 16_000, ...change });
  const refused = (waitMs: number, tookMs: number, cameBack = true): UserRecord =>
    low({ end: 'refused', told: { waitMs, tookMs, cameBack } });

  it('counts those in the spike who take less, by what they got in time', () => {
    const users = [
      low({ consents: true, lesser: 'cache' }),
      low({ consents: true, lesser: 'model:x' }),
      low({ consents: true }),
      low({ consents: true, end: 'refused' }),
      low({ consents: true, firstAtMs: 1_000, endedAtMs: 1_100 }),
      low({ isUnmarked: true }),
    ];
    expect(reportOf(plan, measures(users)).consenting).toEqual({
      users: 4,
      useful: 0.75,
      byAnswer: { cache: 1, 'model:x': 1, whole: 1 },
      unmarked: 1,
    });
  });

  it('lets those judge a time who came back when told: true is let in within twice of it', () => {
    const users = [
      refused(1_000, 2_000),
      refused(1_000, 2_001),
      refused(1_000, -1),
      refused(1_000, 900, false),
      low({ end: 'refused' }),
      low({ end: 'refused', consents: true, told: { waitMs: 1, tookMs: 1, cameBack: true } }),
    ];
    expect(reportOf(plan, measures(users)).estimates).toEqual({
      refusedUsers: 5,
      toldNever: 1,
      judged: 3,
      cameTrue: 0.3333,
    });
  });
});

describe('boundsOf', () => {
  const good = reportOf(plan, measures([user({})], { capacityWorkMs: 50 }));
  const consenting = { users: 10, useful: 0.95, byAnswer: {}, unmarked: 0 };
  const holding = { ...good, recoverySeconds: 2, consenting };

  it('holds when every figure is inside its bound', () => {
    expect(boundsOf(holding).every((one) => one.holds)).toBe(true);
  });

  it.each([
    ['untyped errors', { untypedErrors: 1 }],
    ['useful work', { goodputRatio: 0.8999 }],
    ['recovery', { recoverySeconds: 10.1 }],
    ['low users who take less and get something in time', { consenting: { ...consenting, useful: 0.89 } }],
    ['lesser answers that do not say so', { consenting: { ...consenting, unmarked: 1 } }],
    ['peak memory', { peakRssBytes: 400_000_001 }],
  ])('misses on %s', (name, change) => {
    const missed = boundsOf({ ...holding, ...change }).filter((one) => !one.holds);
    expect(missed.map((one) => one.name)).toEqual([name]);
  });
});

describe('percentile', () => {
  it('is a value that was seen, by nearest rank', () => {
    expect(percentile([4, 1, 3, 2], 0.5)).toBe(2);
    expect(percentile([4, 1, 3, 2], 0.95)).toBe(4);
    expect(percentile([], 0.95)).toBe(0);
  });
});
