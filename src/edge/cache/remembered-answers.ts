/**
 * Remembered answers at the door: whether a request may have one, under which key, and giving it in place of a task where the
 * configuration makes that an ordinary use.
 */
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import type { Tracing } from '../../ports/tracing.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { Arrival, Understood } from '../arrival.ts';
import { traceShort } from '../short-trace.ts';
import { BEACON_HEADER, type BeaconDesk } from '../user-side/beacon-desk.ts';
import { compareAnswers } from './agreement.ts';
import { ageText, AnswerCache, type CachedAnswer } from './answer-cache.ts';
import { cacheKey } from './identity.ts';

/** The key under which the answer is remembered, and the answer if there is one. */
export interface Remembered {
  readonly key: string;
  readonly answer: CachedAnswer | undefined;
}

export interface RememberedAnswersOptions {
  readonly gateway: Gateway;
  readonly metrics: MetricsSink;
  readonly beacons: BeaconDesk;
  readonly tracing?: Tracing | undefined;
}

export class RememberedAnswers {
  readonly cache: AnswerCache;
  readonly #options: RememberedAnswersOptions;

  constructor(options: RememberedAnswersOptions) {
    const { gateway, metrics } = options;
    this.#options = options;
    this.cache = new AnswerCache({
      config: () => gateway.config.cache,
      now: () => gateway.now(),
      compare: (remembered, fresh) =>
        metrics.cacheCompared(remembered.endpoint, compareAnswers(remembered, fresh)),
    });
  }

  /** Undefined where nothing is remembered: by configuration, or because the answer may differ each time. */
  find({ tenant }: Arrival, { request, model, consent }: Understood): Remembered | undefined {
    const { config } = this.#options.gateway;
    const { cache } = this;
    const { mode } = config.cache;
    if (mode === 'off') {
      if (cache.size > 0) cache.clear();
      return undefined;
    }
    // Without consent or an ordinary use nobody would ever get it.
    if (mode === 'degrade' && !consent.cache) return undefined;
    const { cachePool } = tenant;
    const key = cacheKey({
      sharedBy: cachePool === undefined ? `tenant ${tenant.id}` : `pool ${cachePool}`,
      model,
      revision: config.scheduler.models.find((one) => one.id === model)?.revision ?? '',
      endpoint: request.endpoint,
      stream: request.stream,
      body: request.body,
    });
    return key === undefined ? undefined : { key, answer: cache.find(key) };
  }

  /** An ordinary use of what is remembered: nothing is scheduled for it. */
  give(
    { request: client, head, tenant, receivedAt }: Arrival,
    { request, className, model }: Understood,
    answer: CachedAnswer,
  ): void {
    const { gateway, metrics, tracing, beacons } = this.#options;
    const { stream } = request;
    const id = gateway.noteAnswered({ className, tenant: tenant.id, model, stream, receivedAt });
    const age = ageText(answer.storedAt, gateway.now());
    const token = beacons.tokenFor({ publicId: id, className, tenant: tenant.id, receivedAt });
    const response = client.response();
    response.writeHead(200, [
      ...(token === '' ? [] : [BEACON_HEADER, token]),
      'x-spillway-id',
      id,
      'x-request-id',
      head.requestId === '' ? id : head.requestId,
      'x-spillway-class',
      className,
      'x-spillway-queue-ms',
      '0',
      'x-spillway-attempts',
      '0',
      'age',
      age,
      'content-type',
      answer.contentType,
      'content-length',
      String(answer.body.length),
    ]);
    response.end(answer.body);
    const at = gateway.now();
    metrics.requestEnded(className, model, 'served', Math.max(0, at - receivedAt) / 1e6);
    if (tracing === undefined) return;
    const known = { className, tenant: tenant.id, model, stream, endpoint: request.endpoint, publicId: id };
    traceShort(tracing, { ...known, traceparent: head.traceparent, receivedAt, at, outcome: 'served' });
  }
}
