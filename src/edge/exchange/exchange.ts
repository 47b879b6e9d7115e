/**
 * One request's road after admission: it listens to the scheduler, runs attempts on nodes, and answers the client.
 *
 * Three parties move independently (client, scheduler, node), so the exchange keeps one state for the client's answer
 * and at most one running attempt, and every entry checks both:
 *
 *   answer   none ──waited long──► early ──content──► flowing ──► ended          gone: the client closed before `ended`
 *              └──content────────────────────────────────┘
 *
 * Invariants: `attemptEnded` exactly once per `assigned`; nothing is written after `ended` or `gone`; a retry happens
 * only while no content byte has reached the client; a client that leaves cancels the task and stops the node in the
 * same turn.
 */
import type { DurationUs, MonoUs, TaskId } from '../../base/units.ts';
import { alternativeLabel, needsWork, type PlannedAnswer } from '../../core/degrade/index.ts';
import {
  type AttemptResult,
  type LimitsView,
  NO_RETRY,
  type Outcome,
  type RetryHint,
} from '../../core/request/index.ts';
import type { Usage } from '../../core/request/task.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import type { NodeTransport } from '../../ports/node-transport.ts';
import type { RequestTrace } from '../../ports/tracing.ts';
import type { Assignment, Gateway, SubmitSpec, TaskListener } from '../../runtime/contract.ts';
import type { RuntimeLog } from '../../runtime/log.ts';
import { limitHeaders, limitLines } from '../outcomes/limit-headers.ts';
import { openAiBody, type Refusal, refuse, renderOpenAiLines } from '../outcomes/refusal.ts';
import type { RefusalReason } from '../outcomes/table.ts';
import type { AnswerCache, Recording } from '../cache/answer-cache.ts';
import { flagLength, flagObject, flagStream } from '../degrade/flag.ts';
import type { LesserAnswers } from '../degrade/lesser-answers.ts';
import type { InferenceRequest } from '../protocols/inference-request.ts';
import { BEACON_HEADER, type BeaconDesk } from '../user-side/beacon-desk.ts';
import { Attempt, type AttemptOwner, type FailureSaid } from './attempt.ts';
import type { Stages } from '../stages.ts';
import type { ClientResponse } from './client-response.ts';
import type { NodeHead } from './response-headers.ts';
import { silenceLimits } from './silence-limits.ts';
import type { SlowReader, Spool } from './spool.ts';
import { type ClientEnd, Witness } from './witness.ts';

/** What all exchanges of a data plane share. */
export interface ExchangeContext {
  readonly gateway: Gateway;
  readonly transport: NodeTransport;
  readonly metrics: MetricsSink;
  readonly spool: Spool;
  readonly cache: AnswerCache;
  readonly log: RuntimeLog;
  readonly beacons: BeaconDesk;
  readonly stages: Stages;
  /** Text of a keep-alive comment: where the request stands, if that can be told cheaply. */
  waitingNote(publicId: string): string;
}

/** Somebody beside the client who must know how it ends. */
export interface ExchangeWatcher {
  /** Before the refusal is written as the whole answer. */
  refusedWith(refusal: Refusal): void;
  /** Once, when the client has been told. */
  finished(outcome: Outcome): void;
}

export interface ExchangeSpec {
  readonly request: InferenceRequest;
  readonly submit: SubmitSpec;
  /** Flat headers that the node may see. */
  readonly forwarded: readonly string[];
  /** The client's own id, or ''. */
  readonly requestId: string;
  readonly nodeVisible: boolean;
  /** What may stand in for the answer; absent without consent. */
  readonly lesser?: LesserAnswers | undefined;
  /** The key under which the answer is to be remembered, or ''. */
  readonly cacheKey: string;
  readonly watcher?: ExchangeWatcher | undefined;
  /** Present where traces are configured. */
  readonly trace?: RequestTrace | undefined;
}

type Answer = 'none' | 'early' | 'flowing' | 'ended' | 'gone';

/** What waits in a connection before its reader counts as slow. */
const PENDING_BYTES_NORMAL = 65_536;

export class Exchange implements TaskListener, AttemptOwner, SlowReader {
  readonly #context: ExchangeContext;
  readonly #spec: ExchangeSpec;
  readonly #res: ClientResponse;
  readonly #witness: Witness;
  #taskId: TaskId = 0;
  #publicId = '';
  #answer: Answer = 'none';
  #isFinished = false;
  #attempt: Attempt | undefined;
  #assignment: Assignment | undefined;
  #attempts = 0;
  #hasContent = false;
  #isSlow = false;
  #listensToDrain = false;
  #timer: NodeJS.Timeout | undefined;
  #submittedAt: MonoUs = 0;
  #firstAssignedAt: MonoUs = 0;
  #assignedAt: MonoUs = 0;
  #overheadUs: DurationUs = 0;
  /** Of the limits that refused the request; otherwise those of the tenant are told. */
  #limits: LimitsView | undefined;
  /** What stands in for the answer now. */
  #lesser: PlannedAnswer | undefined;
  #recording: Recording | undefined;
  #contentType = '';

  constructor(context: ExchangeContext, spec: ExchangeSpec, res: ClientResponse) {
    this.#context = context;
    this.#spec = spec;
    this.#res = res;
    const { submit, trace, request } = spec;
    const { log, beacons } = context;
    this.#witness = new Witness({ request, submit, trace, log, userSide: beacons.userSide });
  }

  get hasContent(): boolean {
    return this.#hasContent;
  }

  start(): void {
    const { gateway } = this.#context;
    const { submit, request } = this.#spec;
    this.#res.onClose(() => this.clientClosed());
    const remembered = this.#spec.lesser?.remembered;
    if (remembered !== undefined) this.#context.cache.pin(remembered);
    const ids = gateway.submit(submit, this);
    this.#taskId = ids.taskId;
    this.#publicId = ids.publicId;
    this.#context.stages.remember(ids.publicId, submit);
    this.#submittedAt = gateway.now();
    this.#witness.submitted(ids.publicId, this.#submittedAt);
    this.#overheadUs = this.#submittedAt - submit.receivedAt;
    if (request.stream) {
      const waitMs = gateway.config.server.earlyCommitMs - this.#overheadUs / 1_000;
      this.#timer = setTimeout(() => this.#keepAlive(), Math.max(1, waitMs));
    }
  }

  // The scheduler's side.

  admitted(): void {
    this.#witness.admitted(this.#context.gateway.now());
  }

  assigned(assignment: Assignment): void {
    const { gateway, metrics, transport } = this.#context;
    if (this.#answer === 'gone' || this.#isFinished) {
      gateway.attemptEnded(this.#taskId, { kind: 'aborted' }, assignment.attempt);
      return;
    }
    this.#assignedAt = gateway.now();
    this.#assignment = assignment;
    this.#attempts++;
    if (this.#attempts === 1) {
      this.#firstAssignedAt = this.#assignedAt;
      const waitedS = (this.#assignedAt - this.#submittedAt) / 1e6;
      metrics.queueWait(this.#spec.submit.className, this.#spec.submit.model, Math.max(0, waitedS));
    } else metrics.retried();
    const { request, forwarded, cacheKey } = this.#spec;
    this.#recording?.drop();
    this.#recording =
      cacheKey === '' || this.#lesser !== undefined
        ? undefined
        : this.#context.cache.record(cacheKey, request.endpoint);
    const silence = silenceLimits(assignment, gateway.config, request.stream);
    const trace = this.#witness.assigned(assignment, this.#modelFor(assignment), this.#assignedAt);
    if (trace !== undefined) this.#context.stages.rememberAttempt(trace.traceparent, this.#spec.submit);
    const attempt = new Attempt(this, {
      number: assignment.attempt,
      nodeId: assignment.nodeId,
      stream: request.stream,
      hidesUsage: request.hidesUsage,
      abortFreesSlot: assignment.abortFreesSlot,
      idleMs: silence.streamMs,
      trace,
    });
    this.#attempt = attempt;
    const call = transport.send(
      assignment.nodeId,
      {
        method: 'POST',
        path: request.path,
        headers: trace === undefined ? forwarded : [...forwarded, 'traceparent', trace.traceparent],
        body: this.#bodyFor(assignment),
        headersMs: silence.headersMs,
        idleMs: silence.bodyMs,
      },
      attempt,
    );
    attempt.attach(call);
  }

  /** A lesser answer stands in from now on; what was remembered of a whole one is none. */
  degraded(alternative: number): void {
    this.#lesser = this.#spec.lesser?.planned[alternative];
    this.#recording?.drop();
    this.#recording = undefined;
  }

  abort(): void {
    this.#attempt?.stop();
  }

  finished(outcome: Outcome): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#clearTimer();
    this.#tell(outcome);
    this.#spec.watcher?.finished(outcome);
    this.#letGo(outcome);
  }

  #tell(outcome: Outcome): void {
    switch (outcome.kind) {
      case 'served':
        this.#count('served');
        break;
      case 'degraded':
        this.#endLesser();
        break;
      case 'cancelled':
        // Usually nobody is left to tell; a task that somebody else cancelled still owes its client an answer.
        if (this.#isSilent()) this.#count('cancelled');
        else this.#conclude('node-failed', NO_RETRY);
        break;
      case 'failed':
        if (outcome.reason === 'declined') this.#count('declined');
        else this.#conclude(outcome.reason, outcome.hint, outcome.cause);
        break;
      case 'rejected':
      case 'evicted':
        this.#limits = outcome.limits;
        this.#conclude(outcome.reason, outcome.hint, outcome.cause);
        break;
    }
  }

  // The attempt's side.

  now(): MonoUs {
    return this.#context.gateway.now();
  }

  attemptSent(): void {
    const now = this.#context.gateway.now();
    this.#overheadUs += now - this.#assignedAt;
    this.#context.metrics.dispatched(Math.max(0, now - this.#assignedAt) / 1e6);
    this.#witness.sent(now);
    this.#context.gateway.attemptSent(this.#taskId);
  }

  attemptFirstByte(): void {
    const { gateway, metrics } = this.#context;
    const { submit } = this.#spec;
    const now = gateway.now();
    metrics.firstByte(submit.className, submit.model, Math.max(0, now - submit.receivedAt) / 1e6);
    this.#witness.nodeFirstByte(now);
    gateway.attemptFirstByte(this.#taskId);
  }

  answerPart(head: NodeHead, part: Buffer): boolean {
    if (this.#isSilent()) return true;
    const told = this.#hasContent ? part : this.#marked(head, part);
    if (!this.#hasContent) {
      this.#clearTimer();
      this.#commit(head, undefined);
      this.#firstContent();
    }
    this.#recording?.add(part);
    this.#answer = 'flowing';
    return this.#keepsUp(this.#res.write(told));
  }

  answerEnd(head: NodeHead, part: Buffer | undefined): void {
    if (this.#isSilent()) return;
    if (this.#answer === 'early' && head.status >= 400) {
      this.#endInBand(declinedInBand(part));
      return;
    }
    const told = this.#hasContent || part === undefined ? part : this.#marked(head, part);
    if (!this.#hasContent) {
      this.#commit(head, this.#spec.request.stream && head.status < 400 ? undefined : told);
      this.#firstContent();
    }
    if (part !== undefined) this.#recording?.add(part);
    this.#contentType = head.contentType;
    this.#clearTimer();
    this.#answer = 'ended';
    this.#res.end(told);
    if (this.#res.pendingBytes() > PENDING_BYTES_NORMAL || this.#isSlow) this.#keepsUp(false);
  }

  attemptEnded(attempt: Attempt, result: AttemptResult): void {
    const { gateway, metrics } = this.#context;
    const { submit } = this.#spec;
    if (this.#attempt === attempt) this.#attempt = undefined;
    if (result.kind === 'ok' && result.usage !== undefined) {
      const { promptTokens, outputTokens } = result.usage;
      if (promptTokens !== undefined) metrics.tokens('input', submit.model, promptTokens);
      if (outputTokens !== undefined) metrics.tokens('output', submit.model, outputTokens);
      this.#learn(result.usage);
    }
    this.#witness.attemptEnded(attempt.trace, result, gateway.now());
    gateway.attemptEnded(this.#taskId, result, attempt.number);
  }

  failureSays({ nodeId }: Attempt, said: FailureSaid): void {
    this.#context.gateway.noteFailure({ nodeId, ...said });
  }

  /** An answer that was made to be short tells nothing of how long answers are. */
  #learn(usage: Usage): void {
    const { submit, request } = this.#spec;
    const { promptTokens } = usage;
    if (this.#lesser === undefined || !needsWork(this.#lesser.alternative)) {
      this.#context.gateway.learn(submit.model, request.shape, usage);
      return;
    }
    const { alternative, shape } = this.#lesser;
    const isWhole = alternative.how === 'model';
    const told = isWhole || promptTokens === undefined ? usage : { promptTokens };
    if (isWhole || promptTokens !== undefined) this.#context.gateway.learn(alternative.model, shape, told);
  }

  #bodyFor(assignment: Assignment): readonly Uint8Array[] {
    return this.#spec.request.bodyFor(this.#modelFor(assignment), this.#lesser?.lowered);
  }

  /** The one that runs now, as this node knows it. */
  #modelFor({ upstreamModel }: Assignment): string {
    if (upstreamModel !== '') return upstreamModel;
    const lesser = this.#lesser;
    return lesser !== undefined && needsWork(lesser.alternative)
      ? lesser.alternative.model
      : this.#spec.submit.model;
  }

  // The client's side.

  clientClosed(): void {
    this.#context.spool.forget(this);
    this.#clearTimer();
    if (this.#answer === 'gone') return;
    this.#witness.closed(this.#clientEnd(), this.now());
    if (this.#answer === 'ended') return;
    this.#answer = 'gone';
    const attempt = this.#attempt;
    if (!this.#isFinished) this.#context.gateway.cancel(this.#taskId);
    attempt?.stop();
  }

  pendingBytes(): number {
    return this.#res.pendingBytes();
  }

  room(): void {
    this.#attempt?.resume();
  }

  cut(): void {
    this.#witness.closed('stalled', this.now());
    this.#res.destroy();
    // A close that was not the client's: the answer may have been ended already, and then only the bytes are lost.
    this.clientClosed();
  }

  /** Counts a reader that does not keep up; false when the node must pause. */
  #keepsUp(isWritten: boolean): boolean {
    if (isWritten && !this.#isSlow) return true;
    if (!this.#listensToDrain) {
      this.#listensToDrain = true;
      this.#res.onDrain(() => {
        this.#isSlow = false;
        this.#context.spool.forget(this);
        this.#attempt?.resume();
      });
    }
    this.#isSlow = true;
    return this.#context.spool.note(this);
  }

  #clientEnd(): ClientEnd {
    if (this.#answer === 'ended') return this.#res.isSent ? 'whole' : 'sending';
    if (this.#hasContent) return 'streaming';
    return this.#attempt === undefined ? 'queued' : 'running';
  }

  #firstContent(): void {
    this.#hasContent = true;
    this.#witness.clientFirstByte(this.now());
  }

  #isSilent(): boolean {
    return this.#answer === 'gone' || this.#answer === 'ended';
  }

  #commit(head: NodeHead, whole: Buffer | undefined): void {
    if (this.#answer === 'early') return;
    const headers = this.#ownHeaders();
    headers.push(...head.passed);
    const { nodeVisible } = this.#spec;
    headers.push('x-spillway-overhead-us', String(Math.max(0, Math.round(this.#overheadUs))));
    if (nodeVisible && this.#assignment !== undefined)
      headers.push('x-spillway-node', this.#assignment.nodeId);
    if (whole !== undefined) headers.push('content-length', String(whole.length));
    else if (head.contentLength !== undefined && !this.#spec.request.stream) {
      headers.push('content-length', String(head.contentLength + this.#markLength()));
    }
    this.#res.writeHead(head.status, headers);
  }

  #ownHeaders(): string[] {
    const waitedUs = this.#firstAssignedAt > 0 ? this.#firstAssignedAt - this.#submittedAt : 0;
    const headers = [
      'x-spillway-id',
      this.#publicId,
      'x-request-id',
      this.#spec.requestId === '' ? this.#publicId : this.#spec.requestId,
      'x-spillway-class',
      this.#spec.submit.className,
      'x-spillway-queue-ms',
      String(Math.max(0, Math.round(waitedUs / 1_000))),
      'x-spillway-attempts',
      String(this.#attempts),
    ];
    const limits = this.#context.gateway.limitsOf(this.#spec.submit.tenant);
    if (limits !== undefined) headers.push(...limitHeaders(limits));
    const token = this.#beaconToken();
    if (token !== '') headers.push(BEACON_HEADER, token);
    if (this.#lesser !== undefined)
      headers.push('x-spillway-degraded', alternativeLabel(this.#lesser.alternative));
    return headers;
  }

  #beaconToken(): string {
    const { beacons } = this.#context;
    if (!beacons.config.enabled) return '';
    const { className, tenant, receivedAt } = this.#spec.submit;
    const token = beacons.tokenFor({ publicId: this.#publicId, className, tenant, receivedAt });
    this.#witness.hasToken = token !== '';
    return token;
  }

  /** The first bytes of a lesser answer with their mark; of a whole one as they are. */
  #marked(head: NodeHead, part: Buffer): Buffer {
    if (this.#lesser === undefined || head.status >= 400) return part;
    const label = alternativeLabel(this.#lesser.alternative);
    return this.#spec.request.stream ? flagStream(part, label) : flagObject(part, label);
  }

  #markLength(): number {
    return this.#lesser === undefined ? 0 : flagLength(alternativeLabel(this.#lesser.alternative));
  }

  /** A lesser answer was given, or is given now where no node had to. */
  #endLesser(): void {
    const lesser = this.#lesser as PlannedAnswer;
    if (needsWork(lesser.alternative)) return this.#countLesser(lesser);
    const answer = this.#spec.lesser?.answerOf(lesser, this.#publicId);
    if (answer === undefined || this.#answer === 'flowing') return this.#conclude('node-timeout', NO_RETRY);
    this.#countLesser(lesser);
    if (this.#isSilent()) return;
    const label = alternativeLabel(lesser.alternative);
    const body = this.#spec.request.stream ? flagStream(answer.body, label) : flagObject(answer.body, label);
    if (this.#answer === 'none') {
      const headers = this.#ownHeaders();
      headers.push('content-type', answer.contentType, 'content-length', String(body.length));
      if (answer.storedAt !== undefined) headers.push('age', this.#ageOf(answer.storedAt));
      this.#res.writeHead(200, headers);
    }
    this.#answer = 'ended';
    this.#res.end(body);
  }

  #ageOf(storedAt: MonoUs): string {
    return String(Math.max(0, Math.floor((this.#context.gateway.now() - storedAt) / 1e6)));
  }

  #countLesser({ alternative }: PlannedAnswer): void {
    if (this.#answer === 'gone') return this.#count('cancelled');
    this.#count('degraded', alternativeLabel(alternative));
    this.#context.metrics.degraded(this.#spec.submit.className, alternative.how);
  }

  /** The one place where a pin and a recording end. */
  #letGo(outcome: Outcome): void {
    const remembered = this.#spec.lesser?.remembered;
    if (remembered !== undefined) this.#context.cache.unpin(remembered);
    if (outcome.kind === 'served' && this.#answer === 'ended') this.#recording?.keep(this.#contentType);
    else this.#recording?.drop();
    this.#recording = undefined;
  }

  /** An end that the client must be told of, in the way that is still possible. */
  #conclude(reason: RefusalReason, hint: RetryHint, cause = ''): void {
    const now = this.now();
    this.#count(this.#answer === 'gone' ? 'cancelled' : reason, '', now);
    if (this.#isSilent()) return;
    const refusal: Refusal = { reason, hint, detail: cause, param: '' };
    if (this.#answer === 'none') this.#answerRefusal(refusal, now);
    else if (this.#spec.request.stream) this.#endInBand(openAiBody(refusal));
    else {
      // Half of a JSON document was sent: only a broken connection tells the truth.
      this.#answer = 'ended';
      this.#witness.closed('broken', this.now());
      this.#res.destroy();
    }
  }

  #answerRefusal(refusal: Refusal, now: MonoUs): void {
    this.#spec.watcher?.refusedWith(refusal);
    const { overloadStatus } = this.#context.gateway.config.server;
    const rendered = renderOpenAiLines(refusal, { overloadStatus, jitterSeed: this.#taskId });
    const id = this.#publicId;
    const { requestId, submit } = this.#spec;
    const decidedAt = this.#firstAssignedAt === 0 ? now : this.#firstAssignedAt;
    const waitedMs = Math.max(0, Math.round((decidedAt - this.#submittedAt) / 1_000));
    // Our ids, names of the configuration, numbers, and a client's id that is plain (see `scanHead`).
    const own = `x-spillway-id: ${id}\r\nx-request-id: ${requestId === '' ? id : requestId}\r\nx-spillway-class: ${submit.className}\r\nx-spillway-queue-ms: ${waitedMs}\r\nx-spillway-attempts: ${this.#attempts}\r\n`;
    const limits = this.#limits ?? this.#context.gateway.limitsOf(submit.tenant);
    const left = limits === undefined ? '' : limitLines(limits);
    const token = this.#beaconToken();
    const beacon = token === '' ? '' : `${BEACON_HEADER}: ${token}\r\n`;
    this.#answer = 'ended';
    this.#res.sendLines(rendered.status, own + left + beacon + rendered.lines, rendered.body);
  }

  #endInBand(body: string): void {
    this.#answer = 'ended';
    this.#clearTimer();
    this.#res.end(`data: ${body}\n\n`);
  }

  /** A stream that has waited long commits its status and shows that it lives, until content flows. */
  #keepAlive(): void {
    const { server } = this.#context.gateway.config;
    if (this.#answer === 'none') {
      this.#answer = 'early';
      const headers = this.#ownHeaders();
      headers.push('content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache');
      this.#res.writeHead(200, headers);
    }
    if (this.#answer !== 'early') return;
    this.#keepsUp(this.#res.write(`: ${this.#context.waitingNote(this.#publicId)}\n\n`));
    this.#timer = setTimeout(() => this.#keepAlive(), server.keepAliveCommentMs);
  }

  #clearTimer(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #count(outcome: string, degraded = '', now = this.now()): void {
    const { metrics } = this.#context;
    const { className, model, receivedAt } = this.#spec.submit;
    metrics.requestEnded(className, model, outcome, Math.max(0, now - receivedAt) / 1e6);
    this.#witness.ended(outcome, degraded, now);
  }
}

/** A node's 4xx inside a stream whose status was committed before. */
function declinedInBand(part: Buffer | undefined): string {
  try {
    const body: unknown = JSON.parse(part === undefined ? '' : part.toString('utf8'));
    if (typeof body === 'object' && body !== null && 'error' in body) return JSON.stringify(body);
  } catch {
    // Not JSON: the general form below says as much as is known.
  }
  return openAiBody(refuse('bad-request', 'the node judged the request wrong'));
}
