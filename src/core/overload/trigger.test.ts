import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { Trigger } from './trigger.ts';

const LIMITS = { enter: 0.85, leave: 0.75, enterUs: 30 * S, leaveUs: 5 * S };

/** One sample a second from `from` on; returns whether it was lit after each. */
function feed(trigger: Trigger, from: number, values: readonly (number | undefined)[]): boolean[] {
  return values.map((value, i) => {
    trigger.observe(value, (from + i) * S, LIMITS);
    return trigger.isLit;
  });
}

const times = (count: number, value: number | undefined): (number | undefined)[] =>
  Array.from({ length: count }, () => value);

describe('Trigger.observe', () => {
  test('lights after the dwell at the threshold itself, and not a sample sooner', () => {
    const trigger = new Trigger();
    const lit = feed(trigger, 0, times(31, 0.85));
    expect(lit.indexOf(true)).toBe(30);
    expect(trigger.since).toBe(30 * S);
  });

  test('begins the dwell anew after one sample below the threshold, or without any', () => {
    for (const gap of [0.849, undefined]) {
      const lit = feed(new Trigger(), 0, [...times(29, 0.9), gap, ...times(31, 0.9)]);
      expect(lit.indexOf(true), String(gap)).toBe(60);
    }
  });

  test('stays lit between the thresholds, whatever it takes', () => {
    const trigger = new Trigger();
    feed(trigger, 0, times(31, 0.9));
    expect(feed(trigger, 31, times(600, 0.75))).not.toContain(false);
  });

  test('goes dark after its own dwell below the lower threshold, or unknown', () => {
    for (const value of [0.74, undefined]) {
      const trigger = new Trigger();
      feed(trigger, 0, times(31, 0.9));
      expect(feed(trigger, 31, [...times(3, value), 0.8, ...times(6, value)]), String(value)).toEqual([
        ...Array.from({ length: 9 }, () => true),
        false,
      ]);
    }
  });

  test('is quiet only when nothing is lit or about to be', () => {
    const trigger = new Trigger();
    expect(trigger.isQuiet).toBe(true);
    feed(trigger, 0, [0.9]);
    expect(trigger.isQuiet, 'about to be lit').toBe(false);
    feed(trigger, 1, [0.1]);
    expect(trigger.isQuiet).toBe(true);
    feed(trigger, 2, times(31, 0.9));
    expect(trigger.isQuiet, 'lit').toBe(false);
  });
});
