/**
 * A strict HTTP/1.1 response parser, byte-incremental, for one connection.
 *
 *   head ──► body by length | chunks | until close | none ──► head of the next response
 *
 * Strict means that whatever two readers could understand differently is an error: a bare line feed, a folded header, a
 * space before a colon, two lengths, a length and a transfer coding, any coding but `chunked`, a chunk size with a sign.
 * Interim 1xx heads are skipped; 101 is an error, since nothing here asks for an upgrade.
 *
 * Body bytes are handed out as views of the buffer that came in: the receiver copies what it keeps. (RFC 9112)
 */
export interface ResponseEvents {
  head(status: number, headers: readonly string[]): void;
  data(view: Buffer): void;
  /** The response is whole. */
  end(): void;
}

/** Most bytes of one response head, and of the trailers that are thrown away. */
export const HEAD_BYTES_MAX = 65_536;
const CHUNK_LINE_BYTES_MAX = 1_024;
const INTERIM_MAX = 10;

type State =
  | 'head'
  | 'length'
  | 'until-close'
  | 'chunk-size'
  | 'chunk-data'
  | 'chunk-end'
  | 'trailers'
  | 'broken';

const LF = 0x0a;
const CR = 0x0d;
const SEMICOLON = 0x3b;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const NAME = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is control characters that are looked for.
const BAD_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;

export class ResponseParser {
  readonly #events: ResponseEvents;
  #state: State = 'head';
  /** Bytes of a head, size line or trailer section that is not whole yet. */
  #carry: Buffer | undefined;
  #left = 0;
  #chunkDigits = 0;
  #lineBytes = 0;
  #isInExtension = false;
  #sawCr = false;
  #trailerBytes = 0;
  #trailerLineBytes = 0;
  #interims = 0;
  #isEnded = false;
  /** The rule that the response broke; '' while it broke none. */
  fault = '';
  /** Whether the connection may carry another request after this response. */
  keepsAlive = true;
  /** Seconds that the server keeps an idle connection, or -1 when it did not say. */
  keepAliveSeconds = -1;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  /** Between responses: nothing of a next one has arrived. */
  get isIdle(): boolean {
    return this.#state === 'head' && this.#carry === undefined;
  }

  /** Takes bytes; stops at the end of the response or at a fault. Bytes after the end are a fault: nothing was asked. */
  push(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length && this.#state !== 'broken') {
      at = this.#step(bytes, at);
      if (this.#isEnded) {
        this.#isEnded = false;
        if (at < bytes.length) this.#fail('bytes after the end of the response');
        else this.#events.end();
        return;
      }
    }
  }

  /** The connection was closed by the server. */
  close(): void {
    if (this.#state === 'until-close') {
      this.#reset();
      this.#events.end();
    } else if (this.#state !== 'broken') {
      this.#fail(this.isIdle ? 'closed before a response' : 'closed in the middle of a response');
    }
  }

  #step(bytes: Buffer, at: number): number {
    switch (this.#state) {
      case 'head':
        return this.#takeHead(bytes, at);
      case 'length':
        return this.#takeLength(bytes, at);
      case 'until-close':
        this.#events.data(at === 0 ? bytes : bytes.subarray(at));
        return bytes.length;
      case 'chunk-size':
        return this.#takeChunkSize(bytes, at);
      case 'chunk-data':
        return this.#takeChunkData(bytes, at);
      case 'chunk-end':
        return this.#takeChunkEnd(bytes, at);
      case 'trailers':
        return this.#takeTrailers(bytes, at);
      case 'broken':
        return bytes.length;
    }
  }

  #takeHead(chunk: Buffer, start: number): number {
    const carried = this.#carry?.length ?? 0;
    const bytes = this.#carry === undefined ? chunk : Buffer.concat([this.#carry, chunk.subarray(start)]);
    const from = this.#carry === undefined ? start : 0;
    const end = bytes.indexOf('\r\n\r\n', Math.max(from, carried - 3), 'latin1');
    if ((end < 0 ? bytes.length : end) - from > HEAD_BYTES_MAX)
      return this.#fail('the response head is too large');
    if (end < 0) {
      // A copy: the incoming buffer is reused.
      this.#carry = this.#carry === undefined ? Buffer.from(bytes.subarray(from)) : bytes;
      return chunk.length;
    }
    const next = this.#carry === undefined ? end + 4 : start + end + 4 - carried;
    this.#carry = undefined;
    this.#readHead(bytes.toString('latin1', from, end));
    return next;
  }

  #readHead(text: string): void {
    const lines = text.split('\r\n');
    const status = STATUS_LINE.exec(lines[0] as string);
    if (status === null) {
      this.#fail('the status line is not HTTP/1.1');
      return;
    }
    const headers: string[] = [];
    for (let i = 1; i < lines.length; i++) {
      const line = lines[i] as string;
      const colon = line.indexOf(':');
      const name = line.slice(0, Math.max(0, colon));
      const value = withoutPadding(line, colon + 1);
      if (!NAME.test(name) || BAD_VALUE.test(value)) {
        this.#fail('a header line is malformed');
        return;
      }
      headers.push(name.toLowerCase(), value);
    }
    const code = Number(status[2]);
    if (code >= 200) this.#beginBody(code, headers, status[1] === '1');
    else if (code === 101) this.#fail('an upgrade that was not asked for');
    else if (++this.#interims > INTERIM_MAX) this.#fail('too many interim responses');
  }

  #beginBody(status: number, headers: string[], isHttp11: boolean): void {
    let length = -1;
    let isChunked = false;
    this.keepsAlive = isHttp11;
    this.keepAliveSeconds = -1;
    for (let i = 0; i < headers.length; i += 2) {
      const value = headers[i + 1] as string;
      switch (headers[i] as string) {
        case 'content-length':
          if (length >= 0 || !/^\d{1,15}$/.test(value))
            return void this.#fail('the content-length is ambiguous');
          length = Number(value);
          break;
        case 'transfer-encoding':
          if (isChunked || value.toLowerCase() !== 'chunked')
            return void this.#fail('an unknown transfer-encoding');
          isChunked = true;
          break;
        case 'connection':
          if (/(?:^|[,\s])close(?:$|[,\s])/i.test(value)) this.keepsAlive = false;
          break;
        case 'keep-alive':
          this.keepAliveSeconds = Number(/timeout=(\d{1,6})/i.exec(value)?.[1] ?? -1);
          break;
        default:
      }
    }
    if (isChunked && length >= 0) return void this.#fail('both a content-length and a transfer-encoding');
    this.#interims = 0;
    const hasBody = status !== 204 && status !== 304;
    this.#left = length;
    this.#state =
      !hasBody || length === 0 ? 'head' : isChunked ? 'chunk-size' : length > 0 ? 'length' : 'until-close';
    if (this.#state === 'until-close') this.keepsAlive = false;
    this.#isEnded = this.#state === 'head';
    this.#events.head(status, headers);
  }

  #takeLength(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    if (this.#left === 0) this.#finish();
    this.#events.data(bytes.subarray(at, end));
    return end;
  }

  #takeChunkSize(bytes: Buffer, start: number): number {
    for (let at = start; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (++this.#lineBytes > CHUNK_LINE_BYTES_MAX) return this.#fail('a chunk line is too long');
      if (this.#sawCr) {
        if (byte !== LF || this.#chunkDigits === 0) return this.#fail('a chunk size is malformed');
        this.#beginChunk();
        return at + 1;
      }
      if (byte === CR) this.#sawCr = true;
      else if (byte === SEMICOLON && this.#chunkDigits > 0) this.#isInExtension = true;
      else if (!this.#isInExtension) {
        const digit = hexDigit(byte);
        if (digit < 0 || ++this.#chunkDigits > 12) return this.#fail('a chunk size is malformed');
        this.#left = (this.#chunkDigits === 1 ? 0 : this.#left * 16) + digit;
      } else if (byte === LF) return this.#fail('a chunk size is malformed');
    }
    return bytes.length;
  }

  #beginChunk(): void {
    this.#state = this.#left === 0 ? 'trailers' : 'chunk-data';
    this.#chunkDigits = 0;
    this.#lineBytes = 0;
    this.#isInExtension = false;
    this.#sawCr = false;
    this.#trailerBytes = 0;
    this.#trailerLineBytes = 0;
  }

  #takeChunkData(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    if (this.#left === 0) this.#state = 'chunk-end';
    this.#events.data(bytes.subarray(at, end));
    return end;
  }

  #takeChunkEnd(bytes: Buffer, at: number): number {
    const byte = bytes[at];
    if (!this.#sawCr) {
      if (byte !== CR) return this.#fail('a chunk is longer than it says');
      this.#sawCr = true;
    } else {
      if (byte !== LF) return this.#fail('a chunk is longer than it says');
      this.#sawCr = false;
      this.#state = 'chunk-size';
    }
    return at + 1;
  }

  /** Trailers are read and thrown away; an empty line ends them. */
  #takeTrailers(bytes: Buffer, start: number): number {
    for (let at = start; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (++this.#trailerBytes > HEAD_BYTES_MAX) return this.#fail('the trailers are too large');
      if (this.#sawCr) {
        if (byte !== LF) return this.#fail('a trailer is malformed');
        this.#sawCr = false;
        if (this.#trailerLineBytes === 0) {
          this.#finish();
          return at + 1;
        }
        this.#trailerLineBytes = 0;
      } else if (byte === CR) this.#sawCr = true;
      else if (byte === LF) return this.#fail('a trailer is malformed');
      else this.#trailerLineBytes++;
    }
    return bytes.length;
  }

  #finish(): void {
    this.#isEnded = true;
    this.#reset();
  }

  #reset(): void {
    this.#state = 'head';
    this.#left = 0;
  }

  #fail(rule: string): number {
    this.#state = 'broken';
    this.#carry = undefined;
    this.fault = rule;
    return Number.MAX_SAFE_INTEGER;
  }
}

/** Without spaces and tabs around it, and nothing else: a stray carriage return must stay to be seen. */
function withoutPadding(line: string, from: number): string {
  let start = from;
  let end = line.length;
  while (start < end && isPadding(line.charCodeAt(start))) start++;
  while (end > start && isPadding(line.charCodeAt(end - 1))) end--;
  return line.slice(start, end);
}

function isPadding(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
