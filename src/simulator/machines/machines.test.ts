/** What holds for every kind of machine. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runMachine, type ScriptEntry } from '../../../test/support/machine-run.ts';
import { ImageBatch } from './image-batch.ts';
import type { Demand, Machine } from './machine.ts';
import { PrefixCache } from './prefix-cache.ts';
import { Residency } from './residency.ts';
import { SlotMachine } from './slot-machine.ts';
import { TextBatch } from './text-batch.ts';

interface Kind {
  readonly name: string;
  readonly create: (canAbort: boolean) => Machine;
  /** Relative error of what it says of its throughput. */
  readonly throughputError: number;
}

const residency = (): Residency => new Residency({ modelsMax: 2, swapUs: 700, loaded: ['a'] });
const unitsOf = (demand: Demand): number => (demand.kind === 'text' ? demand.outputTokens : 1);

const KINDS: readonly Kind[] = [
  {
    name: 'one slot',
    create: (canAbort) =>
      new SlotMachine({ slots: 1, serviceUs: (demand) => 50 * unitsOf(demand), canAbort }),
    throughputError: 1e-9,
  },
  {
    name: 'three slots that swap and stream',
    create: (canAbort) =>
      new SlotMachine({
        slots: 3,
        serviceUs: (demand) => 50 * unitsOf(demand),
        firstByteUs: () => 20,
        canAbort,
        residency: residency(),
      }),
    throughputError: 0.05,
  },
  {
    name: 'image batches that swap',
    create: (canAbort) =>
      new ImageBatch({
        sizeMax: 3,
        fixedUs: () => 100,
        variableUs: (demand) => 40 * unitsOf(demand),
        size: () => 1,
        canAbort,
        residency: residency(),
      }),
    throughputError: 0.03,
  },
  {
    name: 'text batches',
    create: (canAbort) => createText({ canAbort, sequencesMax: 4, cacheTokensMax: 4_000 }),
    throughputError: 0.05,
  },
  {
    name: 'text batches with a small cache',
    create: (canAbort) => createText({ canAbort, sequencesMax: 4, cacheTokensMax: 60 }),
    // Only whole sequences fit, and long ones go in alone.
    throughputError: 0.4,
  },
];

function createText(change: {
  readonly canAbort: boolean;
  readonly sequencesMax: number;
  readonly cacheTokensMax: number;
}): TextBatch {
  return new TextBatch({
    ...change,
    times: { stepUs: 90, perSequenceUs: 7, perContextTokenUs: 0.3, prefillUs: (tokens) => 2.5 * tokens },
    shapeOf: (demand) => {
      if (demand.kind !== 'text') throw new RangeError('Only text');
      return demand;
    },
    prefixes: { cache: new PrefixCache(8), tokensPerBlock: 4 },
    residency: residency(),
  });
}

const demand = fc
  .record({ promptTokens: fc.integer({ min: 0, max: 30 }), outputTokens: fc.integer({ min: 1, max: 20 }) })
  .map((shape): Demand => {
    const blocks = Array.from({ length: Math.floor(shape.promptTokens / 4) }, (_, at) => at);
    return { kind: 'text', ...shape, blocks };
  });

/** Starts with distinct ids, some aborts of them, changes of speed. */
const script = fc
  .array(
    fc.record({
      at: fc.integer({ min: 0, max: 4_000 }),
      demand,
      noise: fc.double({ min: 0.5, max: 2, noNaN: true }),
      model: fc.constantFrom('a', 'b', 'c'),
      abortAfter: fc.option(fc.integer({ min: 0, max: 2_000 }), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((entries) =>
    entries.flatMap(({ at, abortAfter, ...start }, id): ScriptEntry[] => {
      const begin: ScriptEntry = { at, action: { kind: 'start', id, ...start } };
      return abortAfter === undefined
        ? [begin]
        : [begin, { at: at + abortAfter, action: { kind: 'abort', id } }];
    }),
  );
const speeds = fc
  .array(fc.record({ at: fc.integer({ min: 0, max: 5_000 }), factor: fc.constantFrom(0.25, 0.5, 1, 3) }), {
    maxLength: 4,
  })
  .map((entries) =>
    entries.map(({ at, factor }): ScriptEntry => ({ at, action: { kind: 'speed', factor } })),
  );

function idsOf(entries: readonly ScriptEntry[], kind: 'start' | 'abort'): ReadonlySet<number> {
  return new Set(entries.flatMap(({ action }) => (action.kind === kind ? [action.id] : [])));
}

describe.each(KINDS)('$name', ({ create, throughputError }) => {
  test('ends each job once unless it was taken out, and is then empty', () => {
    fc.assert(
      fc.property(script, speeds, fc.boolean(), (starts, changes, canAbort) => {
        const machine = create(canAbort);
        const { ends, quietAt } = runMachine(machine, [...starts, ...changes]);
        const aborted = idsOf(starts, 'abort');
        for (const id of idsOf(starts, 'start')) if (!aborted.has(id)) expect(ends.has(id)).toBe(true);
        expect(machine.inflight).toBe(0);
        expect(machine.nextAt()).toBe(Number.POSITIVE_INFINITY);
        expect(machine.busyUs(quietAt)).toBeLessThanOrEqual(quietAt * 3);
      }),
    );
  });

  test('gives back what it holds when its process dies, and works on afterwards', () => {
    fc.assert(
      fc.property(script, fc.integer({ min: 0, max: 5_000 }), (starts, dropAt) => {
        const machine = create(true);
        const drop: ScriptEntry = { at: dropAt, action: { kind: 'drop' } };
        const again: ScriptEntry = {
          at: 6_000,
          action: {
            kind: 'start',
            id: 99,
            demand: { kind: 'text', promptTokens: 3, outputTokens: 2 },
            model: 'a',
          },
        };
        const { ends, dropped } = runMachine(machine, [...starts, drop, again]);
        const aborted = idsOf(starts, 'abort');
        for (const id of idsOf(starts, 'start'))
          if (!aborted.has(id)) expect([ends.has(id), dropped.includes(id)]).toContain(true);
        for (const id of dropped) expect(ends.has(id)).toBe(false);
        expect(ends.has(99)).toBe(true);
        expect(machine.inflight).toBe(0);
      }),
    );
  });

  test('takes as long for one job alone as it says', () => {
    fc.assert(
      fc.property(demand, fc.constantFrom(0.5, 1, 2), (asked, factor) => {
        const machine = create(true);
        machine.setSpeed(factor, 0);
        const { ends } = runMachine(machine, [
          { at: 10, action: { kind: 'start', id: 1, demand: asked, model: 'a' } },
        ]);
        expect(Math.abs((ends.get(1) as number) - 10 - machine.serviceUs(asked))).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('does as many requests a second as it says when it is kept full', () => {
    fc.assert(
      fc.property(fc.array(demand, { minLength: 5, maxLength: 20 }), (mix) => {
        const machine = create(true);
        const rounds = 60;
        const starts = Array.from({ length: rounds * mix.length }, (_, id): ScriptEntry => {
          const { blocks: _none, ...asked } = mix[id % mix.length] as Extract<Demand, { kind: 'text' }>;
          return { at: 0, action: { kind: 'start', id, demand: asked, model: 'a' } };
        });
        const { quietAt } = runMachine(machine, starts);
        const perSecond = (starts.length * 1_000_000) / quietAt;
        expect(Math.abs(perSecond / machine.perSecond(mix) - 1)).toBeLessThan(throughputError);
      }),
      { numRuns: 50 },
    );
  });

  test('that cannot abort computes on for nobody: what comes after is as late as if nobody had left', () => {
    fc.assert(
      fc.property(script, (starts) => {
        const stayed = runMachine(
          create(true),
          starts.filter(({ action }) => action.kind === 'start'),
        );
        const left = runMachine(create(false), starts);
        for (const [id, at] of left.ends) expect(at).toBe(stayed.ends.get(id));
      }),
    );
  });
});
