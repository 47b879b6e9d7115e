/** What an exchange is made from, and who is told how it ends. */
import type { Outcome } from '../../core/request/index.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import type { NodeTransport } from '../../ports/node-transport.ts';
import type { RequestTrace } from '../../ports/tracing.ts';
import type { Gateway, SubmitSpec } from '../../runtime/contract.ts';
import type { RuntimeLog } from '../../runtime/log.ts';
import type { AnswerCache } from '../cache/answer-cache.ts';
import type { LesserAnswers } from '../degrade/lesser-answers.ts';
import type { Refusal } from '../outcomes/refusal.ts';
import type { InferenceRequest } from '../protocols/inference-request.ts';
import type { Stages } from '../stages.ts';
import type { BeaconDesk } from '../user-side/beacon-desk.ts';
import type { Spool } from './spool.ts';

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
