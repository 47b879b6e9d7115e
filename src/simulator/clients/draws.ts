/**
 * Chance by index: everything of user k of a stream is drawn from a generator that starts from (seed, stream, k). Whatever
 * a policy decides, and in whatever order users come back, user k is the same: common random numbers, by which policies
 * are compared on the same traffic.
 *
 * One generator serves all: `begin` sets it to the start of an index. xoshiro128** (Blackman and Vigna, 2018), its four
 * words filled by the finaliser of MurmurHash3 from two keys of 32 bits and the index.
 */

/** 64 bits that name a purpose: what is drawn under different keys is unrelated. */
export interface DrawKey {
  readonly low: number;
  readonly high: number;
}

const GOLDEN = 0x9e3779b9;
const TWO_POW_32 = 4_294_967_296;

export function drawKey(seed: number, purpose: string): DrawKey {
  let low = mix((seed | 0) ^ 0x2545f491);
  let high = mix((Math.floor(seed / TWO_POW_32) | 0) + low);
  for (let index = 0; index < purpose.length; index += 1) {
    low = mix(low ^ purpose.charCodeAt(index));
    high = mix(high + purpose.charCodeAt(index) + GOLDEN);
  }
  return { low, high };
}

export class Draws {
  #a = 1;
  #b = 2;
  #c = 3;
  #d = 4;
  /** The second of a pair of normal deviates; NaN while there is none. */
  #spare = Number.NaN;

  /** What follows is what index `index` gets under this key; `turn` tells its repetitions apart. */
  begin({ low, high }: DrawKey, index: number, turn = 0): void {
    const a = mix((low + Math.imul(index, GOLDEN)) | 0);
    const b = mix((high ^ index) + Math.imul(turn, GOLDEN));
    this.#a = a;
    this.#b = b;
    this.#c = mix(a + b);
    this.#d = mix(b ^ GOLDEN) | 1;
    this.#spare = Number.NaN;
  }

  /** Uniform in [0, 1). */
  ratio(): number {
    const b = this.#b;
    const scrambled = Math.imul(b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
    const c = this.#c ^ this.#a;
    const d = this.#d ^ b;
    this.#b = b ^ c;
    this.#a ^= d;
    this.#c = c ^ (b << 9);
    this.#d = (d << 11) | (d >>> 21);
    return result / TWO_POW_32;
  }

  /** Of mean 1. */
  exponential(): number {
    return -Math.log(1 - this.ratio());
  }

  /** Of mean 0 and variance 1: Box and Muller, both of the pair are used. */
  normal(): number {
    const spare = this.#spare;
    if (!Number.isNaN(spare)) {
      this.#spare = Number.NaN;
      return spare;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - this.ratio()));
    const angle = 2 * Math.PI * this.ratio();
    this.#spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** Of mean 1. Sigma 0 is 1, and draws nothing. */
  lognormal(sigma: number): number {
    return sigma === 0 ? 1 : Math.exp(sigma * this.normal() - (sigma * sigma) / 2);
  }
}

/** The finaliser of MurmurHash3: each bit of the input changes half of the output's. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
