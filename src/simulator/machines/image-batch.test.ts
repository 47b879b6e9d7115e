import { describe, expect, test } from 'vitest';
import { runMachine, type ScriptEntry } from '../../../test/support/machine-run.ts';
import { ImageBatch, type ImageBatchOptions } from './image-batch.ts';
import type { Demand } from './machine.ts';
import { Residency } from './residency.ts';

const unitsOf = (demand: Demand): number => (demand.kind === 'image' ? demand.units : 1);

function createMachine(change: Partial<ImageBatchOptions> = {}): ImageBatch {
  return new ImageBatch({
    sizeMax: 4,
    fixedUs: () => 100,
    variableUs: (demand) => 10 * unitsOf(demand),
    size: unitsOf,
    ...change,
  });
}

function start(id: number, at: number, units: number, model = 'a'): ScriptEntry {
  return { at, action: { kind: 'start', id, demand: { kind: 'image', units }, model } };
}

describe('ImageBatch', () => {
  test('computes who waits in one pass, which ends for all of them together', () => {
    const { ends } = runMachine(createMachine(), [
      start(1, 0, 1),
      start(2, 5, 2),
      start(3, 6, 2),
      start(4, 7, 1),
    ]);
    expect([...ends]).toEqual([
      [1, 110],
      [2, 110 + 100 + 40],
      [3, 110 + 100 + 40],
      [4, 250 + 110],
    ]);
  });

  test('computes alone what is larger than a batch', () => {
    const { ends } = runMachine(createMachine(), [start(1, 0, 1), start(2, 1, 9), start(3, 1, 1)]);
    expect([...ends.values()]).toEqual([110, 110 + 190, 300 + 110]);
  });

  test('puts pictures of one model together, and begins with who waits longest', () => {
    const residency = new Residency({ modelsMax: 1, swapUs: 1_000, loaded: ['a'] });
    const machine = createMachine({ residency });
    const { ends } = runMachine(machine, [
      start(1, 0, 1, 'a'),
      start(2, 1, 1, 'b'),
      start(3, 2, 1, 'a'),
      start(4, 3, 1, 'b'),
    ]);
    expect(ends.get(2)).toBe(110 + 1_000 + 120);
    expect(ends.get(4)).toBe(ends.get(2));
    expect(ends.get(3)).toBe(1_230 + 1_000 + 110);
    expect(machine.swaps).toBe(2);
  });

  test('gives a pass up when the last one leaves, unless it cannot stop', () => {
    const script = [start(1, 0, 1), start(2, 5, 1), { at: 50, action: { kind: 'abort', id: 1 } } as const];
    expect(runMachine(createMachine(), script).ends.get(2)).toBe(160);
    expect(runMachine(createMachine({ canAbort: false }), script).ends.get(2)).toBe(220);
  });

  test('does not shorten a pass that somebody else is in', () => {
    const { ends } = runMachine(createMachine(), [
      start(1, 0, 1),
      start(2, 5, 1),
      start(3, 5, 1),
      { at: 120, action: { kind: 'abort', id: 2 } },
    ]);
    expect(ends.get(3)).toBe(110 + 120);
  });
});
