import { describe, expect, test } from 'vitest';
import { nodeGroup, streamSpec } from '../../../test/support/scenarios.ts';
import { S } from '../../../test/support/specs.ts';
import { loggedUser } from '../../../test/support/user-rows.ts';
import type { User } from '../clients/user.ts';
import { buildFleet } from '../fleets/build-fleet.ts';
import type { NodeGroup } from '../scenario/types.ts';
import { FleetTimes } from './fleet-times.ts';

const PROBE = { kind: 'work', workUs: S } as const;

function timesOf(groups: readonly NodeGroup[], isStream = false): FleetTimes {
  const twins = buildFleet(groups, { seed: 1, mix: [] });
  return new FleetTimes(twins, { groups, streams: [streamSpec({ isStream })], probe: PROBE });
}

const user = (change: Partial<User>): User => ({ ...loggedUser(0, {}), ...change });

describe('FleetTimes', () => {
  const fleet = [
    nodeGroup({ name: 'slow', count: 3, speed: 0.25, models: ['m', 'n'] }),
    nodeGroup({ name: 'fast', count: 1, speed: 2, engine: { kind: 'slots', slots: 2 } }),
  ];

  test('takes the fastest node that offers the model, noise included', () => {
    const times = timesOf(fleet);
    expect(times.of(user({ noise: 1.5 }))).toEqual({ effortUs: 0.75 * S, neededUs: 0.75 * S });
    expect(times.of(user({ noise: 0.5, model: 'n' })).effortUs).toBe(2 * S);
    expect(times.of(user({ model: 'nobody has it' })).effortUs).toBe(Number.POSITIVE_INFINITY);
  });

  test('gives rates of slots, the largest over the requests seen, and none of nodes that nobody asked', () => {
    const times = timesOf(fleet);
    expect(times.supplies()).toEqual([]);
    times.of(user({ noise: 3 }));
    const slow = { rate: 0.125, slots: 1 };
    expect(times.supplies()).toEqual([slow, slow, slow, { rate: 1, slots: 2 }]);
    times.of(user({ model: 'n' }));
    expect(times.supplies()[0]).toEqual({ rate: 1, slots: 1 });
  });

  test('knows how much slower each node of a group is than its fastest', () => {
    const group = nodeGroup({ count: 5, speedSigma: 0.4 });
    const times = timesOf([group]);
    const { effortUs } = times.of(user({}));
    const alone = buildFleet([group], { seed: 1, mix: [] }).map(({ machine }) => machine.serviceUs(PROBE));
    expect(effortUs).toBe(Math.min(...alone));
    expect(times.supplies().map(({ rate }) => effortUs / rate)).toEqual(
      alone.map((timeUs) => expect.closeTo(timeUs, 6) as number),
    );
  });

  test('asks of a streamed text its first token by the deadline, of any other answer the whole', () => {
    const demand = { kind: 'text', promptTokens: 500, outputTokens: 400 } as const;
    const group = nodeGroup({ hardware: 'A100' });
    const streamed = { ...timesOf([group], true).of(user({ demand })) };
    const whole = { ...timesOf([group]).of(user({ demand })) };
    expect(streamed.effortUs).toBe(whole.effortUs);
    expect(whole.neededUs).toBe(whole.effortUs);
    expect(streamed.neededUs).toBeLessThan(whole.effortUs / 20);
    expect(timesOf([group], true).of(user({ demand: PROBE })).neededUs).toBeGreaterThan(0.9 * S);
  });
});
