/**
 * The data plane: from a request's head to a task.
 *
 * Everything that can be refused from the head alone is refused before the body is read, since the road of a refusal
 * must cost far less than that of a served request, or refusing becomes the outage itself.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { MonoUs } from '../base/units.ts';
import type { GatewayConfig } from '../core/config/types.ts';
import { type DegradeConsent, planAnswers } from '../core/degrade/index.ts';
import type { MetricsSink } from '../ports/metrics-sink.ts';
import type { NodeTransport } from '../ports/node-transport.ts';
import type { RequestTrace, Tracing } from '../ports/tracing.ts';
import type { Gateway } from '../runtime/contract.ts';
import { type RuntimeLog, SILENT_LOG } from '../runtime/log.ts';
import { decideClass } from './auth/class-wish.ts';
import { compareAnswers } from './cache/agreement.ts';
import { AnswerCache, type CachedAnswer } from './cache/answer-cache.ts';
import { cacheKey } from './cache/identity.ts';
import { createIdentity, type Identity, type Tenant } from './auth/keys.ts';
import { decideDeadline } from './deadline.ts';
import { NO_CONSENT, readConsent } from './degrade/consent.ts';
import { defaultTextOf } from './degrade/default-answer.ts';
import { LesserAnswers } from './degrade/lesser-answers.ts';
import type { ClientResponse } from './exchange/client-response.ts';
import { Exchange, type ExchangeContext } from './exchange/exchange.ts';
import { Spool } from './exchange/spool.ts';
import { type BodyBudget, type ClientRequest, nodeRequest } from './http/client-request.ts';
import { KEYLESS_BIND_HOST, keylessRefusal } from './http/guard.ts';
import { nodeHeaders, type RequestHead } from './http/head.ts';
import { serveQuickly } from './http/quick-server.ts';
import { createHttpServer } from './http/server.ts';
import { type Claimed, Idempotency } from './idempotency/idempotency.ts';
import { quoted, type Refusal, refuse, renderOpenAi } from './outcomes/refusal.ts';
import type { InferenceRequest } from './protocols/inference-request.ts';
import { renderModel, renderModels } from './protocols/openai/models.ts';
import { type OpenAiEndpoint, parseOpenAi } from './protocols/openai/parse.ts';
import { promptPrefix } from './prompt-prefix.ts';
import { readRetryCount } from './retry-count.ts';
import { Stages } from './stages.ts';
import { findRoute, INFERENCE_URLS, type ModelRoute } from './routes.ts';
import { type ShortRequest, traceShort } from './short-trace.ts';
import { Submission } from './submission.ts';
import { takeBeacon } from './tenant/rum.ts';
import { BEACON_HEADER, type BeaconDesk } from './user-side/beacon-desk.ts';
import { sendProblem } from './tenant/problem.ts';
import { createTenantPlane, NO_KEY, type TenantPlane } from './tenant/tenant-plane.ts';

/** Queue positions are computed on demand and cost a look at the fleet: at most this many per second. */
const POSITIONS_PER_SECOND_MAX = 20;

export interface DataPlaneOptions {
  readonly gateway: Gateway;
  readonly transport: NodeTransport;
  readonly metrics: MetricsSink;
  readonly wallMs: () => number;
  /** Absent: nothing is traced. */
  readonly tracing?: Tracing | undefined;
  readonly log?: RuntimeLog;
  readonly beacons: BeaconDesk;
  /** Takes what is not the data plane's; false when it is nobody's. */
  readonly fallback?: (req: IncomingMessage, res: ServerResponse) => boolean;
}

export interface DataPlane {
  /** For mounting on a server of somebody else; false when the path is not one of the data plane. */
  handle(req: IncomingMessage, res: ServerResponse): boolean;
  /** Listens as the configuration says; without keys on loopback whatever it says. */
  listen(): Promise<AddressInfo>;
  /** Takes no new connections; resolves when the last one has closed. */
  close(): Promise<void>;
  /** Cuts what is still open. */
  destroy(): void;
  readonly server: Server;
}

export function createDataPlane(options: DataPlaneOptions): DataPlane {
  const plane = new Plane(options);
  const server = createHttpServer({
    config: options.gateway.config.server,
    metrics: options.metrics,
    listener: (req, res, mayContinue) => {
      const request = nodeRequest(req, res);
      if (plane.take(request, mayContinue)) return;
      if (options.fallback?.(req, res) !== true) plane.refuseUnknown(request);
    },
  });
  const quick = serveQuickly(server, {
    config: options.gateway.config.server,
    metrics: options.metrics,
    findUrl: (url) => INFERENCE_URLS.get(url),
    take: (request) => void plane.take(request, false),
  });
  return {
    server,
    handle: (req, res) => plane.take(nodeRequest(req, res), false),
    listen(): Promise<AddressInfo> {
      const { host, port } = options.gateway.config.server;
      return new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, plane.identity().isKeyless ? KEYLESS_BIND_HOST : host, () => {
          server.off('error', reject);
          resolve(server.address() as AddressInfo);
        });
      });
    },
    close(): Promise<void> {
      plane.isClosing = true;
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
        quick.close();
      });
    },
    destroy(): void {
      server.closeAllConnections();
      quick.destroy();
      plane.spool.close();
    },
  };
}

/** What a request came with, and when. */
interface Came {
  readonly head: RequestHead;
  readonly receivedAt: MonoUs;
}

/** One request between its head and its task. */
interface Arrival extends Came {
  readonly request: ClientRequest;
  readonly tenant: Tenant;
  readonly endpoint: OpenAiEndpoint;
}

/** A request that is understood and may be submitted. */
interface Understood {
  readonly request: InferenceRequest;
  readonly className: string;
  readonly model: string;
}

/** The key under which the answer is remembered, and the answer if there is one. */
interface Remembered {
  readonly key: string;
  readonly answer: CachedAnswer | undefined;
}

class Plane {
  readonly spool: Spool;
  isClosing = false;
  readonly #options: DataPlaneOptions;
  readonly #context: ExchangeContext;
  readonly #budget: BodyBudget;
  readonly #idempotency: Idempotency;
  readonly #tenantPlane: TenantPlane;
  #identity: Identity;
  #identityOf: GatewayConfig;
  #refusals = 0;
  #positions = POSITIONS_PER_SECOND_MAX;
  #positionsAt: MonoUs = 0;

  constructor(options: DataPlaneOptions) {
    const { gateway, metrics, transport } = options;
    this.#options = options;
    this.#identityOf = gateway.config;
    this.#identity = createIdentity(gateway.config);
    this.spool = new Spool(
      () => gateway.config.server,
      () => gateway.now(),
      metrics,
    );
    this.#budget = { bytes: 0, bytesMax: gateway.config.scheduler.bounds.bytesMax };
    this.#idempotency = new Idempotency({ gateway, metrics, spool: this.spool, beacons: options.beacons });
    this.#tenantPlane = createTenantPlane(options);
    const waitingNote = (publicId: string): string => this.#waitingNote(publicId);
    const cache = new AnswerCache({
      config: () => gateway.config.cache,
      now: () => gateway.now(),
      compare: (remembered, fresh) =>
        metrics.cacheCompared(remembered.endpoint, compareAnswers(remembered, fresh)),
    });
    const log = options.log ?? SILENT_LOG;
    const { beacons } = options;
    const stages = new Stages();
    const { spool } = this;
    this.#context = { gateway, transport, metrics, spool, cache, log, beacons, stages, waitingNote };
  }

  /** The rules of the configuration in force; a reload replaces the configuration object. */
  identity(): Identity {
    const config = this.#options.gateway.config;
    if (config !== this.#identityOf) {
      this.#identityOf = config;
      this.#identity = createIdentity(config);
    }
    return this.#identity;
  }

  /** False when the path is not one of the data plane. */
  take(request: ClientRequest, mayContinue: boolean): boolean {
    const receivedAt = this.#options.gateway.now();
    const route = findRoute(request.url);
    const { head } = request;
    const refusal = this.#checkPeer(request, head);
    if (refusal !== undefined) {
      this.#refuseUnread(request, refusal, { head, receivedAt });
      return true;
    }
    if (route === undefined) return false;
    if (route.kind === 'rum') {
      if (mayContinue) request.writeContinue();
      takeBeacon(request, this.#options.beacons, this.#budget);
      return true;
    }
    const tenant = this.#identify(request, head);
    if (tenant === undefined) {
      if (route.kind === 'tenant') sendProblem(request, NO_KEY);
      else this.#refuseUnread(request, refuse('unauthenticated'), { head, receivedAt });
      return true;
    }
    if (route.kind === 'inference') {
      this.#takeInference({ request, head, tenant, endpoint: route.endpoint, receivedAt }, mayContinue);
    } else if (route.kind === 'tenant') this.#tenantPlane.take(request, route.path, tenant);
    else this.#takeModels(request, route, { head, receivedAt });
    return true;
  }

  refuseUnknown(request: ClientRequest): void {
    const path = request.url.split('?', 1)[0] as string;
    const came = { head: request.head, receivedAt: this.#options.gateway.now() };
    this.#refuseUnread(request, refuse('unknown-path', quoted(path)), came);
  }

  /**
   * A connection that shows the same credentials again under the same rules is whom it was: hashing a key for each request
   * would be a tenth of the gateway's own work. What is remembered is the connection's own secret, and no other's.
   */
  #identify({ memory }: ClientRequest, { authorization, apiKey }: RequestHead): Tenant | undefined {
    const rules = this.identity();
    if (memory.rules === rules && memory.authorization === authorization && memory.apiKey === apiKey) {
      return memory.tenant as Tenant;
    }
    const tenant = rules.identify(authorization, apiKey);
    if (tenant === undefined) return undefined;
    memory.authorization = copied(authorization);
    memory.apiKey = copied(apiKey);
    memory.rules = rules;
    memory.tenant = tenant;
    return tenant;
  }

  #checkPeer(request: ClientRequest, head: RequestHead): Refusal | undefined {
    if (head.hostCount > 1 || (head.hostCount === 0 && request.minorVersion > 0)) {
      return refuse('bad-request', 'exactly one Host header is needed');
    }
    if (!this.identity().isKeyless) return undefined;
    const rule = keylessRefusal({
      host: head.host,
      origin: head.origin,
      remoteAddress: request.remoteAddress,
    });
    return rule === '' ? undefined : refuse('forbidden', rule);
  }

  #takeModels(request: ClientRequest, route: ModelRoute, came: Came): void {
    const { gateway } = this.#options;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      this.#refuseUnread(request, refuse('method-not-allowed', 'GET is needed'), came);
      return;
    }
    if (route.kind === 'model' && gateway.resolveModel(route.id) === undefined) {
      this.#refuseUnread(request, refuse('unknown-model', quoted(route.id), 'model'), came);
      return;
    }
    const text = route.kind === 'model' ? renderModel(route.id) : renderModels(gateway.models());
    const headers = ['content-type', 'application/json; charset=utf-8'];
    const body = Buffer.from(text);
    headers.push('content-length', String(body.length));
    const response = request.response();
    response.writeHead(200, headers);
    response.end(body);
  }

  #takeInference(arrival: Arrival, mayContinue: boolean): void {
    const { request } = arrival;
    const { bodyBytesMax } = this.#options.gateway.config.server;
    const refusal = this.#checkHead(arrival, bodyBytesMax);
    if (refusal !== undefined) {
      this.#refuseUnread(request, refusal, arrival);
      return;
    }
    if (mayContinue) request.writeContinue();
    request.readBody(bodyBytesMax, this.#budget, {
      complete: (body) => this.#takeBody(arrival, body),
      refused: (reason) => this.#refuseUnread(request, refuse(reason), arrival),
    });
  }

  /** What the head alone can be refused for. */
  #checkHead(arrival: Arrival, bodyBytesMax: number): Refusal | undefined {
    const { request, head } = arrival;
    if (request.method !== 'POST') return refuse('method-not-allowed', 'POST is needed');
    if (!this.#options.gateway.ready || this.isClosing) return refuse('shutting-down');
    const encoding = head.contentEncoding;
    if (encoding !== '' && encoding.toLowerCase() !== 'identity') {
      return refuse(
        'bad-request',
        `the body must not be compressed, content-encoding was ${quoted(encoding)}`,
      );
    }
    const length = head.contentLength === '' ? 0 : Number(head.contentLength);
    if (length > bodyBytesMax) return refuse('too-large', `at most ${bodyBytesMax} bytes, not ${length}`);
    if (this.#budget.bytes + length > this.#budget.bytesMax) return refuse('self-protection');
    if (head.deadlineMs !== undefined) {
      const deadline = decideDeadline(head, this.#options.gateway.config.scheduler.admission, 0);
      if (deadline.kind === 'bad') return refuse('bad-request', deadline.rule);
    }
    return undefined;
  }

  #takeBody(arrival: Arrival, body: Buffer): void {
    const { gateway } = this.#options;
    // The client may have left with its last byte; nothing would tell the exchange of it any more.
    if (arrival.request.isGone) return;
    const parsed = parseOpenAi(arrival.endpoint, body);
    if (parsed.kind === 'bad') {
      this.#refuse(arrival.request, refuse('bad-request', parsed.detail, parsed.param), arrival);
      return;
    }
    const model = gateway.resolveModel(parsed.request.model);
    if (model === undefined) {
      this.#refuseModel(arrival, parsed.request.model);
      return;
    }
    this.#submit(arrival, parsed.request, model);
  }

  #submit(arrival: Arrival, request: InferenceRequest, model: string): void {
    const { gateway, metrics } = this.#options;
    const { head, tenant } = arrival;
    const { classNames } = this.identity();
    const wishes = {
      header: head.classWish,
      serviceTier: request.serviceTier,
      bodyPriority: request.bodyPriority,
      objective: head.inferenceObjective,
      priority: head.priority,
    };
    const className = classNames[decideClass(wishes, tenant, classNames, metrics.wishIgnored)] as string;
    const classDeadlineUs = gateway.classDeadlineUs(className, request.stream);
    const deadline = decideDeadline(head, gateway.config.scheduler.admission, classDeadlineUs);
    if (deadline.kind === 'bad') {
      this.#refuse(arrival.request, refuse('bad-request', deadline.rule), arrival);
      return;
    }
    const understood: Understood = { request, className, model };
    const consent = head.degradeWish === '' ? NO_CONSENT : readConsent(head.degradeWish, metrics.wishIgnored);
    const remembered = this.#remembered(arrival, understood, consent);
    if (remembered?.answer !== undefined && gateway.config.cache.mode === 'always') {
      this.#answerRemembered(arrival, understood, remembered.answer);
      return;
    }
    const lesser = consent === NO_CONSENT ? undefined : this.#planLesser(understood, consent, remembered);
    const { receivedAt } = arrival;
    const trace = this.#options.tracing?.begin({ traceparent: head.traceparent, receivedAt });
    const claimed = this.#claim(arrival, understood, trace);
    if (claimed?.kind === 'answered') return;
    if (claimed?.kind === 'refused') {
      this.#refuse(arrival.request, claimed.refusal, arrival);
      return;
    }
    const estimate = gateway.estimate(model, request.shape);
    const exchange = new Exchange(
      this.#context,
      {
        request,
        forwarded: nodeHeaders(head, trace),
        trace,
        requestId: head.requestId,
        nodeVisible: tenant.nodeVisible,
        lesser,
        cacheKey: remembered?.key ?? '',
        watcher: claimed?.watcher,
        submit: new Submission({
          request,
          className,
          tenant: tenant.id,
          model,
          estimate,
          deadlineUs: deadline.deadlineUs,
          deadlineWished: deadline.wished,
          receivedAt,
          retryCount: readRetryCount(head.retryCount, metrics.wishIgnored),
          stage:
            head.stage === '' ? undefined : this.#context.stages.read(head, tenant.id, metrics.wishIgnored),
          alternatives: lesser?.planned.map((one) => one.alternative),
          prefix: gateway.keepsPrompts(model)
            ? promptPrefix(request, estimate, {
                tenant: tenant.id,
                model,
                blockBytes: gateway.config.scheduler.placement.prefixBlockBytes,
              })
            : undefined,
        }),
      },
      claimed?.response ?? arrival.request.response(),
    );
    exchange.start();
  }

  /** Undefined where nothing is remembered: by configuration, or because the answer may differ each time. */
  #remembered(
    { tenant }: Arrival,
    { request, model }: Understood,
    consent: DegradeConsent,
  ): Remembered | undefined {
    const { config } = this.#options.gateway;
    const { cache } = this.#context;
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

  #planLesser(
    { request, className, model }: Understood,
    consent: DegradeConsent,
    remembered: Remembered | undefined,
  ): LesserAnswers | undefined {
    const { gateway } = this.#options;
    const { scheduler } = gateway.config;
    const { endpoint, stream } = request;
    const configured = scheduler.models.find((one) => one.id === model);
    const defaultText = defaultTextOf(configured, endpoint);
    const answer = remembered?.answer;
    const { shape, needs, usesContext } = request;
    const planned = planAnswers(scheduler, consent, {
      request: {
        className,
        model,
        shape,
        needs,
        stream,
        usesContext,
        hasRemembered: answer !== undefined,
        hasDefault: defaultText !== undefined,
      },
      estimate: (name, lesser) => gateway.estimate(name, lesser),
    });
    if (planned.length === 0) return undefined;
    const isChat = endpoint === 'chat';
    return new LesserAnswers({ planned, remembered: answer, defaultText, model, isChat, stream });
  }

  /** An ordinary use of what is remembered: nothing is scheduled for it. */
  #answerRemembered(
    { request: client, head, tenant, receivedAt }: Arrival,
    { request, className, model }: Understood,
    answer: CachedAnswer,
  ): void {
    const { gateway, metrics, tracing, beacons } = this.#options;
    const { stream } = request;
    const id = gateway.noteAnswered({ className, tenant: tenant.id, model, stream, receivedAt });
    const ageS = Math.max(0, Math.floor((gateway.now() - answer.storedAt) / 1e6));
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
      String(ageS),
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

  /** Undefined without an idempotency key. */
  #claim(
    { request, head, tenant, receivedAt }: Arrival,
    { request: { path, body, endpoint }, className, model }: Understood,
    trace: RequestTrace | undefined,
  ): Claimed | undefined {
    const { idempotencyKey: key, requestId } = head;
    if (key === undefined || !this.#idempotency.isOn) return undefined;
    const response = (): ClientResponse => request.response();
    const client = { tenant: tenant.id, requestId, receivedAt, response, trace };
    return this.#idempotency.claim({ key, path, body, endpoint, className, model, ...client });
  }

  #refuse(
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

  /** The one refusal here that is about the fleet: it stays explainable, as those of the scheduler do. */
  #refuseModel({ request, head, tenant, receivedAt }: Arrival, model: string): void {
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

  /** A refusal before the body was read: whatever of it still comes is not waited for. */
  #refuseUnread(request: ClientRequest, refusal: Refusal, came: Came): void {
    this.#refuse(request, refusal, came, request.hasUnreadBody ? 'closes' : 'keeps');
  }

  #waitingNote(publicId: string): string {
    const { gateway } = this.#options;
    const now = gateway.now();
    if (now - this.#positionsAt >= 1_000_000) {
      this.#positionsAt = now;
      this.#positions = POSITIONS_PER_SECOND_MAX;
    }
    if (this.#positions <= 0) return 'waiting';
    this.#positions--;
    const live = gateway.request(publicId)?.live;
    if (live === undefined || live.state !== 'queued') return 'waiting';
    const eta = live.etaMs === null ? '' : ` eta-ms=${Math.round(live.etaMs)}`;
    return `waiting position=${live.position}${eta}`;
  }
}

/** A string of its own: a part of the head's text would hold all of it as long as the connection lives. */
function copied(text: string): string {
  return text === '' ? '' : Buffer.from(text, 'latin1').toString('latin1');
}
