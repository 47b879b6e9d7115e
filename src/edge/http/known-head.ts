/**
 * A head that a connection has sent before. Clients keep a connection and repeat themselves: but for the length of the
 * body, their heads are usually the same bytes, and comparing them costs a fraction of reading them. What is kept is the
 * connection's own text and no other's, so that nobody's credentials are compared with somebody else's.
 */
import type { Bytes } from '../../base/units.ts';
import { type RequestHead, scanHead } from './head.ts';
import type { QuickHead } from './quick-head.ts';

const HEAD_END: Buffer = Buffer.from('\r\n\r\n');
const LENGTH_LINE = /\r\ncontent-length:[ \t]*(\d+)/i;
const LENGTH_DIGITS_MAX = 15;
const ZERO = 0x30;
const NINE = 0x39;
const CR = 0x0d;
const LF = 0x0a;

/** Heads in a row that were not the known one, after which a connection is not worth the comparison any more. */
export const MISSES_MAX = 4;

export interface KnownHead {
  readonly url: string;
  /** The text before the digits of the body's length, and after them. */
  readonly before: string;
  readonly after: string;
  /** Lent to one request at a time; its length is that of the request that has it. */
  readonly head: RequestHead;
}

/** What a request with a known head adds to it. */
export interface RecalledHead {
  readonly contentLength: Bytes;
  /** Where the body begins in the bytes that came. */
  readonly bodyStart: number;
}

/** `quick` is what was read from the beginning of these bytes. */
export function knowHead(bytes: Buffer, { url, rawHeaders, bodyStart }: QuickHead): KnownHead | undefined {
  const text = bytes.toString('latin1', 0, bodyStart - HEAD_END.length);
  // A quick head has exactly one such line, and its value is digits alone.
  const match = LENGTH_LINE.exec(text);
  if (match === null) return undefined;
  const end = match.index + match[0].length;
  const before = text.slice(0, end - (match[1] as string).length);
  return { url, before: flat(before), after: flat(text.slice(end)), head: scanHead(rawHeaders) };
}

/** A string of its own, not a part of another one: it is compared with each head that comes. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** Undefined when the bytes do not begin with this head, whole: then they are read from the start. */
export function recallHead(known: KnownHead, bytes: Buffer, headBytesMax: Bytes): RecalledHead | undefined {
  const { before, after, head } = known;
  // A length that begins with 0 is none, or unusual.
  if (bytes[before.length] === ZERO) return undefined;
  const digitsEnd = before.length + LENGTH_DIGITS_MAX;
  let contentLength = 0;
  let lengthEnd = before.length;
  for (let byte = bytes[lengthEnd]; isDigit(byte) && lengthEnd < digitsEnd; byte = bytes[++lengthEnd])
    contentLength = contentLength * 10 + byte - ZERO;
  if (contentLength === 0) return undefined;
  // Neither part holds an empty line, so that this one is the first: nothing needs to be searched.
  const end = lengthEnd + after.length;
  if (!isHeadEnd(bytes, end) || end + HEAD_END.length > headBytesMax) return undefined;
  // Two strings of one length are compared at memory speed; `startsWith` goes character by character.
  if (bytes.toString('latin1', 0, before.length) !== before) return undefined;
  if (after !== '' && bytes.toString('latin1', lengthEnd, end) !== after) return undefined;
  head.contentLength = String(contentLength);
  return { contentLength, bodyStart: end + HEAD_END.length };
}

function isDigit(byte: number | undefined): byte is number {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

function isHeadEnd(bytes: Buffer, at: number): boolean {
  return bytes[at] === CR && bytes[at + 1] === LF && bytes[at + 2] === CR && bytes[at + 3] === LF;
}
