import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runMachine, type ScriptEntry } from '../../../test/support/machine-run.ts';
import type { Demand } from './machine.ts';
import { Residency } from './residency.ts';
import { SlotMachine, type SlotMachineOptions } from './slot-machine.ts';

function createMachine(change: Partial<SlotMachineOptions> = {}): SlotMachine {
  const serviceUs = (demand: Demand): number => (demand.kind === 'work' ? demand.workUs : 1);
  return new SlotMachine({ slots: 1, serviceUs, ...change });
}

function start(id: number, at: number, workUs: number, model = 'a'): ScriptEntry {
  return { at, action: { kind: 'start', id, demand: { kind: 'work', workUs }, model } };
}

describe('SlotMachine', () => {
  test('keeps every slot busy while something waits, in order of arrival', () => {
    const entry = fc.record({
      at: fc.integer({ min: 0, max: 300 }),
      workUs: fc.integer({ min: 1, max: 200 }),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(entry, { minLength: 1 }), (slots, entries) => {
        const arrivals = entries.map((arrival, id) => ({ ...arrival, id })).sort((a, b) => a.at - b.at);
        const { ends } = runMachine(
          createMachine({ slots }),
          arrivals.map(({ id, at, workUs }) => start(id, at, workUs)),
        );
        const freeAt = Array.from({ length: slots }, () => 0);
        for (const { id, at, workUs } of arrivals) {
          const soonest = freeAt.indexOf(Math.min(...freeAt));
          freeAt[soonest] = Math.max(at, freeAt[soonest] as number) + workUs;
          expect(ends.get(id)).toBe(freeAt[soonest]);
        }
      }),
    );
  });

  test('stretches what is left of a job when it slows down', () => {
    const { ends } = runMachine(createMachine(), [
      start(1, 0, 100),
      start(2, 0, 100),
      { at: 60, action: { kind: 'speed', factor: 0.25 } },
    ]);
    expect([...ends]).toEqual([
      [1, 60 + 4 * 40],
      [2, 60 + 4 * 40 + 400],
    ]);
  });

  test('frees the slot of a job that is aborted, unless it cannot stop', () => {
    const script = [
      start(1, 0, 100),
      start(2, 0, 100),
      { at: 10, action: { kind: 'abort', id: 1 } } as const,
    ];
    expect(runMachine(createMachine(), script).ends.get(2)).toBe(110);
    expect(runMachine(createMachine({ canAbort: false }), script).ends.get(2)).toBe(200);
  });

  test('loads a model that is not there within the slot, and keeps those used last', () => {
    const residency = new Residency({ modelsMax: 2, swapUs: 1_000, loaded: ['a', 'b', 'c'] });
    const machine = createMachine({ residency });
    const { ends } = runMachine(machine, [
      start(1, 0, 10, 'b'),
      start(2, 100, 10, 'a'),
      start(3, 200, 10, 'c'),
      start(4, 2_000, 10, 'a'),
      start(5, 3_000, 10, 'b'),
    ]);
    expect([...ends.values()]).toEqual([10, 110, 1_210, 2_010, 4_010]);
    expect(machine.swaps).toBe(2);
  });

  test('lets a job wait for a model that has no place while all of them are in use', () => {
    const residency = new Residency({ modelsMax: 1, swapUs: 50, loaded: ['a'] });
    const { ends } = runMachine(createMachine({ slots: 2, residency }), [
      start(1, 0, 100, 'a'),
      start(2, 10, 10, 'b'),
      start(3, 20, 10, 'a'),
    ]);
    expect([...ends]).toEqual([
      [1, 100],
      [2, 160],
      [3, 220],
    ]);
  });

  test('tells the first byte of a text on its way', () => {
    const machine = createMachine({ serviceUs: () => 100, firstByteUs: () => 30 });
    const demand = { kind: 'text', promptTokens: 1, outputTokens: 9 } as const;
    const { firstBytes, ends } = runMachine(machine, [
      { at: 5, action: { kind: 'start', id: 1, demand, noise: 2 } },
    ]);
    expect([firstBytes.get(1), ends.get(1)]).toEqual([65, 205]);
  });

  test('counts the time of its slots that it computed', () => {
    const machine = createMachine({ slots: 2 });
    const { quietAt } = runMachine(machine, [start(1, 0, 100), start(2, 50, 100), start(3, 200, 10)]);
    expect(machine.busyUs(quietAt)).toBe(210);
  });
});
