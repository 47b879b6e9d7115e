import { describe, expect, test } from 'vitest';
import { type HostPressure, pressureBetween, pressurePattern } from './host-pressure.ts';

describe('pressureBetween', () => {
  test('tells parts of the time that passed, and the mean wait of a thread', () => {
    const before = {
      cpuWaitingS: 100,
      memoryStalledS: 3,
      ioStalledS: 7,
      runQueueS: 50,
      timeslices: 1_000,
      switches: 10_000,
      longSwitches: 10,
    };
    const after = {
      cpuWaitingS: 103,
      memoryStalledS: 3,
      ioStalledS: 8,
      runQueueS: 52,
      timeslices: 2_000,
      switches: 10_400,
      longSwitches: 110,
    };
    expect(pressureBetween(before, after, 5_000_000)).toEqual({
      cpuWaiting: 0.6,
      memoryStalled: 0,
      ioStalled: 0.2,
      runQueueUs: 2_000,
      longRunQueue: 0.25,
    });
  });

  test('leaves out what one of the looks did not tell, or what fell since', () => {
    expect(
      pressureBetween({ cpuWaitingS: 100, ioStalledS: 4 }, { ioStalledS: 1, memoryStalledS: 9 }, 5_000_000),
    ).toBeUndefined();
    expect(
      pressureBetween({ cpuWaitingS: 9, ioStalledS: 4 }, { cpuWaitingS: 1, ioStalledS: 5 }, 5e6),
    ).toEqual({ ioStalled: 0.2 });
  });

  test('tells nothing of looks at once, and no part above 1', () => {
    expect(pressureBetween({ cpuWaitingS: 1 }, { cpuWaitingS: 2 }, 1_000)).toBeUndefined();
    expect(pressureBetween({ cpuWaitingS: 1 }, { cpuWaitingS: 2 }, 900_000)).toEqual({ cpuWaiting: 1 });
    expect(
      pressureBetween({ runQueueS: 1, timeslices: 5 }, { runQueueS: 2, timeslices: 5 }, 5e6),
    ).toBeUndefined();
  });
});

describe('pressurePattern', () => {
  const kindOf = (pressure: HostPressure): string | undefined => pressurePattern(pressure)?.kind;

  test('names what the host lacks from a line on, the worst first', () => {
    expect(kindOf({ memoryStalled: 0.1 })).toBe('memory-stalled');
    expect(kindOf({ memoryStalled: 0.09 })).toBeUndefined();
    expect(kindOf({ longRunQueue: 0.05 })).toBe('run-queue');
    expect(kindOf({ longRunQueue: 0.04, runQueueUs: 4_999 })).toBeUndefined();
    expect(kindOf({ runQueueUs: 5_000 })).toBe('run-queue');
    expect(kindOf({ ioStalled: 0.25 })).toBe('io-stalled');
    expect(kindOf({ cpuWaiting: 0.5, ioStalled: 0.24 })).toBe('cpu-starved');
    expect(kindOf({ cpuWaiting: 0.49 })).toBeUndefined();
    expect(kindOf({ cpuWaiting: 1, ioStalled: 1, runQueueUs: 9_000, memoryStalled: 0.2 })).toBe(
      'memory-stalled',
    );
    expect(kindOf({})).toBeUndefined();
  });

  test('says it in a sentence with its number', () => {
    expect(pressurePattern({ runQueueUs: 7_240 })?.says).toContain('wait 7.2 ms for a CPU');
    expect(pressurePattern({ memoryStalled: 0.14 })?.says).toContain('14 % of the time, for want of memory');
  });
});
