/** Demands as a stream's users have them, for reckoning what a fleet can do of such a mix. */
import type { Demand } from '../machines/machine.ts';
import type { StreamSpec } from '../scenario/types.ts';
import { drawKey, Draws } from './draws.ts';
import { createSizeLaw } from './sizes.ts';

/** `count` demands. They are not those of a run's users, whatever the seed. */
export function sampleMix(stream: StreamSpec, count: number, seed: number): Demand[] {
  const draws = new Draws();
  const key = drawKey(seed, `mix ${stream.name}`);
  const law = createSizeLaw(stream, { bestServiceUs: () => 0 });
  return Array.from({ length: count }, (_, index) => {
    draws.begin(key, index);
    return law(draws).demand;
  });
}
