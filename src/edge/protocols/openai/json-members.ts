/**
 * Where the members of a JSON object are in its bytes, so that one value can be replaced without touching the rest.
 * The text MUST have been accepted by `JSON.parse` already: this scanner finds, it does not check.
 *
 * Long strings (a prompt, an image) are skipped by `indexOf`, which runs at memory speed; short ones by a plain loop.
 */
export interface Member {
  /** Decoded, so that an escaped spelling of a name is the same name. */
  readonly name: string;
  readonly start: number;
  readonly valueStart: number;
  /** Position after the value. */
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
/** Strings are looked at byte by byte this far; longer ones are searched. */
const SHORT_STRING_BYTES = 48;

/** Members of the outermost object, in order; duplicates included. */
export function topLevelMembers(json: Buffer): Member[] {
  const members: Member[] = [];
  let at = skipSpace(json, skipSpace(json, 0) + 1);
  while (json[at] === QUOTE) {
    const start = at;
    const nameEnd = skipString(json, start);
    const valueStart = skipSpace(json, skipTo(json, nameEnd, COLON) + 1);
    const end = skipValue(json, valueStart);
    members.push({ name: decodeName(json, start, nameEnd), start, valueStart, end });
    at = skipSpace(json, end);
    if (json[at] !== COMMA) break;
    at = skipSpace(json, at + 1);
  }
  return members;
}

function decodeName(json: Buffer, start: number, end: number): string {
  const raw = json.toString('utf8', start + 1, end - 1);
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}

function skipSpace(json: Buffer, from: number): number {
  let at = from;
  while (at < json.length && (json[at] as number) <= 0x20) at++;
  return at;
}

function skipTo(json: Buffer, from: number, byte: number): number {
  let at = from;
  while (at < json.length && json[at] !== byte) at++;
  return at;
}

/** `from` is the opening quote; the result is the position after the closing one. */
function skipString(json: Buffer, from: number): number {
  let at = from + 1;
  const nearEnd = Math.min(json.length, at + SHORT_STRING_BYTES);
  for (; at < nearEnd; at++) {
    const byte = json[at];
    if (byte === BACKSLASH) at++;
    else if (byte === QUOTE) return at + 1;
  }
  // `at` may have jumped over an escaped byte at the border; from here on quotes are searched.
  let quote = json.indexOf(QUOTE, at);
  while (quote >= 0 && isEscaped(json, quote, at)) quote = json.indexOf(QUOTE, quote + 1);
  return quote < 0 ? json.length : quote + 1;
}

/** Whether an odd number of backslashes stands before the quote; none before `from` belongs to it. */
function isEscaped(json: Buffer, quote: number, from: number): boolean {
  let at = quote - 1;
  while (at >= from && json[at] === BACKSLASH) at--;
  return (quote - 1 - at) % 2 === 1;
}

function skipValue(json: Buffer, from: number): number {
  const first = json[from];
  if (first === QUOTE) return skipString(json, from);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipScalar(json, from);
  let depth = 0;
  let at = from;
  while (at < json.length) {
    const byte = json[at];
    if (byte === QUOTE) {
      at = skipString(json, at);
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
    at++;
    if (depth === 0) return at;
  }
  return at;
}

function skipScalar(json: Buffer, from: number): number {
  let at = from;
  while (at < json.length) {
    const byte = json[at] as number;
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte <= 0x20) return at;
    at++;
  }
  return at;
}
