/** A fleet that becomes slower as one, and a node that does so alone, under the noise of a usual day. */
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../test/support/depth.ts';
import { NoisyFleet } from '../../test/support/noisy-fleet.ts';
import { S } from '../../test/support/specs.ts';

/** Four equal cards; and the fleet of the demo, ten A100 and twenty T4, by their speeds. */
const FLEETS = [
  { name: 'four equal cards', nodes: 4, speeds: [1] },
  { name: 'ten fast and twenty slow nodes', nodes: 30, speeds: [1, 0.15, 0.15] },
] as const;
const CASES = FLEETS.flatMap((fleet) => [1, 4].map((slots) => ({ ...fleet, slots })));
const CALM = 0.85;
/** As docs/concepts/health.md has it, where estimates are rough. */
const TASKS_MAX = 30;

const fleetOf = ({ nodes, speeds, slots }: (typeof CASES)[number], seed: number): NoisyFleet => {
  const fleet = new NoisyFleet({ nodes, speeds, slots, seed, burstLoad: CALM });
  fleet.runFor(400 * S);
  expect(fleet.run.log.filter((line) => line.endsWith(' ejected'))).toEqual([]);
  return fleet;
};

const slowDown = (fleet: NoisyFleet, times: number, ids: readonly string[]): void => {
  for (const id of ids) fleet.node(id).speed /= times;
};

interface Closed {
  readonly ejections: number;
  /** The most of the fleet's speed that was ejected at one time. */
  readonly most: number;
}

function closedIn(fleet: NoisyFleet): Closed {
  const speeds = new Map(fleet.ids.map((id) => [id, fleet.node(id).speed]));
  const all = [...speeds.values()].reduce((sum, speed) => sum + speed, 0);
  const closed = new Map<string, number>();
  let [ejections, most] = [0, 0];
  for (const line of fleet.run.log) {
    const [, id = '', state] = / node (\S+) (\S+)$/.exec(line) ?? [];
    if (state === undefined) continue;
    closed.set(id, state === 'ejected' ? (speeds.get(id) as number) : 0);
    if (state !== 'ejected') continue;
    ejections += 1;
    most = Math.max(most, [...closed.values()].reduce((sum, speed) => sum + speed, 0) / all);
  }
  return { ejections, most };
}

describe.each(CASES)('a fleet of $name, $slots slots each,', (one) => {
  test.each([2.5, 4])(
    'that becomes %f times slower all at once loses few nodes, and never more than half of what it can do',
    (times) => {
      let ejections = 0;
      for (let seed = 1; seed <= drawsOf(20); seed++) {
        const fleet = fleetOf(one, seed);
        slowDown(fleet, times, fleet.ids);
        fleet.runFor(300 * S);
        const closed = closedIn(fleet);
        ejections += closed.ejections;
        expect(closed.most, `seed ${seed}`).toBeLessThanOrEqual(0.5);
      }
      expect(ejections / drawsOf(20)).toBeLessThanOrEqual(one.nodes / 4);
    },
  );

  test('of which one node becomes three times slower loses that one', () => {
    for (let seed = 1; seed <= drawsOf(3); seed++) {
      const fleet = fleetOf(one, seed);
      const from = fleet.run.now;
      slowDown(fleet, 3, ['n0']);
      fleet.runFor(600 * S);
      const outAt = fleet.ejectedAt('n0')[0] ?? Number.POSITIVE_INFINITY;
      const asked = fleet.sent.filter(({ nodeId, at }) => nodeId === 'n0' && at >= from && at < outAt);
      expect(outAt, `seed ${seed}`).toBeLessThan(Number.POSITIVE_INFINITY);
      expect(asked.length, `seed ${seed}`).toBeLessThanOrEqual(TASKS_MAX + one.slots - 1);
      for (const id of fleet.ids) if (id !== 'n0') expect(fleet.ejectedAt(id), `seed ${seed}`).toEqual([]);
    }
  });
});
