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
/** Of one unit of a text; a character of two units takes four bytes. */
const UTF8_BYTES_MAX = 3;

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

  /** By hand, since the core knows no platform. */
  text(text: string): void {
    const bytes = this.#room(UTF8_BYTES_MAX * text.length);
    let at = this.#length;
    for (let index = 0; index < text.length; index++) {
      const code = text.codePointAt(index) as number;
      if (code < 0x80) {
        bytes[at++] = code;
        continue;
      }
      if (code < 0x800) bytes[at++] = 0xc0 | (code >> 6);
      else {
        if (code < 0x10000) bytes[at++] = 0xe0 | (code >> 12);
        else {
          // It is two units of the text.
          index += 1;
          bytes[at++] = 0xf0 | (code >> 18);
          bytes[at++] = 0x80 | ((code >> 12) & 63);
        }
        bytes[at++] = 0x80 | ((code >> 6) & 63);
      }
      bytes[at++] = 0x80 | (code & 63);
    }
    this.#length = at;
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
