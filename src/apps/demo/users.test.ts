import { describe, expect, it } from 'vitest';
import { createPlan, lastArrivalMs, spikeEndMs, spikeStartMs } from './plan.ts';
import { ATTEMPTS_MAX, createUserStream, nextStep, type Patience, type UserWish } from './users.ts';

const plan = createPlan({ quick: false, seed: 3 });

function everyone(): UserWish[] {
  const stream = createUserStream(plan);
  const users: UserWish[] = [];
  for (let user = stream.next(); user !== undefined; user = stream.next()) users.push(user);
  return users;
}

const users = everyone();

describe('createUserStream', () => {
  it('gives the same users for the same seed', () => {
    expect(everyone().slice(0, 100)).toEqual(users.slice(0, 100));
  });

  it('follows the rates of the plan in each phase', () => {
    const inSpike = users.filter(
      (user) => user.atMs >= spikeStartMs(plan) && user.atMs < spikeEndMs(plan),
    ).length;
    expect(inSpike / (plan.spikePerS * 75)).toBeCloseTo(1, 1);
    expect((users.length - inSpike) / (plan.calmPerS * ((plan.beforeMs + plan.afterMs) / 1_000))).toBeCloseTo(
      1,
      1,
    );
    expect(plan.spikePerS / plan.calmPerS).toBeCloseTo(12, 9);
  });

  it('keeps arrivals in order and inside the run', () => {
    expect(users.every((user, index) => index === 0 || user.atMs >= (users[index - 1]?.atMs ?? 0))).toBe(
      true,
    );
    expect(users.at(-1)?.atMs).toBeLessThan(lastArrivalMs(plan));
  });

  it('has at least 3,000 critical users, and classes in the stated shares', () => {
    const shares = [0, 1, 2].map(
      (index) => users.filter((user) => user.classIndex === index).length / users.length,
    );
    expect(users.filter((user) => user.classIndex === 0).length).toBeGreaterThanOrEqual(3_000);
    expect(shares.map((share) => share.toFixed(1))).toEqual(['0.1', '0.6', '0.3']);
  });

  it('makes half of the users patient', () => {
    expect(users.filter((user) => user.isPatient).length / users.length).toBeCloseTo(0.5, 1);
  });

  it('lets two fifths of the low users take less, and some of them ask for the same few pictures', () => {
    const low = users.filter((user) => user.classIndex === 2);
    const consenting = users.filter((user) => user.consents);
    expect(consenting.every((user) => user.classIndex === 2)).toBe(true);
    expect(consenting.length / low.length).toBeCloseTo(plan.consentShare, 1);
    const favourites = consenting.filter((user) => user.favourite > 0);
    expect(favourites.length / consenting.length).toBeCloseTo(plan.favouriteShare, 1);
    for (const { favourite } of favourites) {
      const sizes = favourites.filter((user) => user.favourite === favourite).map((user) => user.sizeIndex);
      expect(new Set(sizes).size, 'the same picture has the same size').toBe(1);
    }
  });

  it('gives no deadline below the class and four service times of the fastest node', () => {
    for (const user of users) {
      const classMs = plan.classes[user.classIndex]?.deadlineMs ?? 0;
      const fastestMs = user.workMs / plan.fastestSpeed;
      expect(user.deadlineMs).toBeGreaterThanOrEqual(Math.round(Math.max(classMs, 4 * fastestMs)));
    }
  });
});

describe('nextStep', () => {
  const patience = (change: Partial<Patience> = {}): Patience => ({
    isPatient: true,
    attempts: 1,
    thinkMs: [28, 140],
    uniform: () => 0.5,
    ...change,
  });

  it('ends with the answer', () => {
    expect(nextStep({ kind: 'served', serviceMs: 5, lesser: '', steps: 30 }, patience())).toEqual({
      kind: 'end',
      as: 'served',
    });
  });

  it('lets a patient user wait what the refusal asked, and a little more', () => {
    const refused = { kind: 'refused', retryAfterMs: 1_000, isFinal: false } as const;
    expect(nextStep(refused, patience())).toEqual({ kind: 'again', afterMs: 1_150 });
  });

  it('brings an impatient user back after a click, whatever was asked', () => {
    const refused = { kind: 'refused', retryAfterMs: 1_000, isFinal: true } as const;
    expect(nextStep(refused, patience({ isPatient: false }))).toEqual({ kind: 'again', afterMs: 84 });
  });

  it('lets a patient user give up when told that a retry cannot help', () => {
    const refused = { kind: 'refused', isFinal: true } as const;
    expect(nextStep(refused, patience())).toEqual({ kind: 'end', as: 'refused' });
  });

  it('tries again after a time-out or an error', () => {
    expect(nextStep({ kind: 'timed-out' }, patience()).kind).toBe('again');
    expect(nextStep({ kind: 'failed', isTyped: true }, patience()).kind).toBe('again');
  });

  it('ends after the last attempt as that attempt ended', () => {
    const last = patience({ attempts: ATTEMPTS_MAX });
    expect(nextStep({ kind: 'timed-out' }, last)).toEqual({ kind: 'end', as: 'cancelled' });
    expect(nextStep({ kind: 'failed', isTyped: false }, last)).toEqual({ kind: 'end', as: 'failed' });
    expect(nextStep({ kind: 'refused', isFinal: false }, last)).toEqual({ kind: 'end', as: 'refused' });
  });
});
