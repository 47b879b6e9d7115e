/**
 * A line of a journal: a letter, numbers, and at its end one JSON value where it has something that is no number. A busy gateway
 * writes some fifty numbers per request, so they are written as bytes at once, five bits to a character, the lowest first:
 *
 *   0 to 31            one character of the 32 from `0` on
 *   more               characters of the 32 from `P` on, and one of those at last
 *   anything else      in quotes: a fraction, what is below 0, no finite number
 *
 * A number that is told *since* another one is twice their difference, or where that is below 0 one less than twice its size; in quotes
 * it is the number itself.
 */
const CAPACITY_MIN = 128 * 1024;
/** More than the numbers of a line take: at most sixteen, none longer than a fraction in quotes. */
const NUMBERS_BYTES_MAX = 16 * 28;
/** Of one unit of a text; a character of two units takes four bytes. */
const UTF8_BYTES_MAX = 3;
const DIGIT = 48;
const MORE = 32;
const BITS = 5;
const QUOTE = 34;
const NEWLINE = 10;

/** A class, since every event of the gateway passes it. */
export class LineWriter {
  #bytes = new Uint8Array(CAPACITY_MIN);
  #length = 0;
  #lines = 0;

  get length(): number {
    return this.#length;
  }

  /** What was written since it was last taken; it is the caller's. */
  take(): { readonly text: Uint8Array; readonly lines: number } {
    const taken = { text: this.#bytes.slice(0, this.#length), lines: this.#lines };
    this.#length = 0;
    this.#lines = 0;
    return taken;
  }

  begin(letter: number): void {
    this.#room(NUMBERS_BYTES_MAX);
    this.#bytes[this.#length++] = letter;
  }

  end(): void {
    this.#bytes[this.#length++] = NEWLINE;
    this.#lines += 1;
  }

  number(value: number): void {
    if ((value | 0) !== value || value < 0) return this.#other(value);
    const bytes = this.#bytes;
    let at = this.#length;
    let rest = value;
    while (rest >= MORE) {
      bytes[at++] = DIGIT + MORE + (rest & (MORE - 1));
      rest >>= BITS;
    }
    bytes[at++] = DIGIT + rest;
    this.#length = at;
  }

  /** Several of them, in one go: a call costs as much as a number. */
  numbers(values: Float64Array, from: number, to: number): void {
    const bytes = this.#bytes;
    let at = this.#length;
    for (let index = from; index < to; index++) {
      const value = values[index] as number;
      let rest = value | 0;
      if (rest !== value || rest < 0) {
        this.#length = at;
        this.#other(value);
        at = this.#length;
        continue;
      }
      while (rest >= MORE) {
        bytes[at++] = DIGIT + MORE + (rest & (MORE - 1));
        rest >>= BITS;
      }
      bytes[at++] = DIGIT + rest;
    }
    this.#length = at;
  }

  /** Exact, whatever both are. */
  since(value: number, base: number): void {
    const since = value - base;
    const isExact = Number.isSafeInteger(2 * since) && base + since === value;
    if (isExact) this.number(since < 0 ? -2 * since - 1 : 2 * since);
    else this.#quoted(value);
  }

  /** What the line ends with. JSON has no line breaks. As UTF-8 by hand, since the core knows no platform. */
  json(text: string): void {
    this.#room(UTF8_BYTES_MAX * text.length + 1);
    const bytes = this.#bytes;
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

  /** Beyond the engine's small integers. */
  #other(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) return this.#quoted(value);
    let rest = value;
    while (rest >= MORE) {
      const higher = Math.floor(rest / MORE);
      this.#bytes[this.#length++] = DIGIT + MORE + (rest - higher * MORE);
      rest = higher;
    }
    this.#bytes[this.#length++] = DIGIT + rest;
  }

  #quoted(value: number): void {
    this.#bytes[this.#length++] = QUOTE;
    const text = String(value);
    for (let index = 0; index < text.length; index++) this.#bytes[this.#length++] = text.charCodeAt(index);
    this.#bytes[this.#length++] = QUOTE;
  }

  #room(size: number): void {
    if (this.#length + size <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + size));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

/** Says why a line cannot be read. */
export class Unreadable extends Error {}

/** Reads a line from its second character on. Throws `Unreadable`. */
export class LineReader {
  readonly #line: string;
  #at = 1;

  constructor(line: string) {
    this.#line = line;
  }

  number(): number {
    if (this.#line.charCodeAt(this.#at) === QUOTE) return this.#quoted();
    let value = 0;
    for (let scale = 1; ; scale *= MORE) {
      const digit = this.#line.charCodeAt(this.#at) - DIGIT;
      if (!(digit >= 0 && digit < 2 * MORE))
        throw new Unreadable(`expected a number at its character ${this.#at + 1}`);
      this.#at += 1;
      value += (digit % MORE) * scale;
      if (digit < MORE) return value;
    }
  }

  since(base: number): number {
    if (this.#line.charCodeAt(this.#at) === QUOTE) return this.#quoted();
    const told = this.number();
    return base + (told % 2 === 0 ? told / 2 : -(told + 1) / 2);
  }

  /** All that is left. */
  json(): unknown {
    const text = this.#line.slice(this.#at);
    this.#at = this.#line.length;
    try {
      return JSON.parse(text, reviveNumber);
    } catch {
      throw new Unreadable('what it ends with is no JSON');
    }
  }

  end(): void {
    if (this.#at !== this.#line.length) throw new Unreadable('it goes on behind its end');
  }

  #quoted(): number {
    const from = this.#at + 1;
    const to = this.#line.indexOf('"', from);
    if (to < 0) throw new Unreadable('a number in quotes has no end');
    this.#at = to + 1;
    return Number(this.#line.slice(from, to));
  }
}

/** JSON that keeps infinities and what is no number: `{"$number": "Infinity"}`. */
export function exactJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'number' && !Number.isFinite(part) ? { $number: String(part) } : part,
  );
}

/** Of `exactJson`; also of a whole line that is JSON. */
export function reviveNumber(_key: string, value: unknown): unknown {
  return typeof value === 'object' && value !== null && '$number' in value ? Number(value.$number) : value;
}
