/**
 * Idempotency keys at the door: who comes with a key that is taken joins the request that has it, or gets its stored answer.
 * That costs no second task, no work and no limit. A key belongs to a tenant, and to one path and body: with another it is
 * refused.
 *
 * Nothing of a refusal or a failure is kept: whoever comes after it runs anew. What the headers of a joining request wish
 * (class, deadline) is not looked at: it gets what the first one gets.
 */
import { createHash } from 'node:crypto';
import type { DurationUs, MonoUs, TaskId } from '../../base/units.ts';
import type { IdempotencyConfig } from '../../core/config/types.ts';
import type { Outcome } from '../../core/request/outcome.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import type { RequestTrace } from '../../ports/tracing.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { ClientResponse } from '../exchange/client-response.ts';
import type { ExchangeWatcher } from '../exchange/contract.ts';
import type { Spool } from '../exchange/spool.ts';
import { type Refusal, refuse, renderOpenAiLines } from '../outcomes/refusal.ts';
import { shortEnd } from '../short-trace.ts';
import { BEACON_HEADER, type BeaconDesk } from '../user-side/beacon-desk.ts';
import { type Reader, type Record, SharedAnswer, type StoredAnswer } from './shared-answer.ts';
import { type Entry, IdempotencyTable } from './table.ts';

/** Visible ASCII: no spaces, so that a header sent twice is no key. */
const KEY = /^[\x21-\x7e]+$/;
/** When too many wait for one answer, it is usually there by then. */
const FULL_RETRY_US: DurationUs = 1_000_000;

/** What of an answer is true for whoever gets it later. */
const KEPT_HEADERS: ReadonlySet<string> = new Set([
  'content-type',
  'content-length',
  'cache-control',
  'content-language',
  'openai-model',
  'openai-processing-ms',
  'openai-version',
  'x-spillway-class',
  'x-spillway-attempts',
  'x-spillway-degraded',
]);

/** A request with a key, once it is known to be one that can be run. */
export interface KeyedRequest {
  readonly key: string;
  readonly tenant: string;
  readonly className: string;
  readonly model: string;
  readonly endpoint: string;
  readonly path: string;
  readonly body: Uint8Array;
  readonly requestId: string;
  readonly receivedAt: MonoUs;
  /** Present where traces are configured; ended here for who gets another one's answer. */
  readonly trace: RequestTrace | undefined;
  /** Its connection; asked for only if it is answered here or shared. */
  response(): ClientResponse;
}

export type Claimed =
  /** It is the first with its key: it runs, and is watched. */
  | {
      readonly kind: 'runs';
      readonly response: ClientResponse;
      readonly watcher: ExchangeWatcher | undefined;
    }
  | { readonly kind: 'answered' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

interface Running {
  readonly answer: SharedAnswer;
  readonly publicId: { value: string };
}

interface Stored extends StoredAnswer {
  readonly originalId: string;
}

type KeyEntry = Entry<Running, Stored>;

export interface IdempotencyOptions {
  readonly gateway: Gateway;
  readonly metrics: MetricsSink;
  readonly spool: Spool;
  readonly beacons: BeaconDesk;
}

export class Idempotency {
  readonly #options: IdempotencyOptions;
  readonly #table: IdempotencyTable<Running, Stored>;

  constructor(options: IdempotencyOptions) {
    this.#options = options;
    this.#table = new IdempotencyTable(() => this.#config);
  }

  get #config(): IdempotencyConfig {
    return this.#options.gateway.config.idempotency;
  }

  /** Whether keys are looked at at all. */
  get isOn(): boolean {
    return this.#config.entriesMax > 0;
  }

  claim(request: KeyedRequest): Claimed {
    const { metrics, gateway } = this.#options;
    const { keyCharsMax } = this.#config;
    if (request.key.length > keyCharsMax || !KEY.test(request.key)) {
      const rule = `idempotency-key must be 1 to ${keyCharsMax} visible ASCII characters`;
      return { kind: 'refused', refusal: refuse('bad-request', rule) };
    }
    const name = nameOf(request);
    const hash = hashOf(request);
    const claim = this.#table.look(name, hash, gateway.now());
    switch (claim.kind) {
      case 'mismatch':
        metrics.keyed('mismatch');
        return { kind: 'refused', refusal: refuse('idempotency-mismatch') };
      case 'running':
        return this.#join(request, claim.running);
      case 'stored':
        this.#replay(request, claim.stored);
        return { kind: 'answered' };
      case 'free':
        return this.#run(request, name, hash);
    }
  }

  #run(request: KeyedRequest, name: string, hash: Uint8Array): Claimed {
    const { spool, metrics } = this.#options;
    const response = request.response();
    const record = new KeptRecord(this.#table, {
      answerBytesMax: () => this.#config.answerBytesMax,
      now: () => this.#options.gateway.now(),
      unkept: () => metrics.keyed('unkept'),
    });
    const answer = new SharedAnswer(spool, record);
    const running: Running = { answer, publicId: record.publicId };
    record.entry = this.#table.take(name, hash, running);
    if (record.entry === undefined) {
      metrics.keyed('unkept');
      return { kind: 'runs', response, watcher: undefined };
    }
    answer.join(new FirstReader(response, record.publicId));
    return { kind: 'runs', response: answer, watcher: answer };
  }

  #join(request: KeyedRequest, { answer, publicId }: Running): Claimed {
    if (answer.readers > this.#config.joinersMax) {
      const refusal = refuse('queue-full', 'too many requests wait for the answer to this idempotency key');
      return {
        kind: 'refused',
        refusal: { ...refusal, hint: { retryable: true, afterUs: FULL_RETRY_US } },
      };
    }
    this.#options.metrics.keyed('joined');
    answer.join(new LaterReader(this.#options, request, { how: 'joined', originalId: publicId }));
    return { kind: 'answered' };
  }

  /** As one more reader of an answer that is whole already, so that a slow one is watched like any other. */
  #replay(request: KeyedRequest, stored: Stored): void {
    this.#options.metrics.keyed('replayed');
    const { status, headers, body, originalId } = stored;
    const answer = new SharedAnswer(this.#options.spool, NO_RECORD);
    const source = { how: 'replayed', originalId: { value: originalId } } as const;
    answer.join(new LaterReader(this.#options, request, source));
    answer.writeHead(status, [...headers]);
    answer.end(body);
    answer.finished(SERVED);
  }
}

const SERVED: Outcome = Object.freeze({ kind: 'served' });
const NO_RECORD: Record = { grow: () => false, finished() {} };

interface KeptOptions {
  answerBytesMax(): number;
  now(): MonoUs;
  unkept(): void;
}

/** Books what is written under the key, and stores or frees the key at the end. */
class KeptRecord implements Record {
  readonly #table: IdempotencyTable<Running, Stored>;
  readonly #options: KeptOptions;
  /** Of the request that runs, once its head was written. */
  readonly publicId: { value: string } = { value: '' };
  entry: KeyEntry | undefined;
  #bytes = 0;

  constructor(table: IdempotencyTable<Running, Stored>, options: KeptOptions) {
    this.#table = table;
    this.#options = options;
  }

  grow(bytes: number): boolean {
    if (this.entry === undefined) return false;
    this.#bytes += bytes;
    if (this.#bytes <= this.#options.answerBytesMax() && this.#table.grow(this.entry, bytes)) return true;
    this.#options.unkept();
    this.#free();
    return false;
  }

  finished(answer: StoredAnswer | undefined): void {
    if (this.entry === undefined) return;
    if (answer === undefined) {
      this.#free();
      return;
    }
    const headers = kept(answer.headers, ['content-length']);
    headers.push('content-length', String(answer.body.length));
    const stored = { ...answer, headers, originalId: this.publicId.value };
    this.#table.finish(this.entry, stored, this.#options.now());
    this.entry = undefined;
  }

  #free(): void {
    if (this.entry !== undefined) this.#table.drop(this.entry);
    this.entry = undefined;
  }
}

/** The client whose request runs: it gets everything as the exchange writes it. */
class FirstReader implements Reader {
  readonly response: ClientResponse;
  readonly #publicId: { value: string };

  constructor(response: ClientResponse, publicId: { value: string }) {
    this.response = response;
    this.#publicId = publicId;
  }

  headers(ofExchange: readonly string[]): readonly string[] {
    const at = ofExchange.indexOf('x-spillway-id');
    if (at >= 0) this.#publicId.value = ofExchange[at + 1] as string;
    return ofExchange;
  }

  refusal(_refusal: Refusal | undefined, lines: string, body: string): { lines: string; body: string } {
    return { lines, body };
  }

  /** The exchange counts it. */
  ended(): void {}
}

interface Source {
  readonly how: 'joined' | 'replayed';
  readonly originalId: { readonly value: string };
}

/** A client that came with the same key: answered under an id of its own. */
class LaterReader implements Reader {
  readonly response: ClientResponse;
  readonly #options: IdempotencyOptions;
  readonly #request: KeyedRequest;
  readonly #source: Source;
  readonly #taskId: TaskId;
  readonly #publicId: string;

  constructor(options: IdempotencyOptions, request: KeyedRequest, source: Source) {
    this.#options = options;
    this.#request = request;
    this.#source = source;
    this.response = request.response();
    const ids = options.gateway.nextId();
    this.#taskId = ids.taskId;
    this.#publicId = ids.publicId;
  }

  headers(ofExchange: readonly string[]): readonly string[] {
    return [...this.#own(), ...kept(ofExchange, [])];
  }

  /** With a wait of its own: those who are refused together do not come back together. */
  refusal(refusal: Refusal | undefined, lines: string, body: string): { lines: string; body: string } {
    if (refusal === undefined) return { lines, body };
    const { overloadStatus } = this.#options.gateway.config.server;
    const rendered = renderOpenAiLines(refusal, { overloadStatus, jitterSeed: this.#taskId });
    let own = '';
    const headers = this.#own();
    for (let i = 0; i < headers.length; i += 2) own += `${headers[i]}: ${headers[i + 1]}\r\n`;
    return { lines: own + rendered.lines, body: rendered.body };
  }

  ended(outcome: Outcome): void {
    const { gateway, metrics } = this.#options;
    const { className, tenant, model, receivedAt, endpoint, trace } = this.#request;
    gateway.noteJoined(this.#taskId, { outcome, className, tenant, model, receivedAt });
    const label = 'reason' in outcome ? outcome.reason : outcome.kind;
    const at = gateway.now();
    metrics.requestEnded(className, model, label, Math.max(0, at - receivedAt) / 1e6);
    const known = { publicId: this.#publicId, className, tenant, model, endpoint };
    trace?.end(shortEnd({ ...known, at, outcome: label }));
  }

  #own(): string[] {
    const { requestId, className, tenant, receivedAt } = this.#request;
    const { how, originalId } = this.#source;
    const own = [
      'x-spillway-id',
      this.#publicId,
      'x-request-id',
      requestId === '' ? this.#publicId : requestId,
      'x-spillway-idempotency',
      how,
    ];
    if (originalId.value !== '') own.push('x-spillway-original-id', originalId.value);
    const subject = { publicId: this.#publicId, className, tenant, receivedAt };
    const token = this.#options.beacons.tokenFor(subject);
    if (token !== '') own.push(BEACON_HEADER, token);
    return own;
  }
}

function kept(headers: readonly string[], without: readonly string[]): string[] {
  const list: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] as string;
    if (KEPT_HEADERS.has(name) && !without.includes(name)) list.push(name, headers[i + 1] as string);
  }
  return list;
}

/** A string of its own: the key is a part of the head's text, which would be held as long as the answer. */
function nameOf({ tenant, key }: KeyedRequest): string {
  return Buffer.from(`${tenant}\n${key}`, 'utf8').toString('utf8');
}

function hashOf({ path, body }: KeyedRequest): Uint8Array {
  return createHash('sha256').update(path).update('\n').update(body).digest();
}
