/**
 * The data plane: from a request's head to a task.
 *
 * Everything that can be refused from the head alone is refused before the body is read, since the road of a refusal
 * must cost far less than that of a served request, or refusing becomes the outage itself.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { MetricsSink } from '../ports/metrics-sink.ts';
import type { NodeTransport } from '../ports/node-transport.ts';
import type { RequestTrace, Tracing } from '../ports/tracing.ts';
import type { Gateway } from '../runtime/contract.ts';
import { type RuntimeLog, SILENT_LOG } from '../runtime/log.ts';
import type { Arrival, Came, Understood } from './arrival.ts';
import { decideClass } from './auth/class-wish.ts';
import { Visitors } from './auth/visitors.ts';
import { RememberedAnswers } from './cache/remembered-answers.ts';
import { decideDeadline } from './deadline.ts';
import { NO_CONSENT, readConsent } from './degrade/consent.ts';
import { planLesser } from './degrade/plan-lesser.ts';
import type { ClientResponse } from './exchange/client-response.ts';
import type { ExchangeContext } from './exchange/contract.ts';
import { Exchange } from './exchange/exchange.ts';
import { Spool } from './exchange/spool.ts';
import { createWaitingNotes } from './exchange/waiting-notes.ts';
import { type BodyBudget, type ClientRequest, nodeRequest } from './http/client-request.ts';
import { KEYLESS_BIND_HOST } from './http/guard.ts';
import { nodeHeaders } from './http/head.ts';
import { serveQuickly } from './http/quick-server.ts';
import { createHttpServer } from './http/server.ts';
import { type Claimed, Idempotency } from './idempotency/idempotency.ts';
import { DoorRefusals } from './outcomes/door-refusals.ts';
import { quoted, type Refusal, refuse } from './outcomes/refusal.ts';
import type { InferenceRequest } from './protocols/inference-request.ts';
import { renderModel, renderModels } from './protocols/openai/models.ts';
import { parseOpenAi } from './protocols/openai/parse.ts';
import { promptPrefix } from './prompt-prefix.ts';
import { readRetryCount } from './retry-count.ts';
import { Stages } from './stages.ts';
import { findRoute, INFERENCE_URLS, type ModelRoute } from './routes.ts';
import { Submission } from './submission.ts';
import { takeBeacon } from './tenant/rum.ts';
import type { BeaconDesk } from './user-side/beacon-desk.ts';
import { sendProblem } from './tenant/problem.ts';
import { createTenantPlane, NO_KEY, type TenantPlane } from './tenant/tenant-plane.ts';

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
        server.listen(port, plane.isKeyless ? KEYLESS_BIND_HOST : host, () => {
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

class Plane {
  readonly spool: Spool;
  isClosing = false;
  readonly #options: DataPlaneOptions;
  readonly #context: ExchangeContext;
  readonly #budget: BodyBudget;
  readonly #idempotency: Idempotency;
  readonly #tenantPlane: TenantPlane;
  readonly #visitors: Visitors;
  readonly #refusals: DoorRefusals;
  readonly #remembered: RememberedAnswers;

  constructor(options: DataPlaneOptions) {
    const { gateway, metrics, transport } = options;
    this.#options = options;
    this.spool = new Spool(
      () => gateway.config.server,
      () => gateway.now(),
      metrics,
    );
    this.#budget = { bytes: 0, bytesMax: gateway.config.scheduler.bounds.bytesMax };
    this.#idempotency = new Idempotency({ gateway, metrics, spool: this.spool, beacons: options.beacons });
    this.#tenantPlane = createTenantPlane(options);
    this.#visitors = new Visitors(gateway);
    this.#refusals = new DoorRefusals(options);
    this.#remembered = new RememberedAnswers(options);
    const log = options.log ?? SILENT_LOG;
    const { beacons } = options;
    const stages = new Stages();
    const waitingNote = createWaitingNotes(gateway);
    const { spool } = this;
    const { cache } = this.#remembered;
    this.#context = { gateway, transport, metrics, spool, cache, log, beacons, stages, waitingNote };
  }

  get isKeyless(): boolean {
    return this.#visitors.rules.isKeyless;
  }

  /** False when the path is not one of the data plane. */
  take(request: ClientRequest, mayContinue: boolean): boolean {
    const receivedAt = this.#options.gateway.now();
    const route = findRoute(request.url);
    const { head } = request;
    const refusal = this.#visitors.checkPeer(request, head);
    if (refusal !== undefined) {
      this.#refusals.refuseUnread(request, refusal, { head, receivedAt });
      return true;
    }
    if (route === undefined) return false;
    if (route.kind === 'rum') {
      if (mayContinue) request.writeContinue();
      takeBeacon(request, this.#options.beacons, this.#budget);
      return true;
    }
    const tenant = this.#visitors.identify(request, head);
    if (tenant === undefined) {
      if (route.kind === 'tenant') sendProblem(request, NO_KEY);
      else this.#refusals.refuseUnread(request, refuse('unauthenticated'), { head, receivedAt });
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
    this.#refusals.refuseUnread(request, refuse('unknown-path', quoted(path)), came);
  }

  #takeModels(request: ClientRequest, route: ModelRoute, came: Came): void {
    const { gateway } = this.#options;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      this.#refusals.refuseUnread(request, refuse('method-not-allowed', 'GET is needed'), came);
      return;
    }
    if (route.kind === 'model' && gateway.resolveModel(route.id) === undefined) {
      this.#refusals.refuseUnread(request, refuse('unknown-model', quoted(route.id), 'model'), came);
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
      this.#refusals.refuseUnread(request, refusal, arrival);
      return;
    }
    if (mayContinue) request.writeContinue();
    request.readBody(bodyBytesMax, this.#budget, {
      complete: (body) => this.#takeBody(arrival, body),
      refused: (reason) => this.#refusals.refuseUnread(request, refuse(reason), arrival),
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
      this.#refusals.refuse(arrival.request, refuse('bad-request', parsed.detail, parsed.param), arrival);
      return;
    }
    const model = gateway.resolveModel(parsed.request.model);
    if (model === undefined) {
      this.#refusals.refuseModel(arrival, parsed.request.model);
      return;
    }
    this.#submit(arrival, parsed.request, model);
  }

  #submit(arrival: Arrival, request: InferenceRequest, model: string): void {
    const { gateway, metrics } = this.#options;
    const { head, tenant } = arrival;
    const { classNames } = this.#visitors.rules;
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
      this.#refusals.refuse(arrival.request, refuse('bad-request', deadline.rule), arrival);
      return;
    }
    const consent = head.degradeWish === '' ? NO_CONSENT : readConsent(head.degradeWish, metrics.wishIgnored);
    const understood: Understood = { request, className, model, consent };
    const remembered = this.#remembered.find(arrival, understood);
    if (remembered?.answer !== undefined && gateway.config.cache.mode === 'always') {
      this.#remembered.give(arrival, understood, remembered.answer);
      return;
    }
    const lesser = consent === NO_CONSENT ? undefined : planLesser(gateway, understood, remembered?.answer);
    const { receivedAt } = arrival;
    const trace = this.#options.tracing?.begin({ traceparent: head.traceparent, receivedAt });
    const claimed = this.#claim(arrival, understood, trace);
    if (claimed?.kind === 'answered') return;
    if (claimed?.kind === 'refused') {
      this.#refusals.refuse(arrival.request, claimed.refusal, arrival);
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
}
