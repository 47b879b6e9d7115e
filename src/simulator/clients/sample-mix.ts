/** Demands as a stream's users have them, for reckoning what a fleet can do of such a mix. */
import type { Demand } from '../machines/machine.ts';
import type { StreamSpec } from '../scenario/types.ts';
import { type ReadTrace, rowsOf } from './create-sources.ts';
import { drawKey, Draws } from './draws.ts';
import { createSizeLaw } from './sizes.ts';

export interface MixOptions {
  readonly seed: number;
  /** Needed where the stream takes its sizes from a trace. */
  readonly readTrace?: ReadTrace | undefined;
}

/** `count` demands. They are not those of a run's users, whatever the seed. */
export function sampleMix(stream: StreamSpec, count: number, { seed, readTrace }: MixOptions): Demand[] {
  const draws = new Draws();
  const key = drawKey(seed, `mix ${stream.name}`);
  const rows = stream.sizes.kind === 'trace' ? rowsOf(stream, readTrace) : [];
  const law = createSizeLaw(stream, { bestServiceUs: () => 0 }, rows);
  return Array.from({ length: count }, (_, index) => {
    draws.begin(key, index);
    return law(draws).demand;
  });
}
