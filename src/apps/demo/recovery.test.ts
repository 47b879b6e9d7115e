import { describe, expect, it } from 'vitest';
import { findRecovery, type WaitSample } from './recovery.ts';

const QUESTION = { spikeStartMs: 10_000, spikeEndMs: 20_000, untilMs: 36_000, deadlineMs: 2_000 };

/** Ten users a second; `waitOf` decides their wait by the instant they came. */
function samples(waitOf: (atMs: number) => number): WaitSample[] {
  return Array.from({ length: 360 }, (_, index) => ({ cameAtMs: index * 100, waitMs: waitOf(index * 100) }));
}

describe('findRecovery', () => {
  it('is at once when waits are normal from the end of the spike on', () => {
    const calm = samples((at) => (at >= 10_000 && at < 20_000 ? 5_000 : 10));
    expect(findRecovery({ ...QUESTION, samples: calm })).toEqual({ kind: 'recovered', afterMs: 0 });
  });

  it('counts from the first instant from which five seconds hold', () => {
    const slow = samples((at) => (at >= 10_000 && at < 23_000 ? 5_000 : 10));
    expect(findRecovery({ ...QUESTION, samples: slow })).toEqual({ kind: 'recovered', afterMs: 3_000 });
  });

  it('starts again when waits rise once more', () => {
    const twice = samples((at) =>
      at >= 10_000 && at < 26_000 && (at < 21_000 || at >= 25_000) ? 5_000 : 10,
    );
    expect(findRecovery({ ...QUESTION, samples: twice })).toEqual({ kind: 'recovered', afterMs: 6_000 });
  });

  it('allows twice the wait from before the spike when that is more than 5 % of the deadline', () => {
    const busy = samples((at) => (at < 10_000 ? 300 : 590));
    expect(findRecovery({ ...QUESTION, samples: busy })).toEqual({ kind: 'recovered', afterMs: 0 });
  });

  it('does not take for normal what users waited who came before the spike and waited into it', () => {
    const caught = samples((at) => (at >= 9_000 ? 5_000 : 10));
    expect(findRecovery({ ...QUESTION, samples: caught }).kind).toBe('not-seen');
  });

  it('tells how long was watched when it does not see one', () => {
    const never = samples((at) => (at >= 10_000 ? 5_000 : 10));
    expect(findRecovery({ ...QUESTION, samples: never })).toEqual({ kind: 'not-seen', observedMs: 16_000 });
  });

  it('does not take silence for recovery', () => {
    const silent = samples(() => 10).filter((one) => one.cameAtMs < 20_000);
    expect(findRecovery({ ...QUESTION, samples: silent }).kind).toBe('not-seen');
  });
});
