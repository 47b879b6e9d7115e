/**
 * A hash of everything a policy decided, in order: equal hashes mean equal decisions. 2 x 32 bits of multiply and mix
 * (the finaliser of MurmurHash3), O(1) per decision, the same on every machine.
 */
export class DecisionHash {
  #low = 0x9747b28c;
  #high = 0x3c6ef372;

  /** All three are whole numbers below 2^53. */
  add(kind: number, subject: number, instant: number): void {
    this.#mix(kind);
    this.#mix(subject);
    this.#mix(instant);
    this.#mix(Math.floor(instant / 4_294_967_296));
  }

  /** Adds a name, by its characters and its length. */
  addText(text: string): void {
    for (let at = 0; at < text.length; at++) this.#mix(text.charCodeAt(at));
    this.#mix(text.length);
  }

  /** Adds whole numbers by their lowest 32 bits. In one go, since each of them waits for the one before. */
  addWords(words: Float64Array): void {
    let low = this.#low;
    let high = this.#high;
    for (let at = 0; at < words.length; at++) {
      let mixed = Math.imul(low ^ (words[at] as number), 0x85ebca6b);
      mixed ^= mixed >>> 13;
      low = Math.imul(mixed, 0xc2b2ae35) ^ (mixed >>> 16);
      high = Math.imul(high ^ mixed, 0x9e3779b1) + low;
      high ^= high >>> 15;
    }
    this.#low = low;
    this.#high = high;
  }

  #mix(value: number): void {
    let mixed = Math.imul(this.#low ^ value, 0x85ebca6b);
    mixed ^= mixed >>> 13;
    this.#low = Math.imul(mixed, 0xc2b2ae35) ^ (mixed >>> 16);
    this.#high = Math.imul(this.#high ^ mixed, 0x9e3779b1) + this.#low;
    this.#high ^= this.#high >>> 15;
  }

  /** 16 hexadecimal digits. */
  digest(): string {
    return hex(this.#high) + hex(this.#low);
  }
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, '0');
}
