/**
 * Text written as bytes at once: a busy gateway writes some thirty numbers per request, and making a string of each, joining
 * them and turning the whole into bytes would cost several times as much.
 */
const CAPACITY_MIN = 64 * 1024;
/** Most digits of a number that is written here. */
const DIGITS_MAX = 10;
/** Beyond it a number is no small integer to the engine; its own conversion does it. */
const SMALL_MAX = 2 ** 31;
const ZERO = 48;

export class ByteWriter {
  #bytes = new Uint8Array(CAPACITY_MIN);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What was written since it was last taken; it is the caller's. */
  take(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    return taken;
  }

  /** Text of ASCII alone. */
  ascii(text: string): void {
    const bytes = this.#room(text.length);
    let at = this.#length;
    for (let index = 0; index < text.length; index++) bytes[at++] = text.charCodeAt(index);
    this.#length = at;
  }

  text(text: string): void {
    const encoded = encodeUtf8(text);
    this.#room(encoded.length).set(encoded, this.#length);
    this.#length += encoded.length;
  }

  /** A number as JSON; what JSON has no word for as a text. */
  number(value: number): void {
    if (value >= 0 && value < SMALL_MAX && value === Math.floor(value)) this.#digits(value | 0);
    else this.ascii(Number.isFinite(value) ? String(value) : `"${value}"`);
  }

  #digits(value: number): void {
    const bytes = this.#room(DIGITS_MAX);
    let size = 1;
    for (let rest = (value / 10) | 0; rest > 0; rest = (rest / 10) | 0) size += 1;
    let left = value;
    for (let at = this.#length + size - 1; at >= this.#length; at--) {
      const tens = (left / 10) | 0;
      bytes[at] = ZERO + left - 10 * tens;
      left = tens;
    }
    this.#length += size;
  }

  #room(size: number): Uint8Array {
    if (this.#length + size > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + size));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    return this.#bytes;
  }
}

/** By hand, since the core knows no platform; texts that are not ASCII are few here. */
function encodeUtf8(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const char of text) {
    const code = char.codePointAt(0) as number;
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else
      bytes.push(
        0xf0 | (code >> 18),
        0x80 | ((code >> 12) & 63),
        0x80 | ((code >> 6) & 63),
        0x80 | (code & 63),
      );
  }
  return Uint8Array.from(bytes);
}
