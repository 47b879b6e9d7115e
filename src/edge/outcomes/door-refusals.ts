/** Refusals at the door, of requests that never become a task: sent, counted, and told to the traces. */
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import type { Tracing } from '../../ports/tracing.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { Arrival, Came } from '../arrival.ts';
import type { ClientRequest } from '../http/client-request.ts';
import { type ShortRequest, traceShort } from '../short-trace.ts';
import { quoted, type Refusal, refuse, renderOpenAi } from './refusal.ts';

export interface DoorRefusalsOptions {
  readonly gateway: Gateway;
  readonly metrics: MetricsSink;
  readonly tracing?: Tracing | undefined;
}

export class DoorRefusals {
  readonly #options: DoorRefusalsOptions;
  /** Spreads the retries, as the number of its task does for a request that has one. */
  #refusals = 0;

  constructor(options: DoorRefusalsOptions) {
    this.#options = options;
  }

  refuse(
    request: ClientRequest,
    refusal: Refusal,
    { head, receivedAt }: Came,
    after: 'keeps' | 'closes' = 'keeps',
  ): void {
    const { overloadStatus } = this.#options.gateway.config.server;
    const { status, headers, body } = renderOpenAi(refusal, { overloadStatus, jitterSeed: this.#refusals++ });
    const { traceparent } = head;
    request.reply(status, headers, body, after);
    this.#refused({ traceparent, receivedAt, outcome: refusal.reason });
  }

  /** Before the body was read: whatever of it still comes is not waited for. */
  refuseUnread(request: ClientRequest, refusal: Refusal, came: Came): void {
    this.refuse(request, refusal, came, request.hasUnreadBody ? 'closes' : 'keeps');
  }

  /** The one refusal here that is about the fleet: it stays explainable, as those of the scheduler do. */
  refuseModel({ request, head, tenant, receivedAt }: Arrival, model: string): void {
    const { gateway } = this.#options;
    const refusal = refuse('unknown-model', quoted(model), 'model');
    const { status, headers, body } = renderOpenAi(refusal, { overloadStatus: 429, jitterSeed: 0 });
    const id = gateway.noteRefused({ reason: 'unknown-model', tenant: tenant.id, model, receivedAt });
    headers.push('x-spillway-id', id, 'x-request-id', head.requestId === '' ? id : head.requestId);
    request.reply(status, headers, body, 'keeps');
    const { traceparent } = head;
    this.#refused({ traceparent, receivedAt, outcome: refusal.reason, publicId: id });
  }

  #refused(request: Omit<ShortRequest, 'at'>): void {
    const { gateway, metrics, tracing } = this.#options;
    const at = gateway.now();
    metrics.requestEnded('', '', request.outcome, Math.max(0, at - request.receivedAt) / 1e6);
    if (tracing !== undefined) traceShort(tracing, { ...request, at });
  }
}
