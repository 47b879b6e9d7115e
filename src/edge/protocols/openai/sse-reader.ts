/**
 * Reads a node's event stream while it passes through. It answers, chunk by chunk: which bytes may go to the client
 * now, whether content has begun, and whether the stream is a success, a failure, or not yet decided.
 *
 *   opening ──first content event──► flowing ──[DONE]──► done
 *      │                               │
 *      └── error event, garbage ───────┴──► broken            end of bytes: done only after [DONE] or a finish reason
 *
 * Until the first content event everything is held back, so that a node that fails there leaves no trace and another
 * can be tried. From then on whole events pass as they came; an event cut by a chunk border waits for its other half
 * (at most `EVENT_BYTES_MAX`). The usage chunk that only the gateway asked for is taken out.
 *
 * A chunk of whole, ordinary events costs one conversion to a latin-1 string and one search: JSON escapes quotes and
 * line breaks inside strings, so none of the looked-for patterns can come from a model's own words.
 */
import type { Usage } from '../../../core/request/task.ts';
import { findUsage } from './usage.ts';

/** A single event larger than this is not an answer of a language model. */
const EVENT_BYTES_MAX = 1_048_576;
/** Held back before the first content event; beyond it the node talks without saying anything. */
const PRELUDE_BYTES_MAX = 65_536;

export type StreamPhase = 'opening' | 'flowing' | 'done' | 'broken';

/** Anything in a chunk that needs a look at its events one by one. */
const REMARKABLE = /\[DONE\]|"usage":\s*\{|"error":|"finish_reason":\s*"/;
const FIELD_LINE = /^(?:data|event|id|retry)?:|^(?:data|event|id|retry)$/;
const FINISH = /"finish_reason":\s*"/;
const USAGE = /"usage":\s*\{/;
const NEXT_DATA = '\n\ndata:';
const EMPTY_CHOICES = /"choices":\s*\[\s*\]/;

const LF = 0x0a;
const CR = 0x0d;

export class SseReader {
  phase: StreamPhase = 'opening';
  usage: Usage | undefined;
  /** Events with content that were passed on: the tokens of an answer, where each is sent as it is made. */
  contentEvents = 0;
  readonly #hidesUsage: boolean;
  #carry: Buffer | undefined;
  #prelude: Buffer[] = [];
  #preludeBytes = 0;
  #hasFinish = false;

  constructor(hidesUsage: boolean) {
    this.#hidesUsage = hidesUsage;
  }

  /** The bytes for the client, or undefined. Look at `phase` afterwards. */
  push(chunk: Buffer): Buffer | undefined {
    if (this.phase === 'done' || this.phase === 'broken') return undefined;
    if (this.phase === 'flowing' && this.#carry === undefined && endsWithEvent(chunk)) {
      const text = chunk.toString('latin1');
      if (text.startsWith('data:') && !REMARKABLE.test(text)) {
        this.contentEvents += dataEvents(text);
        return chunk;
      }
    }
    return this.#pushEvents(chunk);
  }

  /** Whether the bytes that have ended are a whole answer. `[DONE]` is missing if the phase is not `done`. */
  get isComplete(): boolean {
    return (
      this.phase === 'done' || (this.phase === 'flowing' && this.#hasFinish && this.#carry === undefined)
    );
  }

  /** The node's bytes have ended: an event that lacks only its blank line still counts. */
  end(): Buffer | undefined {
    const rest = this.#carry;
    if (rest === undefined || this.phase === 'done' || this.phase === 'broken') return undefined;
    return this.#pushEvents(Buffer.from(rest[rest.length - 1] === LF ? '\n' : '\n\n'));
  }

  #pushEvents(chunk: Buffer): Buffer | undefined {
    const bytes = this.#carry === undefined ? chunk : Buffer.concat([this.#carry, chunk]);
    this.#carry = undefined;
    const passed: Buffer[] = [];
    let start = 0;
    while (start < bytes.length) {
      const end = eventEnd(bytes, start);
      if (end < 0) break;
      this.#takeEvent(bytes.subarray(start, end), passed);
      start = end;
      if (this.phase === 'done' || this.phase === 'broken') return joined(passed);
    }
    if (start < bytes.length) {
      this.#carry = start === 0 ? bytes : bytes.subarray(start);
      if (this.#carry.length > EVENT_BYTES_MAX) this.phase = 'broken';
    }
    return joined(passed);
  }

  #takeEvent(event: Buffer, passed: Buffer[]): void {
    const text = event.toString('latin1');
    if (!isEventText(text)) {
      this.phase = 'broken';
      return;
    }
    const payload = dataOf(text);
    if (payload === '[DONE]') {
      // Success needs an answer before it: a stream that only says goodbye is 200 with nothing.
      this.phase = this.phase === 'flowing' ? 'done' : 'broken';
      if (this.phase === 'done') passed.push(event);
      return;
    }
    if (payload.startsWith('{"error"') || /^\{\s*"error"\s*:/.test(payload)) {
      this.phase = 'broken';
      return;
    }
    const isLast = FINISH.test(payload);
    if (isLast) this.#hasFinish = true;
    if (USAGE.test(payload)) {
      this.usage = findUsage(payload) ?? this.usage;
      if (this.#hidesUsage && EMPTY_CHOICES.test(payload)) return;
    }
    if (this.phase === 'opening') this.#takeOpening(event, payload, passed);
    else {
      passed.push(event);
      if (payload !== '' && !isLast) this.contentEvents += 1;
    }
  }

  #takeOpening(event: Buffer, payload: string, passed: Buffer[]): void {
    const content = payload === '' ? 'none' : judgeContent(payload);
    if (content === 'garbage') {
      this.phase = 'broken';
      return;
    }
    this.#preludeBytes += event.length;
    if (content === 'none') {
      // A comment of the node is not repeated: the gateway sends its own keep-alives.
      if (payload !== '') this.#prelude.push(event);
      if (this.#preludeBytes > PRELUDE_BYTES_MAX) this.phase = 'broken';
      return;
    }
    this.phase = 'flowing';
    this.contentEvents += 1;
    passed.push(...this.#prelude, event);
    this.#prelude = [];
  }
}

/** Whether an opening event says something, or only announces a role. Parsed: there are one or two of them. */
function judgeContent(payload: string): 'content' | 'none' | 'garbage' {
  let chunk: unknown;
  try {
    chunk = JSON.parse(payload);
  } catch {
    return 'garbage';
  }
  if (typeof chunk !== 'object' || chunk === null) return 'garbage';
  const choices = (chunk as { choices?: unknown }).choices;
  // A dialect that this reader does not know: pass it on rather than hold it back.
  if (!Array.isArray(choices)) return 'content';
  return choices.some(hasContent) ? 'content' : 'none';
}

function hasContent(choice: unknown): boolean {
  if (typeof choice !== 'object' || choice === null) return false;
  const { text, finish_reason: finish, delta } = choice as Record<string, unknown>;
  if (isSomething(text) || isSomething(finish)) return true;
  if (typeof delta !== 'object' || delta === null) return false;
  return Object.entries(delta).some(([name, value]) => name !== 'role' && isSomething(value));
}

function isSomething(value: unknown): boolean {
  return (
    value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0)
  );
}

/** Every line of an event is a field or a comment; anything else is not an event stream. */
function isEventText(text: string): boolean {
  let start = 0;
  while (start < text.length) {
    let end = text.indexOf('\n', start);
    if (end < 0) end = text.length;
    const line = text.charCodeAt(end - 1) === CR ? text.slice(start, end - 1) : text.slice(start, end);
    if (line !== '' && !line.startsWith('data:') && !FIELD_LINE.test(line)) return false;
    start = end + 1;
  }
  return true;
}

/** The joined data lines; '' when the event has none. */
function dataOf(text: string): string {
  let data = '';
  for (const line of text.split('\n')) {
    if (!line.startsWith('data:')) continue;
    const value = line.slice(5).trim();
    data = data === '' ? value : `${data}\n${value}`;
  }
  return data;
}

function endsWithEvent(chunk: Buffer): boolean {
  const length = chunk.length;
  return length >= 2 && chunk[length - 1] === LF && chunk[length - 2] === LF;
}

/** Events with data in text that begins with one. */
function dataEvents(text: string): number {
  let count = 1;
  for (let at = text.indexOf(NEXT_DATA); at >= 0; at = text.indexOf(NEXT_DATA, at + 1)) count += 1;
  return count;
}

/** Position after the blank line that ends the event at `start`, or -1. */
function eventEnd(bytes: Buffer, start: number): number {
  let at = bytes.indexOf(LF, start);
  while (at >= 0) {
    if (bytes[at + 1] === LF) return at + 2;
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
    at = bytes.indexOf(LF, at + 1);
  }
  return -1;
}

function joined(parts: readonly Buffer[]): Buffer | undefined {
  if (parts.length <= 1) return parts[0];
  return Buffer.concat(parts);
}
