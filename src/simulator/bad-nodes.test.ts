/** Bad nodes among good ones, and good ones in a noisy day: who is put out of rotation, how soon, at what price. */
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../test/support/depth.ts';
import { NoisyFleet } from '../../test/support/noisy-fleet.ts';
import { S } from '../../test/support/specs.ts';
import { createPrng } from '../base/prng.ts';

const NODES = 10;
/** In the middle of the fleet by speed. */
const BAD = 'n2';
const CALM = 0.85;
const SLOTS = [1, 4] as const;
/** Successes until a node has its full share again. */
const SLOW_START_TASKS = 8;

type Fault = 'fails 40 %' | 'refuses everything' | 'is three times slower' | 'hangs';

/** The most requests that it may get until it is out, by the promise. */
const ASKED_MAX: Readonly<Record<Fault, number>> = {
  'fails 40 %': 50,
  'refuses everything': 10,
  'is three times slower': 50,
  hangs: 10,
};

/** Spoils the node; returns what heals it. */
function spoil(fleet: NoisyFleet, fault: Fault, seed: number): () => void {
  const node = fleet.node(BAD);
  const { speed } = node;
  const prng = createPrng(seed + 77);
  if (fault === 'is three times slower') node.speed = speed / 3;
  if (fault === 'hangs') node.speed = 1e-9;
  if (fault === 'refuses everything')
    node.fault = () => ({ kind: 'failed', failure: 'refused', retryable: true });
  if (fault === 'fails 40 %') {
    node.fault = (task) =>
      prng.nextRatio() < 0.4
        ? { kind: 'failed', failure: 'server-error', retryable: true }
        : fleet.chanceResult(task);
  }
  return () => {
    node.speed = speed;
    node.fault = (task) => fleet.chanceResult(task);
    if (fault === 'hangs') fleet.run.breakOff(BAD);
  };
}

const countIn = (instants: readonly number[], from: number, until: number): number =>
  instants.filter((at) => at >= from && at < until).length;

describe.each<Fault>(['fails 40 %', 'refuses everything', 'is three times slower', 'hangs'])(
  'a node that %s, one of ten,',
  (fault) => {
    test.each(SLOTS)(
      'is soon out, harms less than a hundredth, and is back by its slow start, slots: %i',
      (slots) => {
        for (let seed = 1; seed <= drawsOf(3); seed++) {
          const fleet = new NoisyFleet({ nodes: NODES, slots, seed, burstLoad: CALM });
          fleet.runFor(300 * S);
          const from = fleet.run.now;
          const heal = spoil(fleet, fault, seed);
          fleet.runFor(600 * S);
          const until = fleet.run.now;
          const outAt = fleet.ejectedAt(BAD).find((at) => at >= from) ?? Number.POSITIVE_INFINITY;
          const asked = fleet.sent.filter((row) => row.nodeId === BAD && row.at >= from && row.at < outAt);
          expect(asked.length, `seed ${seed}`).toBeLessThanOrEqual(ASKED_MAX[fault] + slots - 1);
          expect(outAt, `seed ${seed}`).toBeLessThan(until);
          const harmed = countIn(fleet.harmedAt, from, until) / countIn(fleet.arrivedAt, from, until);
          expect(harmed, `seed ${seed}`).toBeLessThan(0.01);

          heal();
          fleet.runFor((fleet.run.scheduler.node(BAD, fleet.run.now)?.ejectedForMs ?? 0) * 1_000);
          const awakeAt = fleet.run.now;
          for (let i = 0; i < 120 && fleet.state(BAD) !== 'active'; i++) fleet.runFor(S);
          expect(fleet.state(BAD), `seed ${seed}`).toBe('active');
          const tried = fleet.sent.filter((row) => row.nodeId === BAD && row.at >= awakeAt);
          expect(tried.length, `seed ${seed}`).toBeLessThanOrEqual(SLOW_START_TASKS);
          expect(fleet.run.scheduler.node(BAD, fleet.run.now)?.slots).toBe(slots);
          for (const id of fleet.ids) if (id !== BAD) expect(fleet.ejectedAt(id), `seed ${seed}`).toEqual([]);
        }
      },
    );
  },
);

describe('healthy nodes', () => {
  // Three minutes for each of 20 seeds and number of slots: two hours.
  test('are never put out of rotation for the noise of a usual day, over 20 seeds', () => {
    for (let seed = 1; seed <= 20; seed++) {
      for (const slots of SLOTS) {
        const fleet = new NoisyFleet({ nodes: NODES, slots, seed });
        fleet.runFor(180 * S);
        expect(
          fleet.run.log.filter((line) => line.endsWith(' ejected')),
          `seed ${seed}`,
        ).toEqual([]);
        expect(fleet.run.scheduler.gates().find((row) => row.gate === 'breaker')?.refused).toBe(0);
      }
    }
  });
});
