/**
 * The admin plane: probes, metrics, nodes, queue, requests, dump, configuration. It is a plain request handler, so it
 * serves on the data port or on its own, and it never waits behind inference: every answer is computed in its turn.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Gateway } from '../../runtime/contract.ts';
import { keylessRefusal } from '../http/guard.ts';
import { checkedBody } from './checked-body.ts';
import { type ConfigControl, configRoutes } from './config.ts';
import { decisionsRoute } from './decisions.ts';
import { ledgersRoute } from './ledgers.ts';
import { type ConsoleFiles, ownsConsole, serveConsole } from './console.ts';
import { type Problem, sendJson, sendProblem, sendText } from './reply.ts';
import { requestListRoute } from './request-list.ts';
import { type Call, type Handler, numberOf, type Route } from './route.ts';
import { type LadderBody, ladderWish, wireLadder } from './ladder.ts';
import type { NodePatch } from './schemas.ts';
import { bearerOf, createScopes, type ScopeDigests, type Scopes } from './scopes.ts';
import { leftRatio, wireLimiter } from './limits.ts';
import { wireSignals } from './signals.ts';
import { userSideRoute } from './user-side.ts';
import type { BeaconDesk } from '../user-side/beacon-desk.ts';
import { wireNode, wireRequest } from './views.ts';
import { createWatch, type Watch } from './watch.ts';

export interface AdminPlaneOptions {
  readonly gateway: Gateway;
  readonly digests: ScopeDigests;
  /** The metrics page in the Prometheus text format. */
  renderMetrics(): string | Promise<string>;
  readonly metricsContentType: string;
  /** Absent: nothing changes the configuration. */
  readonly configControl?: ConfigControl;
  wallMs(): number;
  readonly beacons: BeaconDesk;
  readonly consoleFiles: ConsoleFiles;
  /** A port failed while a request was answered. */
  onError?(error: unknown): void;
}

export interface AdminPlane {
  /** Whether this request belongs to the admin plane; the target is the raw request target. */
  owns(target: string): boolean;
  handle(req: IncomingMessage, res: ServerResponse): void;
  /** Ends the answers that would never end by themselves. */
  close(): void;
}

const PREFIX = '/spillway/v1/';
/** Below the prefix, but for tenants, with their own keys. */
const TENANT_ROUTES = /^(me|jobs|rum|promises)(\/|$)/;
const OPEN_ROUTES: ReadonlySet<string> = new Set(['/livez', '/readyz']);
const NODES_LIMIT_DEFAULT = 2_000;
const NODES_LIMIT_MAX = 10_000;
const REASONS_LIMIT_DEFAULT = 100;
const REASONS_LIMIT_MAX = 1_000;

export function createAdminPlane(options: AdminPlaneOptions): AdminPlane {
  const scopes = createScopes(options.digests);
  const watch = createWatch({ gateway: options.gateway, wallMs: options.wallMs });
  const find = createRoutes(options, scopes, watch);
  return {
    owns(target) {
      const path = pathOf(target);
      if (OPEN_ROUTES.has(path) || path === '/metrics' || ownsConsole(path)) return true;
      if (!path.startsWith(PREFIX)) return false;
      const rest = path.slice(PREFIX.length);
      return rest === 'promises/ledger' || !TENANT_ROUTES.test(rest);
    },
    handle(req, res) {
      const call = callOf(req, res);
      if (call === undefined)
        sendProblem(res, { status: 400, reason: 'bad-request', detail: 'The request target is no path' });
      else void answer(call, options, scopes, find);
    },
    close: () => watch.close(),
  };
}

function pathOf(target: string): string {
  const end = target.indexOf('?');
  return end < 0 ? target : target.slice(0, end);
}

function callOf(req: IncomingMessage, res: ServerResponse): Call | undefined {
  const target = req.url ?? '';
  if (!target.startsWith('/')) return undefined;
  const path = pathOf(target);
  const query = new URLSearchParams(target.slice(path.length));
  return { req, res, method: req.method ?? '', path, query, bearer: bearerOf(req.headers.authorization) };
}

async function answer(call: Call, options: AdminPlaneOptions, scopes: Scopes, find: Find): Promise<void> {
  const { req, res, method, path } = call;
  const refusal = browserRefusal(req, options.gateway);
  if (refusal !== '') return sendProblem(res, { status: 403, reason: 'forbidden', detail: refusal });
  if (OPEN_ROUTES.has(path)) return probe(call, options.gateway);
  if (ownsConsole(path)) return serveConsole(req, res, { path, files: options.consoleFiles });
  const found = find(path);
  if (found === undefined) {
    const status = scopes.allows(call.bearer, 'admin') ? NOT_FOUND : UNAUTHENTICATED;
    return sendProblem(res, status);
  }
  const { route, id } = found;
  if (route.scope !== 'node' && !scopes.allows(call.bearer, route.scope))
    return sendProblem(res, UNAUTHENTICATED);
  const handler = route.methods[method === 'HEAD' ? 'GET' : method];
  if (handler === undefined) {
    const allow = Object.keys(route.methods).join(', ');
    return sendProblem(res, {
      status: 405,
      reason: 'bad-request',
      detail: `Expected ${allow}`,
      headers: { allow },
    });
  }
  try {
    await handler(call, id);
  } catch (error) {
    // A port failed (for example the store): typed, without its text, which may hold what clients must not see.
    options.onError?.(error);
    sendProblem(res, {
      status: 503,
      reason: 'unavailable',
      detail: 'The gateway could not complete this now',
    });
  }
}

const NOT_FOUND: Problem = { status: 404, reason: 'not-found', detail: 'There is nothing at this path' };
const UNAUTHENTICATED: Problem = {
  status: 401,
  reason: 'unauthenticated',
  detail:
    'Expected Authorization: Bearer with the admin token; `spillway serve` says at its start where it is',
  headers: { 'www-authenticate': 'Bearer realm="spillway"' },
};
const UNKNOWN_NODE: Problem = { status: 404, reason: 'unknown-node', detail: 'There is no node of this id' };

/** Without keys only this machine is served, also here; a page of another origin never is. */
function browserRefusal(req: IncomingMessage, gateway: Gateway): string {
  const isKeyless = gateway.config.tenants.every((tenant) => tenant.keys.length === 0);
  const host = req.headers.host ?? '';
  const origin = req.headers.origin ?? '';
  if (isKeyless) return keylessRefusal({ host, origin, remoteAddress: req.socket.remoteAddress });
  const isSameOrigin = origin === '' || origin === `http://${host}` || origin === `https://${host}`;
  return isSameOrigin ? '' : 'a page of another origin is not served';
}

function probe(call: Call, gateway: Gateway): void {
  const isWell = call.path === '/livez' || gateway.ready;
  sendText(call.res, isWell ? 200 : 503, 'text/plain; charset=utf-8', isWell ? 'ok\n' : 'not ready\n');
}

type Find = (path: string) => { readonly route: Route; readonly id: string } | undefined;

function createRoutes(options: AdminPlaneOptions, scopes: Scopes, watch: Watch): Find {
  const { gateway } = options;
  const fixed = new Map<string, Route>([
    ['/metrics', { scope: 'metrics', methods: { GET: (call) => metrics(call, options) } }],
    [
      `${PREFIX}nodes`,
      {
        scope: 'node',
        methods: {
          GET: guarded(scopes, (call) => listNodes(call, gateway)),
          POST: (call) => register(call, gateway, scopes),
        },
      },
    ],
    [
      `${PREFIX}queue`,
      { scope: 'admin', methods: { GET: ({ res }) => sendJson(res, 200, gateway.queue()) } },
    ],
    [
      `${PREFIX}gates`,
      { scope: 'admin', methods: { GET: ({ res }) => sendJson(res, 200, { gates: gateway.gates() }) } },
    ],
    [`${PREFIX}limits`, { scope: 'admin', methods: { GET: (call) => listLimits(call, gateway) } }],
    [`${PREFIX}decisions`, decisionsRoute(gateway)],
    [`${PREFIX}ladder`, ladderRoute(options)],
    [`${PREFIX}signals`, signalsRoute(options)],
    [`${PREFIX}user-side`, userSideRoute(options)],
    [`${PREFIX}ledgers`, ledgersRoute(gateway, options.wallMs)],
    [`${PREFIX}watch`, watch.route],
    [`${PREFIX}requests`, requestListRoute(gateway)],
    [`${PREFIX}dump`, { scope: 'admin', methods: { GET: ({ res }) => sendJson(res, 200, gateway.dump()) } }],
  ]);
  for (const [path, route] of configRoutes(gateway, options.configControl))
    fixed.set(`${PREFIX}${path}`, route);
  const node: Route = {
    scope: 'admin',
    methods: {
      GET: ({ res }, id) => {
        const row = gateway.node(id);
        if (row === undefined) sendProblem(res, UNKNOWN_NODE);
        else sendJson(res, 200, wireNode(row));
      },
      PATCH: (call, id) => patchNode(call, id, gateway),
      DELETE: async ({ res }, id) => {
        if (await gateway.removeNode(id)) res.writeHead(204).end();
        else sendProblem(res, UNKNOWN_NODE);
      },
    },
  };
  const beat: Route = { scope: 'node', methods: { POST: (call, id) => heartbeat(call, id, gateway) } };
  const request: Route = { scope: 'admin', methods: { GET: (call, id) => explain(call, id, options) } };
  return (path) => {
    const exact = fixed.get(path);
    if (exact !== undefined) return { route: exact, id: '' };
    const match = /^\/spillway\/v1\/(nodes|requests)\/([^/]{1,512})(\/heartbeat)?$/.exec(path);
    const id = match === null ? undefined : decoded(match[2] ?? '');
    if (match === null || id === undefined) return undefined;
    if (match[1] === 'requests') return match[3] === undefined ? { route: request, id } : undefined;
    return { route: match[3] === undefined ? node : beat, id };
  };
}

function guarded(scopes: Scopes, handler: Handler): Handler {
  return (call, id) =>
    scopes.allows(call.bearer, 'admin') ? handler(call, id) : sendProblem(call.res, UNAUTHENTICATED);
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

async function metrics(call: Call, options: AdminPlaneOptions): Promise<void> {
  sendText(call.res, 200, options.metricsContentType, await options.renderMetrics());
}

/** Sorted by id, so that a page can name the id after which the next one starts. */
function listNodes({ res, query }: Call, gateway: Gateway): void {
  const limit = numberOf(query, 'limit', { fallback: NODES_LIMIT_DEFAULT, min: 1, max: NODES_LIMIT_MAX });
  const after = query.get('after') ?? '';
  const sorted = gateway.nodes().toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  const rest = after === '' ? sorted : sorted.filter((row) => row.id > after);
  const page = rest.slice(0, limit);
  const next = rest.length > limit ? (page.at(-1)?.id ?? null) : null;
  sendJson(res, 200, { nodes: page.map(wireNode), total: sorted.length, next });
}

/** The scarcest first: an operator asks who is at a limit. */
function listLimits({ res, query }: Call, gateway: Gateway): void {
  const limit = numberOf(query, 'limit', { fallback: NODES_LIMIT_DEFAULT, min: 1, max: NODES_LIMIT_MAX });
  const rows = gateway.limits();
  const sorted = rows.toSorted((a, b) => leftRatio(a) - leftRatio(b));
  sendJson(res, 200, { limits: sorted.slice(0, limit).map(wireLimiter), total: rows.length });
}

/** New nodes need the join or admin token; a node that comes back proves itself with its own credential. */
async function register(call: Call, gateway: Gateway, scopes: Scopes): Promise<void> {
  const mayJoin = scopes.allows(call.bearer, 'join');
  if (!mayJoin && call.bearer === '') return sendProblem(call.res, UNAUTHENTICATED);
  const node = await checkedBody(call, (schemas, body) => schemas.checkRegistration(body));
  if (node === undefined) return;
  const isKnown = gateway.node(node.id) !== undefined;
  if (!mayJoin && !isKnown) return sendProblem(call.res, UNAUTHENTICATED);
  const result = await gateway.register(node, 'api', mayJoin ? '' : call.bearer);
  if (result.kind === 'id-taken') {
    const detail = 'A node of this id is registered; come back with its own credential, or take another id';
    return sendProblem(call.res, { status: 409, reason: 'id-taken', detail });
  }
  if (result.kind === 'refused') {
    return sendProblem(call.res, {
      status: 422,
      reason: 'bad-request',
      detail: `This node cannot be registered: ${result.rule}`,
    });
  }
  const location = `${PREFIX}nodes/${encodeURIComponent(result.node.id)}`;
  sendJson(
    call.res,
    isKnown ? 200 : 201,
    { ...wireNode(result.node), credential: result.credential },
    { location },
  );
}

function signalsRoute({ gateway, wallMs }: AdminPlaneOptions): Route {
  return {
    scope: 'admin',
    methods: {
      GET: ({ res }) =>
        sendJson(res, 200, wireSignals(gateway.signals(), { monoUs: gateway.now(), wallMs: wallMs() })),
    },
  };
}

function ladderRoute({ gateway, wallMs }: AdminPlaneOptions): Route {
  const show = ({ res }: Call): void => sendJson(res, 200, wireLadder(gateway.ladder(), wallMs()));
  return {
    scope: 'admin',
    methods: {
      GET: show,
      async PUT(call) {
        const body = await checkedBody<LadderBody>(call, (schemas, value) => schemas.checkLadder(value));
        if (body === undefined) return;
        if (gateway.overrideLadder(ladderWish(body))) return show(call);
        const detail = 'The gate ladder is off in the configuration: a stage would hold nothing back';
        sendProblem(call.res, { status: 409, reason: 'gate-off', detail });
      },
    },
  };
}

async function heartbeat(call: Call, id: string, gateway: Gateway): Promise<void> {
  if (call.bearer === '') return sendProblem(call.res, UNAUTHENTICATED);
  const change = await checkedBody(call, (schemas, body) => schemas.checkHeartbeat(body));
  if (change === undefined) return;
  if (gateway.heartbeat(id, call.bearer, change)) {
    return sendJson(call.res, 200, { nextMs: gateway.config.scheduler.health.heartbeatMs });
  }
  if (gateway.node(id) === undefined) return sendProblem(call.res, UNKNOWN_NODE);
  sendProblem(call.res, {
    status: 403,
    reason: 'forbidden',
    detail: 'This credential does not belong to the node',
  });
}

async function patchNode(call: Call, id: string, gateway: Gateway): Promise<void> {
  const patch = await checkedBody<NodePatch>(call, (schemas, body) => schemas.checkNodePatch(body));
  if (patch === undefined) return;
  let isKnown = true;
  if (patch.cordoned !== undefined) isKnown = await gateway.setCordoned(id, patch.cordoned);
  if (isKnown && patch.draining !== undefined) isKnown = await gateway.setDraining(id, patch.draining);
  const row = isKnown ? gateway.node(id) : undefined;
  if (row !== undefined) sendJson(call.res, 200, wireNode(row));
  else if (isKnown) call.res.writeHead(204).end();
  else sendProblem(call.res, UNKNOWN_NODE);
}

function explain({ res, query }: Call, id: string, options: AdminPlaneOptions): void {
  const view = options.gateway.request(id);
  if (view === undefined) {
    const detail = 'There is no request of this id; finished requests are kept for a while only';
    return sendProblem(res, { status: 404, reason: 'unknown-request', detail });
  }
  const offset = numberOf(query, 'nodesOffset', { fallback: 0, max: 1_000_000 });
  const limit = numberOf(query, 'nodesLimit', { fallback: REASONS_LIMIT_DEFAULT, max: REASONS_LIMIT_MAX });
  const { gateway } = options;
  const surroundings = { scheduler: gateway.config.scheduler, nodes: () => gateway.nodes() };
  sendJson(res, 200, wireRequest(view, { offset, limit }, { nowWallMs: options.wallMs(), surroundings }));
}
