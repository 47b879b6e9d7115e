import { expect, test } from 'vitest';
import { sampleAt, US_PER_S } from '../../../../test/support/samples.ts';
import type { Look } from '../detector.ts';
import { Past } from '../past.ts';
import { silentStarvation } from './silent-starvation.ts';

const FAULT_AT_S = 240;

interface Second {
  /** Places of open nodes, and tasks on all nodes. */
  readonly slots: number;
  readonly inflight: number;
  readonly workPerS: number;
}

/** Four minutes as usual and one of the fault. */
function lookAfter(secondOf: (isFaulty: boolean, second: number) => Second): Look {
  const past = new Past();
  let [inflightUs, servedWorkUs] = [0, 0];
  for (let second = 1; second <= FAULT_AT_S + 60; second++) {
    const { slots, inflight, workPerS } = secondOf(second > FAULT_AT_S, second);
    inflightUs += inflight * US_PER_S;
    // A little unrest, as there always is: without any, nothing could be told from chance.
    servedWorkUs += workPerS * (second % 20 < 10 ? 0.95 : 1.05) * US_PER_S;
    past.add(sampleAt(second, { slots, inflight, inflightUs, servedWorkUs }));
  }
  return silentStarvation.look(past);
}

const evidenceOf = (look: Look): Readonly<Record<string, unknown>> | undefined =>
  look.kind === 'seen' ? look.suspicions[0]?.evidence : undefined;

test('silent-starvation is seen where nodes that are full do a quarter of what they did', () => {
  const look = lookAfter((isFaulty) => ({ slots: 4, inflight: 4, workPerS: isFaulty ? 1 : 4 }));
  expect(evidenceOf(look)).toMatchObject({ useBefore: 1, useNow: 1, fall: expect.closeTo(0.75, 2) });
});

test('silent-starvation is seen while nodes that still work are closed: use is at most 1', () => {
  const look = lookAfter((isFaulty) => ({
    slots: isFaulty ? 2 : 4,
    inflight: 4,
    workPerS: isFaulty ? 1 : 4,
  }));
  expect(evidenceOf(look)).toMatchObject({ useBefore: 1, useNow: 1, fall: expect.closeTo(0.75, 2) });
});

test('silent-starvation is not seen where the work falls with the use', () => {
  const look = lookAfter((isFaulty) => ({
    slots: 4,
    inflight: isFaulty ? 1 : 4,
    workPerS: isFaulty ? 1 : 4,
  }));
  expect(look).toMatchObject({ suspicions: [], why: 'Use changes with the work' });
});
