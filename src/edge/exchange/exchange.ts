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
 *
 * What is known of the request meanwhile (ids, times, attempts) lies with its witness; which lesser answer stands in, with
 * its lesser answers.
 */
import type { MonoUs, TaskId } from '../../base/units.ts';
import { needsWork, type PlannedAnswer } from '../../core/degrade/index.ts';
import {
  type AttemptResult,
  type LimitsView,
  NO_RETRY,
  type Outcome,
  type Refused,
} from '../../core/request/index.ts';
import type { Assignment, TaskListener } from '../../runtime/contract.ts';
import { ageText, type Recording } from '../cache/answer-cache.ts';
import type { LesserAnswers } from '../degrade/lesser-answers.ts';
import { openAiBody, type Refusal, renderOpenAiLines } from '../outcomes/refusal.ts';
import type { RefusalReason } from '../outcomes/table.ts';
import { addNodeHead, ownHeaders, ownLines } from './answer-head.ts';
import { Attempt, type AttemptOwner, type FailureSaid } from './attempt.ts';
import type { ClientResponse } from './client-response.ts';
import type { ExchangeContext, ExchangeSpec } from './contract.ts';
import { declinedBody } from './declined-body.ts';
import { learnUsage } from './learn-usage.ts';
import type { NodeHead } from './response-headers.ts';
import { silenceLimits } from './silence-limits.ts';
import type { SlowReader } from './spool.ts';
import { type ClientEnd, Witness } from './witness.ts';

type Answer = 'none' | 'early' | 'flowing' | 'ended' | 'gone';

/** Of an end that the scheduler did not explain: nothing says that trying again would help. */
const UNEXPLAINED: Refused = Object.freeze({ hint: NO_RETRY });
/** What waits in a connection before its reader counts as slow. */
const PENDING_BYTES_NORMAL = 65_536;

export class Exchange implements TaskListener, AttemptOwner, SlowReader {
  readonly #context: ExchangeContext;
  readonly #spec: ExchangeSpec;
  readonly #res: ClientResponse;
  readonly #witness: Witness;
  #taskId: TaskId = 0;
  #answer: Answer = 'none';
  #isFinished = false;
  #attempt: Attempt | undefined;
  #hasContent = false;
  #isSlow = false;
  #listensToDrain = false;
  #timer: NodeJS.Timeout | undefined;
  #recording: Recording | undefined;
  #contentType = '';

  constructor(context: ExchangeContext, spec: ExchangeSpec, res: ClientResponse) {
    this.#context = context;
    this.#spec = spec;
    this.#res = res;
    this.#witness = new Witness(context, spec);
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
    this.#context.stages.remember(ids.publicId, submit);
    this.#witness.submitted(ids.publicId, gateway.now());
    if (request.stream) {
      const waitMs = gateway.config.server.earlyCommitMs - this.#witness.overheadUs / 1_000;
      this.#timer = setTimeout(() => this.#keepAlive(), Math.max(1, waitMs));
    }
  }

  // The scheduler's side.

  admitted(): void {
    this.#witness.admitted(this.#context.gateway.now());
  }

  assigned(assignment: Assignment): void {
    const { gateway, transport } = this.#context;
    if (this.#answer === 'gone' || this.#isFinished) {
      gateway.attemptEnded(this.#taskId, { kind: 'aborted' }, assignment.attempt);
      return;
    }
    const assignedAt = gateway.now();
    const { request, forwarded, cacheKey, lesser } = this.#spec;
    this.#recording?.drop();
    this.#recording =
      cacheKey === '' || lesser?.current !== undefined
        ? undefined
        : this.#context.cache.record(cacheKey, request.endpoint);
    const silence = silenceLimits(assignment, gateway.config, request.stream);
    const model = this.#modelFor(assignment);
    const trace = this.#witness.assigned(assignment, model, assignedAt);
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
        body: request.bodyFor(model, lesser?.current?.lowered),
        headersMs: silence.headersMs,
        idleMs: silence.bodyMs,
      },
      attempt,
    );
    attempt.attach(call);
  }

  /** A lesser answer stands in from now on; what was remembered of a whole one is none. */
  degraded(alternative: number): void {
    this.#spec.lesser?.standIn(alternative);
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
        else this.#conclude('node-failed', UNEXPLAINED);
        break;
      case 'failed':
      case 'rejected':
      case 'evicted':
        if (outcome.reason === 'declined') this.#count('declined');
        else this.#conclude(outcome.reason, outcome);
        break;
    }
  }

  // The attempt's side.

  now(): MonoUs {
    return this.#context.gateway.now();
  }

  attemptSent(): void {
    this.#witness.sent(this.now());
    this.#context.gateway.attemptSent(this.#taskId);
  }

  attemptFirstByte(): void {
    this.#witness.nodeFirstByte(this.now());
    this.#context.gateway.attemptFirstByte(this.#taskId);
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
      this.#endInBand(declinedBody(part));
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
    const { gateway } = this.#context;
    if (this.#attempt === attempt) this.#attempt = undefined;
    if (result.kind === 'ok' && result.usage !== undefined) learnUsage(gateway, this.#spec, result.usage);
    this.#witness.attemptEnded(attempt.trace, result, gateway.now());
    gateway.attemptEnded(this.#taskId, result, attempt.number);
  }

  failureSays({ nodeId }: Attempt, said: FailureSaid): void {
    this.#context.gateway.noteFailure({ nodeId, ...said });
  }

  /** The one that runs now, as this node knows it. */
  #modelFor({ upstreamModel }: Assignment): string {
    return upstreamModel === '' ? (this.#spec.lesser?.model ?? this.#spec.submit.model) : upstreamModel;
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
    const { request, lesser } = this.#spec;
    const headers = this.#ownHeaders();
    addNodeHead(headers, head, this.#witness);
    if (whole !== undefined) headers.push('content-length', String(whole.length));
    else if (head.contentLength !== undefined && !request.stream) {
      headers.push('content-length', String(head.contentLength + (lesser?.markBytes ?? 0)));
    }
    this.#res.writeHead(head.status, headers);
  }

  #ownHeaders(): string[] {
    return ownHeaders(this.#spec, this.#witness, this.#context.gateway.limitsOf(this.#spec.submit.tenant));
  }

  /** Content as the client gets it. */
  #marked(head: NodeHead, part: Buffer): Buffer {
    const { lesser } = this.#spec;
    return lesser === undefined || head.status >= 400 ? part : lesser.marked(part);
  }

  /** A lesser answer was given, or is given now where no node had to. */
  #endLesser(): void {
    const lesser = this.#spec.lesser as LesserAnswers;
    const current = lesser.current as PlannedAnswer;
    if (needsWork(current.alternative)) return this.#countLesser(current);
    const answer = lesser.ready(this.#witness.publicId);
    if (answer === undefined || this.#answer === 'flowing')
      return this.#conclude('node-timeout', UNEXPLAINED);
    this.#countLesser(current);
    if (this.#isSilent()) return;
    const body = lesser.marked(answer.body);
    if (this.#answer === 'none') {
      const headers = this.#ownHeaders();
      headers.push('content-type', answer.contentType, 'content-length', String(body.length));
      if (answer.storedAt !== undefined) headers.push('age', ageText(answer.storedAt, this.now()));
      this.#res.writeHead(200, headers);
    }
    this.#answer = 'ended';
    this.#res.end(body);
  }

  #countLesser({ alternative }: PlannedAnswer): void {
    if (this.#answer === 'gone') return this.#count('cancelled');
    this.#witness.endedLesser(alternative, this.now());
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
  #conclude(reason: RefusalReason, { hint, cause = '', limits }: Refused): void {
    this.#count(this.#answer === 'gone' ? 'cancelled' : reason);
    if (this.#isSilent()) return;
    const refusal: Refusal = { reason, hint, detail: cause, param: '' };
    if (this.#answer === 'none') this.#answerRefusal(refusal, limits);
    else if (this.#spec.request.stream) this.#endInBand(openAiBody(refusal));
    else {
      // Half of a JSON document was sent: only a broken connection tells the truth.
      this.#answer = 'ended';
      this.#witness.closed('broken', this.now());
      this.#res.destroy();
    }
  }

  /** With what is left of the limits that refused the request, else of those of its tenant. */
  #answerRefusal(refusal: Refusal, refusing: LimitsView | undefined): void {
    this.#spec.watcher?.refusedWith(refusal);
    const { gateway } = this.#context;
    const { overloadStatus } = gateway.config.server;
    const { status, lines, body } = renderOpenAiLines(refusal, { overloadStatus, jitterSeed: this.#taskId });
    const limits = refusing ?? gateway.limitsOf(this.#spec.submit.tenant);
    this.#answer = 'ended';
    this.#res.sendLines(status, ownLines(this.#spec, this.#witness, limits) + lines, body);
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
    this.#keepsUp(this.#res.write(`: ${this.#context.waitingNote(this.#witness.publicId)}\n\n`));
    this.#timer = setTimeout(() => this.#keepAlive(), server.keepAliveCommentMs);
  }

  #clearTimer(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #count(outcome: string): void {
    this.#witness.ended(outcome, '', this.now());
  }
}
