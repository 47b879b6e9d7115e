import { describe, expect, test } from 'vitest';
import { DEFAULT_HEALTH } from '../config/defaults.ts';
import { Breaker } from './breaker.ts';
import { OutcomeWindow } from './outcome-window.ts';

const S = 1_000_000;
const HEALTH = { ...DEFAULT_HEALTH, ejectMs: 5_000, ejectMsMax: 60_000, slowStartTasks: 2 };

describe('Breaker', () => {
  test('sleeps 5 s, twice as long each time its probe fails, up to the maximum', () => {
    const breaker = new Breaker();
    const sleeps: number[] = [];
    for (let i = 0, now = 0; i < 6; i++) {
      breaker.open(now, HEALTH);
      sleeps.push((breaker.openUntil - now) / S);
      now = breaker.openUntil;
    }
    expect(sleeps).toEqual([5, 10, 20, 40, 60, 60]);
  });

  test('keeps the later end when it is opened again meanwhile', () => {
    const breaker = new Breaker();
    breaker.restore({ openForUs: 50 * S, opens: 0, isTrial: true }, 0);
    breaker.open(0, HEALTH);
    expect(breaker.openUntil).toBe(50 * S);
  });

  test('lets one probe through when its sleep is over, and another when that one ended without telling anything', () => {
    const breaker = new Breaker();
    breaker.open(0, HEALTH);
    expect(breaker.passes(1, 5 * S - 1, HEALTH)).toBe(false);
    expect([1, 2, 1].map((id) => breaker.passes(id, 5 * S, HEALTH))).toEqual([true, false, true]);
    breaker.release(2);
    expect(breaker.passes(3, 5 * S, HEALTH)).toBe(false);
    breaker.release(1);
    expect(breaker.passes(3, 5 * S, HEALTH)).toBe(true);
  });

  test('does not wait for ever for a probe that does not end: another may try after the first sleep', () => {
    const breaker = new Breaker();
    breaker.open(0, HEALTH);
    breaker.passes(1, 5 * S, HEALTH);
    expect(breaker.passes(2, 10 * S - 1, HEALTH)).toBe(false);
    expect(breaker.passes(2, 10 * S, HEALTH)).toBe(true);
  });

  test('heeds nothing that began before its sleep was over', () => {
    const breaker = new Breaker();
    expect(breaker.heeds(0)).toBe(true);
    breaker.open(S, HEALTH);
    expect([0, S, 6 * S - 1, 6 * S].map((at) => breaker.heeds(at))).toEqual([false, false, false, true]);
  });

  test('is closed by one success, and sleeps 5 s again only after proof', () => {
    const breaker = new Breaker();
    breaker.open(0, HEALTH);
    breaker.succeeded(HEALTH);
    expect([breaker.state(5 * S), breaker.opens]).toEqual(['closed', 1]);
    breaker.succeeded(HEALTH);
    expect(breaker.opens).toBe(0);
  });
});

describe('OutcomeWindow', () => {
  function windowOf(outcomes: string, everyUs: number): OutcomeWindow {
    const window = new OutcomeWindow();
    outcomes.split('').forEach((outcome, i) => window.record(outcome === '+', i * everyUs));
    return window;
  }

  test('is over its limit when half of 20 outcomes within ten seconds failed, and not before there are 20', () => {
    expect(windowOf('-'.repeat(19), S / 10).isOverLimit(2 * S)).toBe(false);
    expect(windowOf('+-'.repeat(10), S / 10).isOverLimit(2 * S)).toBe(true);
    expect(windowOf('++-'.repeat(7), S / 10).isOverLimit(2 * S)).toBe(false);
  });

  test('judges a busy model by all of the last ten seconds, so that a run of bad luck is no verdict', () => {
    expect(windowOf(`${'-'.repeat(30)}${'+'.repeat(31)}`, S / 10).isOverLimit(6 * S)).toBe(false);
    expect(windowOf(`${'+'.repeat(80)}${'-'.repeat(20)}`, S / 100).isOverLimit(S)).toBe(false);
    expect(windowOf(`${'+'.repeat(80)}${'-'.repeat(50)}`, S / 100).isOverLimit(1.3 * S)).toBe(true);
    expect(windowOf(`${'+'.repeat(80)}${'-'.repeat(20)}`, S).isOverLimit(100 * S)).toBe(true);
  });

  test('judges a slow model over ten or more that reach further back than ten seconds', () => {
    expect(windowOf('-'.repeat(9), 5 * S).isOverLimit(45 * S)).toBe(false);
    expect(windowOf('-'.repeat(10), 5 * S).isOverLimit(50 * S)).toBe(true);
    expect(windowOf('-'.repeat(10), S / 100).isOverLimit(S)).toBe(false);
  });

  test('forgets what is older than ten minutes', () => {
    const window = windowOf('-'.repeat(20), S);
    expect(window.isOverLimit(600 * S)).toBe(true);
    expect(window.isOverLimit(612 * S)).toBe(false);
    expect(window.size).toBe(8);
  });
});
