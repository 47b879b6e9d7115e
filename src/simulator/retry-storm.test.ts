/**
 * Overload with users who come back, in virtual time. That hints come true, that first attempts come before retries, and that
 * a storm ends with its cause; each beside the same run without the protection, so that it is seen to be the reason.
 */
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../test/support/depth.ts';
import { nodeSpec, S } from '../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../core/config/defaults.ts';
import { type Crowd, ReturningUsers, type User } from '../../test/support/returning-users.ts';
import { VirtualRun } from '../../test/support/virtual-run.ts';

const SPEEDS = [1, 0.5, 0.25, 1];
const NODES = 20;
/** Tasks of a second of reference work that the fleet does per second. */
const CAPACITY_PER_S: number = Array.from({ length: NODES }, (_, i) => SPEEDS[i % 4] as number).reduce(
  (sum, speed) => sum + speed,
);
const CALM = 0.8;
const SPIKE_FROM: number = 60 * S;
const SPIKE_UNTIL: number = 120 * S;
const END: number = 180 * S;

interface Spike {
  readonly times: number;
  readonly crowd: Partial<Crowd>;
  readonly overrides?: SchedulerOverrides;
  readonly deadlineUs?: number;
  readonly seed?: number;
}

/** A minute of calm, one of overload and one of calm, and time for everybody to come back. */
function runSpike({ times, crowd, overrides = {}, deadlineUs = 40 * S, seed = 1 }: Spike): ReturningUsers {
  const users = new ReturningUsers(
    {
      manner: () => 'obedient',
      triesMax: 20,
      tellsCount: true,
      task: (_, prng) => ({ workUs: Math.round(S * (0.4 + 1.2 * prng.nextRatio())), deadlineUs }),
      ...crowd,
    },
    seed,
  );
  const run = new VirtualRun(defaultSchedulerConfig({ seed, ...overrides }), users);
  for (let i = 0; i < NODES; i++)
    run.addNode({ spec: nodeSpec(`n${i}`), speed: SPEEDS[i % 4] as number, sigma: 0.2 });
  users.arrive(run, { from: 0, until: SPIKE_FROM, perS: CALM * CAPACITY_PER_S });
  users.arrive(run, { from: SPIKE_FROM, until: SPIKE_UNTIL, perS: times * CAPACITY_PER_S });
  users.arrive(run, { from: SPIKE_UNTIL, until: END, perS: CALM * CAPACITY_PER_S });
  run.runUntil(END + 200 * S);
  return users;
}

/** Those who were told a time, and how the time that it took to be let in compares with it. */
function truth(users: readonly User[]): { readonly told: number; readonly within2x: number } {
  const ratios = users.flatMap(({ refusal, admittedAt }) => {
    if (refusal === undefined || refusal.hint.afterUs > 60 * S) return [];
    const tookUs = admittedAt === undefined ? Number.POSITIVE_INFINITY : admittedAt - refusal.at;
    return [tookUs / refusal.hint.afterUs];
  });
  return { told: ratios.length, within2x: ratios.filter((ratio) => ratio <= 2).length / ratios.length };
}

function servedShare(users: readonly User[], from: number, until: number): number {
  const come = users.filter(({ arrivedAt }) => arrivedAt >= from && arrivedAt < until);
  return come.filter(({ servedAt }) => servedAt !== undefined).length / come.length;
}

const CLASSES: Crowd['task'] = (user, prng) => ({
  workUs: Math.round(S * (0.4 + 1.2 * prng.nextRatio())),
  deadlineUs: 40 * S,
  className: user % 10 === 0 ? 'critical' : user % 2 === 0 ? 'normal' : 'low',
  tenant: `t${user % 3}`,
});

describe('estimates come true within twice for four of five who come back when they were told', () => {
  test.each([1, 2, 3].slice(0, drawsOf(3)))('when all come back, at twice the capacity (seed %i)', (seed) => {
    const { told, within2x } = truth(runSpike({ times: 2, crowd: {}, seed }).users);
    expect(told).toBeGreaterThan(900);
    expect(within2x).toBeGreaterThanOrEqual(0.8);
  });

  test('for each class by itself, with three tenants in each', () => {
    const { users } = runSpike({ times: 2, crowd: { task: CLASSES } });
    for (const name of ['normal', 'low']) {
      const { told, within2x } = truth(users.filter(({ className }) => className === name));
      expect(told, name).toBeGreaterThan(100);
      expect(within2x, name).toBeGreaterThanOrEqual(0.8);
    }
  });

  test('when only a third come back: the others keep no place, and the waits are short', () => {
    const manner: Crowd['manner'] = (user) => (user % 3 === 0 ? 'obedient' : 'never');
    const third = runSpike({ times: 2, crowd: { manner } }).users.filter(
      ({ manner: own }) => own === 'obedient',
    );
    const { told, within2x } = truth(third);
    expect(told).toBeGreaterThan(200);
    expect(within2x).toBeGreaterThanOrEqual(0.8);
    const mean = (users: readonly User[]): number => {
      const waits = users.flatMap(({ refusal }) => (refusal === undefined ? [] : [refusal.hint.afterUs]));
      return waits.reduce((sum, wait) => sum + wait, 0) / waits.length;
    };
    expect(mean(third)).toBeLessThan(0.5 * mean(runSpike({ times: 2, crowd: {} }).users));
  });

  test('and they are no later than needed: who comes at half of the time is seldom let in', () => {
    const manner: Crowd['manner'] = (user) => (user % 20 === 0 ? 'half-way' : 'obedient');
    const { users } = runSpike({ times: 2, crowd: { manner, triesMax: 2 } });
    const early = users.filter(
      ({ manner: own, refusal }) =>
        own === 'half-way' && refusal !== undefined && refusal.at < SPIKE_UNTIL - 20 * S,
    );
    const isLetIn = ({ admittedAt }: User): boolean => admittedAt !== undefined;
    expect(early.length).toBeGreaterThan(30);
    expect(early.filter(isLetIn).length / early.length).toBeLessThan(0.4);
  });

  test('without promised places they do not, and the fleet does no more for it', () => {
    const without = runSpike({ times: 2, crowd: {}, overrides: { gates: { 'retry-shed': 'off' } } }).users;
    expect(truth(without).within2x).toBeLessThan(0.5);
    const kept = runSpike({ times: 2, crowd: {} }).users;
    const inSpike = (users: readonly User[]): number =>
      users.filter(({ servedAt = 0 }) => servedAt >= SPIKE_FROM && servedAt < SPIKE_UNTIL).length;
    expect(inSpike(kept) / inSpike(without)).toBeGreaterThan(0.95);
  });
});

describe('a storm of users who try three times more at once', () => {
  const storm = (overrides: SchedulerOverrides): readonly User[] =>
    runSpike({
      times: 2.5,
      crowd: { manner: () => 'at-once', triesMax: 4 },
      overrides,
      deadlineUs: 10 * S,
    }).users;
  const before = (users: readonly User[]): number => servedShare(users, 20 * S, SPIKE_FROM);
  const after = (users: readonly User[]): number => servedShare(users, SPIKE_UNTIL + 10 * S, END);

  test('ends with its cause: as many are served ten seconds after it as before', () => {
    const users = storm({});
    expect(before(users)).toBeGreaterThan(0.98);
    expect(after(users) / before(users)).toBeGreaterThanOrEqual(0.98);
  });

  test('goes on without its cause where nothing is refused and nodes take turns', () => {
    const users = storm({ policy: 'round-robin' });
    expect(after(users) / before(users)).toBeLessThan(0.8);
  });

  test('is shed before those who ask for the first time', () => {
    const firstTries = (users: readonly User[]): number => {
      const come = users.filter(({ arrivedAt }) => arrivedAt >= SPIKE_FROM && arrivedAt < SPIKE_UNTIL);
      return come.filter(({ servedAt, tries }) => servedAt !== undefined && tries === 1).length / come.length;
    };
    const on = firstTries(storm({}));
    const off = firstTries(storm({ gates: { 'retry-shed': 'off' } }));
    expect(on / off).toBeGreaterThan(1.15);
  });

  test('is known by its bodies where clients do not say that they try again', () => {
    const count = (overrides: SchedulerOverrides): number =>
      runSpike({
        times: 2.5,
        crowd: { manner: () => 'at-once', triesMax: 4, tellsCount: false },
        overrides,
        deadlineUs: 10 * S,
      }).refusedTries.get('shed') ?? 0;
    expect(count({ gates: { ladder: 'off' } })).toBeGreaterThan(1_000);
    expect(count({ gates: { ladder: 'off', 'retry-shed': 'off' } })).toBe(0);
  });
});
