import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import type { Ending } from './group.ts';
import { TimedValue } from './log-histogram.ts';
import { PHASES_MAX, Phases } from './phases.ts';

function served(inTime: boolean, responseUs: number): Ending {
  const [wait, response, firstByte] = [new TimedValue(), new TimedValue(), new TimedValue()];
  response.set(responseUs);
  firstByte.set(-1);
  return { kind: 'served', inTime, inTimeOfTry: inTime, wait, response, firstByte, workUs: S };
}

describe('Phases', () => {
  test('count users by arrival and work by completion, against what could have been done', () => {
    const phases = new Phases({
      changes: [30 * S, 20 * S, 20 * S, 200 * S],
      window: { from: 10 * S, until: 40 * S },
      classes: ['critical', 'low'],
    });
    phases.arrived(10 * S, 0, 4 * S);
    phases.arrived(29 * S, 1, 40 * S);
    phases.answered(19 * S, 3 * S);
    phases.answered(20 * S, 8 * S);
    phases.answered(39 * S, 5 * S);
    phases.ended(10 * S, 0, served(true, S));
    phases.ended(29 * S, 1, served(false, 2 * S));
    const report = phases.report() ?? {};
    expect(Object.keys(report)).toEqual(['1', '2', '3']);
    expect(report['1']).toMatchObject({ fromSeconds: 10, offeredRatio: 0.4, goodputRatio: 0.3 });
    expect(report['1']?.usedRatio).toBeCloseTo(0.75, 9);
    expect(report['1']?.byClass).toMatchObject({ critical: { attained: 1 }, low: { offered: 0 } });
    // More was offered than could be done: what was done counts against the capacity.
    expect(report['2']).toMatchObject({ fromSeconds: 20, offeredRatio: 4, usedRatio: 0.8 });
    expect(report['2']?.all).toMatchObject({ offered: 1, served: 1, attained: 0 });
    expect(report['2']?.byClass['low']?.responseMs.p95).toBe(2_000);
    // The other half second was left over from the phase before.
    expect(report['3']).toMatchObject({ fromSeconds: 30, offeredRatio: 0, goodputRatio: 0.5, usedRatio: 1 });
  });

  test('are absent where no rate changes within the window', () => {
    const window = { from: 10 * S, until: 40 * S };
    expect(new Phases({ changes: [10 * S, 40 * S], window, classes: ['low'] }).report()).toBeUndefined();
  });

  test('are bounded: of more changes, neighbours are one', () => {
    const changes = Array.from({ length: 250 }, (_, index) => index * S);
    const report = new Phases({ changes, window: { from: 0, until: 250 * S }, classes: ['low'] }).report();
    const starts = Object.values(report ?? {}).map(({ fromSeconds }) => fromSeconds);
    expect(starts.length).toBeLessThanOrEqual(PHASES_MAX);
    expect(starts.slice(0, 3)).toEqual([0, 3, 6]);
  });
});
