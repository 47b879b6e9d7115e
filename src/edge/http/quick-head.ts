/**
 * The head of a request in its usual form, read in one pass; everything else is undefined, and node's own parser takes
 * it. Usual means: whole in one read, POST in HTTP/1.1 to a known path, one plain Content-Length, no transfer coding, no
 * upgrade, no expectation, no wish about the connection but to keep it, and not one byte that two readers could
 * understand differently (bare line breaks, folded lines, spaces before a colon, control characters).
 *
 * So this reader accepts a subset of what node's accepts, with the same meaning, and refuses nothing by itself: it cannot
 * be a second opinion on a malformed request.
 */
import type { Bytes } from '../../base/units.ts';

export interface QuickHead {
  readonly url: string;
  /** Flat; names in lower case. */
  readonly rawHeaders: readonly string[];
  readonly contentLength: Bytes;
  /** Where the body begins in the bytes that came. */
  readonly bodyStart: number;
}

const HEAD_END: Buffer = Buffer.from('\r\n\r\n');
const UPPER_P = 0x50;
const METHOD = 'POST ';
const VERSION = ' HTTP/1.1';
/** Control characters. Line breaks are looked at one by one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is control characters that are looked for.
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;
const NAME = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;
const LENGTH = /^\d{1,15}$/;

/** Spellings of header names seen so far. Beyond the bound they are worked out each time. */
const NAMES_MAX = 512;
const NAME_LENGTH_MAX = 64;
const names = new Map<string, string>();

export function readQuickHead(
  bytes: Buffer,
  headBytesMax: Bytes,
  findUrl: (url: string) => string | undefined,
): QuickHead | undefined {
  if (bytes[0] !== UPPER_P) return undefined;
  const end = bytes.indexOf(HEAD_END);
  if (end < 0 || end + HEAD_END.length > headBytesMax) return undefined;
  const text = bytes.toString('latin1', 0, end);
  const lineEnd = endOfLine(text, 0);
  if (lineEnd < 0 || !text.startsWith(METHOD) || CONTROL.test(text)) return undefined;
  const urlEnd = lineEnd - VERSION.length;
  if (!text.startsWith(VERSION, urlEnd)) return undefined;
  const url = findUrl(text.slice(METHOD.length, urlEnd));
  if (url === undefined) return undefined;
  const rawHeaders: string[] = [];
  const contentLength = readHeaders(text, lineEnd + 2, rawHeaders);
  if (contentLength <= 0) return undefined;
  return { url, rawHeaders, contentLength, bodyStart: end + HEAD_END.length };
}

/** Fills the list; the content length, or -1 when node's parser must look. */
function readHeaders(text: string, start: number, rawHeaders: string[]): Bytes {
  let length = -1;
  for (let at = start; at < text.length; ) {
    const stop = endOfLine(text, at);
    const colon = text.indexOf(':', at);
    // A name is never empty, which also keeps folded lines out.
    if (stop < 0 || colon < 0 || colon > stop) return -1;
    const name = lowered(text.slice(at, colon));
    const value = trimmed(text, colon + 1, stop);
    if (name === 'content-length') {
      if (length >= 0 || !LENGTH.test(value)) return -1;
      length = Number(value);
    } else if (isUnusual(name, value)) return -1;
    rawHeaders.push(name, value);
    at = stop + 2;
  }
  return length;
}

/** Where the line ends, which must be by both characters of a line break, or at the end of the text; else -1. */
function endOfLine(text: string, at: number): number {
  const cr = text.indexOf('\r', at);
  const lf = text.indexOf('\n', at);
  if (cr < 0) return lf < 0 ? text.length : -1;
  return lf === cr + 1 ? cr : -1;
}

function isUnusual(name: string, value: string): boolean {
  switch (name) {
    case '':
    case 'transfer-encoding':
    case 'expect':
    case 'upgrade':
    case 'proxy-connection':
    case 'http2-settings':
      return true;
    case 'connection':
      return value.toLowerCase() !== 'keep-alive';
    default:
      return false;
  }
}

/** '' for what is no name. */
function lowered(raw: string): string {
  const known = names.get(raw);
  if (known !== undefined) return known;
  const name = NAME.test(raw) ? raw.toLowerCase() : '';
  if (names.size < NAMES_MAX && raw.length <= NAME_LENGTH_MAX) names.set(raw, name);
  return name;
}

function trimmed(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isPadding(text.charCodeAt(start))) start++;
  while (end > start && isPadding(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isPadding(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
