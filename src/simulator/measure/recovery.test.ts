import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { Recovery } from './recovery.ts';

/** Ill from 100 s to 200 s; the deadline makes 3 s a healthy wait. */
const recovery = (): Recovery => new Recovery({ from: 100 * S, until: 200 * S }, 60 * S);

/** Twenty users in every 10 s. */
function everyHalfSecond(from: number, until: number, tell: (at: number) => void): void {
  for (let at = from * S; at < until * S; at += S / 2) tell(at);
}

describe('Recovery', () => {
  test('of waits counts from the end of the disturbance to two windows in a row that are healthy', () => {
    const watched = recovery();
    everyHalfSecond(0, 100, (at) => watched.waited(S, S, at));
    everyHalfSecond(100, 220, (at) => watched.waited(50 * S, 50 * S, at));
    everyHalfSecond(220, 230, (at) => watched.waited(S, S, at));
    everyHalfSecond(230, 240, (at) => watched.waited(4 * S, 4 * S, at));
    everyHalfSecond(240, 300, (at) => watched.waited(2 * S, 2 * S, at));
    expect(watched.waitsSeconds(300 * S)).toBe(40);
  });

  test('of waits accepts twice what it was before, where that is longer', () => {
    const watched = recovery();
    everyHalfSecond(0, 100, (at) => watched.waited(5 * S, 5 * S, at));
    everyHalfSecond(200, 300, (at) => watched.waited(9 * S, 9 * S, at));
    expect(watched.waitsSeconds(300 * S)).toBe(0);
  });

  test('of waits never comes while more than a twentieth is turned away, or nobody is seen', () => {
    const refusing = recovery();
    everyHalfSecond(200, 300, (at) => {
      if (at % (5 * S) === 0) refusing.turnedAway(at);
      else refusing.waited(0, 0, at);
    });
    expect(refusing.waitsSeconds(300 * S)).toBe(Number.POSITIVE_INFINITY);
    expect(recovery().waitsSeconds(300 * S)).toBe(Number.POSITIVE_INFINITY);
  });

  test('of tries does not count what users waited before them, but those that came to nothing', () => {
    const watched = recovery();
    everyHalfSecond(0, 100, (at) => watched.waited(S, S, at));
    everyHalfSecond(200, 230, (at) => {
      if (at % (2 * S) === 0) watched.tryTurnedAway(at);
      else watched.waited(0, 0, at);
    });
    everyHalfSecond(230, 280, (at) => watched.waited(60 * S, S, at));
    expect(watched.tryWaitsSeconds(280 * S)).toBe(30);
    expect(watched.waitsSeconds(280 * S)).toBe(0);
  });

  test('of goodput compares those who arrive with those before, and asks for two windows', () => {
    const watched = recovery();
    const serve = (at: number, isServed: boolean): void => {
      watched.arrived(at);
      if (isServed) watched.servedInTime(at, at);
    };
    // What the first half of the calm is like does not matter.
    everyHalfSecond(0, 50, (at) => serve(at, false));
    everyHalfSecond(50, 100, (at) => serve(at, true));
    everyHalfSecond(100, 210, (at) => serve(at, false));
    everyHalfSecond(210, 220, (at) => serve(at, true));
    everyHalfSecond(220, 230, (at) => serve(at, at % (5 * S) !== 0));
    everyHalfSecond(230, 260, (at) => serve(at, at % (10 * S) !== 0));
    expect(watched.goodputSeconds(0.95, 260 * S)).toBe(30);
    expect(watched.goodputSeconds(0.98, 260 * S)).toBe(Number.POSITIVE_INFINITY);
    expect(watched.goodputSeconds(0.95, 240 * S)).toBe(Number.POSITIVE_INFINITY);
  });

  test('of answers counts those who were answered late too', () => {
    const watched = recovery();
    const answer = (at: number, { inTime }: { readonly inTime: boolean }): void => {
      watched.arrived(at);
      watched.answered(at);
      if (inTime) watched.servedInTime(at, at);
    };
    everyHalfSecond(0, 100, (at) => answer(at, { inTime: true }));
    everyHalfSecond(200, 220, (at) => watched.arrived(at));
    everyHalfSecond(220, 250, (at) => answer(at, { inTime: false }));
    everyHalfSecond(250, 300, (at) => answer(at, { inTime: true }));
    expect(watched.answersSeconds(0.95, 300 * S)).toBe(20);
    expect(watched.goodputSeconds(0.95, 300 * S)).toBe(50);
  });

  test('of the rate counts answers in time when they are given, by the minute', () => {
    const watched = recovery();
    everyHalfSecond(0, 100, (at) => watched.servedInTime(at - S, at));
    everyHalfSecond(100, 230, (at) => watched.servedInTime(at - 50 * S, at + (at % S === 0 ? 0 : 500 * S)));
    // A tenth too few for ten seconds, and more than before in the fifty after it.
    everyHalfSecond(230, 240, (at) => at % (5 * S) !== 0 && watched.servedInTime(at, at));
    everyHalfSecond(240, 400, (at) => watched.servedInTime(at, at));
    expect(watched.rateSeconds(0.95, 400 * S)).toBe(30);
    expect(watched.rateSeconds(0.95, 290 * S)).toBe(30);
    expect(watched.rateSeconds(0.95, 289 * S)).toBe(Number.POSITIVE_INFINITY);
    expect(recovery().rateSeconds(0.95, 259 * S)).toBe(Number.POSITIVE_INFINITY);
  });
});
