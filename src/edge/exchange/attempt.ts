/**
 * One attempt on one node: judges the answer while it arrives and reports to its exchange. It calls `ended` exactly
 * once, which releases the node's permit.
 *
 *   running ──answer complete──► closing ──node's end──► over        `ended(ok | declined)`
 *      ├──── bad answer ───────► discarding ───────────► over        `ended(failed)` at once, the rest is thrown away
 *      └──── stop ─────────────► over                                `ended(aborted)` at once, connection closed, or
 *                   └──────────► lingering ─node's end─► over        `ended(aborted)` late: the engine cannot abort
 *
 * An answer that is no event stream is held until it is whole (up to `HELD_BYTES_MAX`), so that a node that breaks in
 * the middle of it leaves no trace with the client; a larger one passes through.
 */
import type { DurationMs, DurationUs, MonoUs, NodeId } from '../../base/units.ts';
import type { AttemptResult, FailureKind } from '../../core/request/outcome.ts';
import type { Usage } from '../../core/request/task.ts';
import type { NodeCall, NodeResponseHandler, TransportFault } from '../../ports/node-transport.ts';
import type { AttemptTrace } from '../../ports/tracing.ts';
import { SseReader } from '../protocols/openai/sse-reader.ts';
import { findUsage } from '../protocols/openai/usage.ts';
import { failureText, SAID_BYTES_MAX } from './failure-text.ts';
import { judgeHead, type NodeHead, nodeRetryAfterUs, readNodeHead } from './response-headers.ts';

const HELD_BYTES_MAX = 262_144;
/** Rest of a failed answer that is read to keep the connection; more closes it. */
const DISCARDED_BYTES_MAX = 65_536;
/** End of a large answer that is kept to find the usage in it. */
const TAIL_BYTES = 1_024;

export interface AttemptOwner {
  now(): MonoUs;
  attemptSent(): void;
  /** The node's first byte of an answer that may become a success. */
  attemptFirstByte(): void;
  /** Bytes for the client, the first call committing the head. False: the node pauses until `resume`. */
  answerPart(head: NodeHead, part: Buffer): boolean;
  /** The last bytes, or all of them when there was no part before. */
  answerEnd(head: NodeHead, part: Buffer | undefined): void;
  /** Whether a content byte has reached the client. */
  readonly hasContent: boolean;
  attemptEnded(attempt: Attempt, result: AttemptResult): void;
  /** Once after a failure, when no more is to come of it: why, in the words of the node or of the connection. */
  failureSays(attempt: Attempt, failure: FailureSaid): void;
}

export interface FailureSaid {
  readonly failure: FailureKind;
  /** Of the answer; 0 where there was none. */
  readonly status: number;
  readonly says: string;
}

type State = 'running' | 'closing' | 'discarding' | 'lingering' | 'over';

export interface AttemptOptions {
  /** Counts from 1. */
  readonly number: number;
  readonly nodeId: NodeId;
  readonly stream: boolean;
  readonly hidesUsage: boolean;
  readonly abortFreesSlot: boolean;
  /** Longest silence of a stream's node after the first content byte. */
  readonly idleMs: DurationMs;
  /** Its span, where the request is traced. */
  readonly trace: AttemptTrace | undefined;
}

export class Attempt implements NodeResponseHandler {
  readonly #owner: AttemptOwner;
  readonly #options: AttemptOptions;
  #state: State = 'running';
  #call: NodeCall | undefined;
  #head: NodeHead | undefined;
  #isDeclined = false;
  #reader: SseReader | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #passedBytes = 0;
  #tail: Buffer | undefined;
  #discardedBytes = 0;
  /** What failed, until it is told why. */
  #failed: Omit<FailureSaid, 'says'> | undefined;
  #closesWith: AttemptResult | undefined;
  /** When a stream's node last said something, and its longest silence after the first content byte. */
  #heardAt: MonoUs = -1;
  #silenceUs: DurationUs = 0;

  constructor(owner: AttemptOwner, options: AttemptOptions) {
    this.#owner = owner;
    this.#options = options;
  }

  get number(): number {
    return this.#options.number;
  }

  get nodeId(): NodeId {
    return this.#options.nodeId;
  }

  get trace(): AttemptTrace | undefined {
    return this.#options.trace;
  }

  /** The call, once the transport has returned it; it may have ended the attempt before. */
  attach(call: NodeCall): void {
    this.#call = call;
    if (this.#state === 'over') call.abort();
  }

  /** The client left, or the scheduler gave up. */
  stop(): void {
    if (this.#state === 'closing') {
      this.#endWith(this.#closesWith as AttemptResult);
      this.#call?.abort();
      return;
    }
    if (this.#state !== 'running') return;
    if (!this.#options.abortFreesSlot) {
      this.#state = 'lingering';
      this.#call?.resume();
      return;
    }
    this.#endWith({ kind: 'aborted', ...this.#passed() });
    this.#call?.abort();
  }

  resume(): void {
    // Until now the silence was ours.
    if (this.#heardAt >= 0) this.#heardAt = this.#owner.now();
    this.#call?.resume();
  }

  onSent(): void {
    if (this.#state === 'running') this.#owner.attemptSent();
  }

  onHead(status: number, headers: readonly string[]): void {
    if (this.#state !== 'running') return;
    const head = readNodeHead(status, headers);
    const verdict = judgeHead(status);
    if (verdict.kind === 'failed') {
      this.#fail(verdict.failure, nodeRetryAfterUs(head.retryAfter), status);
      return;
    }
    this.#head = head;
    this.#isDeclined = verdict.kind === 'declined';
    const isEncoded = head.contentEncoding !== '' && head.contentEncoding !== 'identity';
    const isEventStream = head.contentType.startsWith('text/event-stream');
    // No encoding was offered, and a stream was asked for if and only if one must come.
    if (isEncoded || (!this.#isDeclined && isEventStream !== this.#options.stream)) {
      this.#fail('protocol', 0);
      return;
    }
    if (isEventStream && !this.#isDeclined) this.#reader = new SseReader(this.#options.hidesUsage);
  }

  onData(chunk: Uint8Array): boolean {
    if (this.#state === 'discarding') {
      this.#discard(chunk);
      return true;
    }
    if (this.#state !== 'running') return true;
    const bytes = Buffer.isBuffer(chunk)
      ? chunk
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    return this.#reader === undefined ? this.#takeWhole(bytes) : this.#takeEvents(this.#reader, bytes);
  }

  onEnd(): void {
    if (this.#state === 'running') {
      if (this.#reader === undefined) this.#finishWhole();
      else this.#finishEvents(this.#reader);
    }
    this.#nodeEnded();
  }

  onFault(fault: TransportFault, detail: string): void {
    // Our own abort was reported when it was made, so this is the node's or the network's doing.
    if (this.#state === 'running') {
      this.#fail(fault === 'aborted' ? 'reset' : fault, 0);
      this.#explain(detail);
    }
    this.#nodeEnded();
  }

  /** The beginning of a failed answer tells why it failed. */
  #discard(chunk: Uint8Array): void {
    if (this.#failed !== undefined && this.#discardedBytes < SAID_BYTES_MAX)
      this.#held.push(Buffer.from(chunk.subarray(0, SAID_BYTES_MAX - this.#discardedBytes)));
    this.#discardedBytes += chunk.length;
    if (this.#discardedBytes <= DISCARDED_BYTES_MAX) return;
    this.#explain(failureText(this.#takeHeld()));
    this.#state = 'over';
    this.#call?.abort();
  }

  #explain(says: string): void {
    const failed = this.#failed;
    if (failed === undefined) return;
    this.#failed = undefined;
    this.#owner.failureSays(this, { ...failed, says });
  }

  #takeEvents(reader: SseReader, bytes: Buffer): boolean {
    const wasOpening = reader.phase === 'opening';
    const part = reader.push(bytes);
    if (this.#heardAt >= 0) this.#noteSilence();
    if (part !== undefined && wasOpening) this.#begin();
    // The owner may have stopped this attempt in its turn.
    if (this.#state !== 'running') return true;
    if (reader.phase === 'done') {
      this.#complete(part, reader.usage);
      return true;
    }
    const wantsMore = part === undefined ? true : this.#owner.answerPart(this.#head as NodeHead, part);
    if (reader.phase === 'broken' && this.#state === 'running') this.#fail('protocol', 0);
    return wantsMore;
  }

  #begin(): void {
    this.#heardAt = this.#owner.now();
    this.#call?.setIdle(this.#options.idleMs);
    this.#owner.attemptFirstByte();
  }

  #noteSilence(): void {
    const now = this.#owner.now();
    this.#silenceUs = Math.max(this.#silenceUs, now - this.#heardAt);
    this.#heardAt = now;
  }

  #finishEvents(reader: SseReader): void {
    const part = reader.end();
    if (reader.phase === 'broken' || !reader.isComplete) {
      this.#fail('protocol', 0);
      return;
    }
    // A few engines end with a finish reason and say no goodbye; clients wait for it.
    const goodbye = reader.phase === 'done' ? part : Buffer.concat([part ?? EMPTY, DONE_EVENT]);
    this.#complete(goodbye, reader.usage);
  }

  #takeWhole(bytes: Buffer): boolean {
    if (this.#heldBytes + this.#passedBytes === 0 && !this.#isDeclined) {
      if (!isJsonStart(bytes)) {
        this.#fail('protocol', 0);
        return true;
      }
      this.#owner.attemptFirstByte();
      if (this.#state !== 'running') return true;
    }
    if (this.#passedBytes > 0) return this.#passOn(bytes);
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#heldBytes <= HELD_BYTES_MAX) return true;
    if (this.#isDeclined) {
      this.#fail('protocol', 0);
      return true;
    }
    return this.#passOn(this.#takeHeld());
  }

  #passOn(bytes: Buffer): boolean {
    this.#passedBytes += bytes.length;
    this.#tail =
      this.#tail === undefined ? lastBytes(bytes) : lastBytes(Buffer.concat([this.#tail, lastBytes(bytes)]));
    return this.#owner.answerPart(this.#head as NodeHead, bytes);
  }

  #takeHeld(): Buffer {
    const body = this.#held.length === 1 ? (this.#held[0] as Buffer) : Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    return body;
  }

  #finishWhole(): void {
    if (this.#head === undefined) {
      this.#fail('protocol', 0);
      return;
    }
    const isPassing = this.#passedBytes > 0;
    const body = isPassing ? undefined : this.#takeHeld();
    const end = body ?? (this.#tail as Buffer);
    if (!this.#isDeclined && !isJsonEnd(end)) {
      this.#fail('protocol', 0);
      return;
    }
    const usage = this.#isDeclined ? undefined : findUsage(end.toString('latin1'));
    this.#complete(body, usage);
  }

  #complete(part: Buffer | undefined, usage: Usage | undefined): void {
    this.#state = 'closing';
    this.#closesWith = this.#isDeclined
      ? { kind: 'declined' }
      : {
          kind: 'ok',
          ...(usage === undefined ? {} : { usage }),
          ...(this.#silenceUs === 0 ? {} : { silenceUs: this.#silenceUs }),
        };
    this.#owner.answerEnd(this.#head as NodeHead, part);
  }

  #fail(failure: FailureKind, nodeRetryAfterUs: number, status = this.#head?.status ?? 0): void {
    this.#state = 'discarding';
    this.#failed = { failure, status };
    // A node that answers nonsense may go on for ever; one that refused sends a short body.
    if (failure === 'protocol') this.#call?.abort();
    const retryable = !this.#owner.hasContent;
    const wait = nodeRetryAfterUs > 0 ? { nodeRetryAfterUs } : {};
    this.#held = [];
    this.#heldBytes = 0;
    this.#owner.attemptEnded(this, { kind: 'failed', failure, retryable, ...wait, ...this.#passed() });
    if (failure === 'protocol') this.#explain('');
  }

  /** What of the answer has reached the client. Of a whole answer that passed in part, nobody counts the tokens. */
  #passed(): { readonly passed?: Usage } {
    if (!this.#owner.hasContent) return NOTHING;
    const reader = this.#reader;
    if (reader === undefined) return { passed: {} };
    const outputTokens = Math.max(reader.contentEvents, reader.usage?.outputTokens ?? 0);
    return { passed: { ...reader.usage, outputTokens } };
  }

  #nodeEnded(): void {
    if (this.#state === 'closing') this.#endWith(this.#closesWith as AttemptResult);
    else if (this.#state === 'lingering') this.#endWith({ kind: 'aborted', ...this.#passed() });
    else {
      this.#explain(failureText(this.#takeHeld()));
      this.#state = 'over';
    }
  }

  #endWith(result: AttemptResult): void {
    this.#state = 'over';
    this.#held = [];
    this.#owner.attemptEnded(this, result);
  }
}

const NOTHING = Object.freeze({});
const EMPTY: Buffer = Buffer.alloc(0);
const DONE_EVENT: Buffer = Buffer.from('data: [DONE]\n\n');

function lastBytes(bytes: Buffer): Buffer {
  return bytes.length <= TAIL_BYTES ? bytes : bytes.subarray(bytes.length - TAIL_BYTES);
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** An answer of every endpoint here is a JSON object. */
function isJsonStart(bytes: Buffer): boolean {
  let at = 0;
  while (at < bytes.length && isSpace(bytes[at] as number)) at++;
  return at === bytes.length || bytes[at] === 0x7b;
}

function isJsonEnd(bytes: Buffer): boolean {
  let at = bytes.length - 1;
  while (at >= 0 && isSpace(bytes[at] as number)) at--;
  return bytes[at] === 0x7d;
}
