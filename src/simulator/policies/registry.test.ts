import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { CheckedPolicy } from '../../../test/support/checked-policy.ts';
import { FuzzPlayer, sequenceArbitrary, type Step } from '../../../test/support/fuzz.ts';
import { defaultSchedulerConfig } from '../../core/config/defaults.ts';
import { createPolicy, POLICIES } from './registry.ts';

const CONFIG = defaultSchedulerConfig();
/** The gateway's own two have their properties beside the scheduler. */
const BASELINES = Object.keys(POLICIES).filter((name) => name !== 'spillway' && name !== 'round-robin');

function watched(policy: string, seed = 7): CheckedPolicy {
  return new CheckedPolicy(createPolicy({ policy, config: CONFIG, options: {} }, seed));
}

describe('every baseline', () => {
  test.each(BASELINES)('%s gives each task one outcome, and is empty in the end', (name) => {
    fc.assert(
      fc.property(sequenceArbitrary({ absurd: true, shutdown: true, maxLength: 80 }), (steps) => {
        const world = watched(name);
        new FuzzPlayer(world).play(steps);
        world.apply({ kind: 'shutdown' });
        world.endAll();
        expect(world.outcomes.size).toBe(world.specs.size);
        expect(world.policy.accounts()).toMatchObject({ queued: 0, running: 0 });
      }),
      { numRuns: drawsOf(40) },
    );
  });

  test.each(BASELINES)('%s gives equal effects for equal events', (name) => {
    const sequences = sequenceArbitrary({ absurd: false, shutdown: false, maxLength: 120 });
    const [steps] = fc.sample(sequences, { numRuns: 1, seed: 3 }) as [readonly Step[]];
    const logs = [watched(name), watched(name)].map((world) => {
      new FuzzPlayer(world).play(steps);
      return world.log;
    });
    expect(logs[0]?.length).toBeGreaterThan(10);
    expect(logs[1]).toEqual(logs[0]);
  });

  test.each(BASELINES)('%s serves all that it can when nodes are well again', (name) => {
    const sequences = sequenceArbitrary({ absurd: false, shutdown: false, maxLength: 80 });
    fc.assert(
      fc.property(sequences, (steps) => {
        const world = watched(name);
        const player = new FuzzPlayer(world);
        player.play(steps);
        for (const node of [0, 1, 2, 3, 4]) {
          player.step({ kind: 'register', node });
          player.step({ kind: 'cordon', node, on: false });
          player.step({ kind: 'drain', node, on: false });
        }
        world.advance(3_600_000_000);
        world.endAll();
        world.advance(3_600_000_000);
        world.endAll();
        expect(world.policy.accounts()).toMatchObject({ queued: 0, running: 0 });
      }),
      { numRuns: drawsOf(25) },
    );
  });
});

describe('the page about policies', () => {
  const page = readFileSync(new URL('../../../docs/reference/policies.md', import.meta.url), 'utf8');

  test.each(Object.values(POLICIES))('names $name and its options', ({ name, options }) => {
    for (const word of [name, ...Object.keys(options)]) expect(page).toContain(`\`${word}\``);
  });
});

describe('createPolicy', () => {
  test('refuses a name that is not there, and says which are', () => {
    expect(() => createPolicy({ policy: 'toString', config: CONFIG, options: {} }, 1)).toThrow(
      /Could not find the policy toString: the policies are spillway, round-robin/,
    );
  });

  test('refuses options that the policy does not have, and values out of bounds', () => {
    const create = (options: Record<string, number | string>): unknown =>
      createPolicy({ policy: 'jsq', config: CONFIG, options }, 1);
    expect(() => create({ tie: 'random' })).toThrow(/option tie: the options are ties, attempts/);
    expect(() => create({ ties: 'slowest' })).toThrow(/one of random, fastest, not slowest/);
    expect(() => create({ attempts: 0 })).toThrow(/a number from 1 to 100, not 0/);
    expect(() => createPolicy({ policy: 'spillway', config: CONFIG, options: { a: 1 } }, 1)).toThrow(
      /the options are none/,
    );
  });
});
