/**
 * A small seeded generator (xoshiro128**, Blackman and Vigna, 2018), passed as an argument wherever chance is
 * wanted, so that equal seeds give equal runs.
 */
export interface Prng {
  /** Uniform over the unsigned 32-bit integers. */
  nextUint32(): number;
  /** Uniform in [0, 1). */
  nextRatio(): number;
  /** Uniform integer in [0, bound); bound is an integer of at least 1. */
  nextBelow(bound: number): number;
}

/** Seed mixing by splitmix32: neighbouring seeds give unrelated streams. */
function splitmix32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
}

export function createPrng(seed: number): Prng {
  const mix = splitmix32(seed);
  let a = mix();
  let b = mix();
  let c = mix();
  let d = mix() | 1;
  function nextUint32(): number {
    const scrambled = Math.imul(b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = (d << 11) | (d >>> 21);
    return result;
  }
  return {
    nextUint32,
    nextRatio: () => nextUint32() / 4_294_967_296,
    nextBelow: (bound) => Math.floor((nextUint32() / 4_294_967_296) * bound),
  };
}
