import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nodeSpec, S, taskSpec } from '../../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../../config/index.ts';
import { SILENT_SINK } from '../../scheduler/effects.ts';
import { createScheduler } from '../../scheduler/index.ts';
import type { Sample } from '../index.ts';
import { Past } from '../past.ts';
import { jointEntropy } from './joint-entropy.ts';

const OFF = { ...defaultSchedulerConfig({}).gates, 'flow-wait': 'off', ladder: 'off' } as const;

/** A real sample: so many nodes of which each tells its memory, and so many tasks of one second waiting for each model. */
function sampleOf(uses: readonly (number | undefined)[], queued: readonly number[]): Sample {
  const scheduler = createScheduler(defaultSchedulerConfig({ gates: OFF }));
  const models = queued.map((_, at) => ({ model: `m${at}` }));
  for (const [at, memoryUse] of uses.entries()) {
    const node = nodeSpec(`n${at}`, { models: [...models, { model: 'm' }] });
    scheduler.apply({ kind: 'node-registered', node }, 0, SILENT_SINK);
    scheduler.apply({ kind: 'submit', task: taskSpec(at + 1) }, 0, SILENT_SINK);
    if (memoryUse === undefined) continue;
    const memory = { memoryUse, reservedUse: 0 };
    scheduler.apply({ kind: 'node-memory', nodeId: `n${at}`, memory }, 0, SILENT_SINK);
  }
  let id = uses.length;
  for (const [at, count] of queued.entries())
    for (let nth = 0; nth < count; nth++) {
      const task = taskSpec(++id, { model: `m${at}`, deadlineAt: 600 * S });
      scheduler.apply({ kind: 'submit', task }, 0, SILENT_SINK);
    }
  return scheduler.sample(S);
}

function lookOver(sample: Sample, spanS = 60): ReturnType<typeof jointEntropy.look> {
  const past = new Past();
  for (let second = 0; second <= spanS; second++) past.add({ ...sample, at: second * S });
  return jointEntropy.look(past);
}

const four = (use: number): readonly number[] => [use, use, use, use];

test.each([
  ['little is free and evenly spread', four(0.95), [0, 0], { joint: 0.45, band: 'watch' }],
  ['the same, and two lines of twenty seconds wait', four(0.95), [40, 40], { joint: 0.85, band: 'act' }],
  ['nothing is free at all', four(1), [0, 0], { joint: 0.6, band: 'watch' }],
] as const)('joint-entropy is told where %s', (_what, uses, queued, evidence) => {
  const severity = evidence.band === 'act' ? 'page' : 'warn';
  expect(lookOver(sampleOf(uses, queued))).toMatchObject({
    kind: 'seen',
    suspicions: [{ subject: { kind: 'gateway' }, severity, evidence }],
  });
});

test.each([
  ['an idle fleet, whose free memory is spread evenly', four(0.1), [0, 0]],
  ['nine tenths of the memory in use and nothing waiting, below the band', four(0.89), [0, 0]],
  ['memory that is full but for one node, which has room', [1, 1, 1, 0.2], [0, 0]],
  ['one line only, however long', four(0.5), [100, 0]],
] as const)('joint-entropy is silent over %s', (_what, uses, queued) => {
  expect(lookOver(sampleOf(uses, queued))).toEqual({ kind: 'seen', suspicions: [] });
});

test.each([
  ['no node tells its memory', [undefined, undefined, undefined, undefined], 60],
  ['one of four does', [1, undefined, undefined, undefined], 60],
  ['a minute has not passed', four(1), 40],
])('joint-entropy is blind where %s', (_what, uses, spanS) => {
  expect(lookOver(sampleOf(uses, [40, 40]), spanS).kind).toBe('blind');
});

test('joint-entropy is within 0 and 1, whatever waits and whatever is full', () => {
  const use = fc.double({ min: 0, max: 1, noNaN: true });
  const anything = fc.record({
    uses: fc.array(use, { minLength: 2, maxLength: 6 }),
    queued: fc.array(fc.nat(30), { minLength: 1, maxLength: 4 }),
  });
  fc.assert(
    fc.property(anything, ({ uses, queued }) => {
      const look = lookOver(sampleOf(uses, queued));
      const [suspicion] = look.kind === 'seen' ? look.suspicions : [];
      if (suspicion === undefined) return;
      expect(suspicion.evidence['joint']).toBeGreaterThanOrEqual(0.3);
      expect(suspicion.evidence['joint']).toBeLessThanOrEqual(1);
    }),
    { seed: Number(process.env['FC_SEED'] ?? 1), numRuns: 50 },
  );
});
