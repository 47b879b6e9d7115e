/** Seeded chance for emulated service times, so that two runs with one seed meet the same fleet. */

/** Uniform in [0, 1). */
export type Uniform = () => number;

/** mulberry32 (public domain, Tommy Ettinger): 32 bits of state, enough for noise and for faults. */
export function seededUniform(seed: number): Uniform {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A stream of its own for each name, so that adding a node does not change the chance of the others. */
export function seedFor(seed: number, name: string): number {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let index = 0; index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash;
}

/** Lognormal factor with mean exactly 1, so that noise changes no capacity. Box-Muller, one value per call. */
export function lognormalFactor(uniform: Uniform, sigma: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
  const normal = radius * Math.cos(2 * Math.PI * uniform());
  return Math.exp(sigma * normal - (sigma * sigma) / 2);
}
