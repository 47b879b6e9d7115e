/**
 * What a tenant may ask about itself, with its own key on the data port: `/spillway/v1/me/…`. One table of routes; the
 * data plane has found out who is asking before a route is looked up. Answers are JSON, refusals are problems as RFC 9457
 * describes them.
 *
 * Somebody else's request is answered exactly as one that never was: an id tells nothing to who does not own it.
 */
import type { MonoUs } from '../../base/units.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { Tenant } from '../auth/keys.ts';
import type { ClientRequest } from '../http/client-request.ts';
import { NOTHING_HERE, notAllowed, sendJson, sendProblem, type TenantProblem } from './problem.ts';
import { ownRequest, ownUsage } from './own-views.ts';

export interface TenantPlaneOptions {
  readonly gateway: Gateway;
  wallMs(): number;
}

/** One request of a tenant for a route of this plane. */
interface TenantCall {
  readonly request: ClientRequest;
  readonly tenant: Tenant;
  /** What the route's pattern matched, decoded; '' where it has no variable part. */
  readonly id: string;
}

interface TenantRoute {
  readonly pattern: RegExp;
  readonly methods: Readonly<Record<string, (call: TenantCall) => void>>;
}

export interface TenantPlane {
  /** The tenant is known; answers whatever the path is. */
  take(request: ClientRequest, path: string, tenant: Tenant): void;
}

/** Paths of this plane: whoever has no key is refused there, also where there is nothing. */
export const TENANT_PATH: RegExp = /^\/spillway\/v1\/me(\/|$)/;

/** Answers a second, for one tenant and for all: a view of a waiting request costs a look at the fleet. */
const ANSWERS_PER_TENANT_MAX = 10;
const ANSWERS_MAX = 100;
const WINDOW_US = 1_000_000;

export function createTenantPlane(options: TenantPlaneOptions): TenantPlane {
  const routes = createRoutes(options);
  const pace = createPace();
  return {
    take(request, path, tenant) {
      for (const { pattern, methods } of routes) {
        const match = pattern.exec(path);
        const id = match === null ? undefined : decoded(match[1] ?? '');
        if (id === undefined) continue;
        const answer = methods[request.method === 'HEAD' ? 'GET' : request.method];
        if (answer === undefined) return sendProblem(request, notAllowed(Object.keys(methods).join(', ')));
        if (!pace.allows(tenant.id, options.gateway.now())) return sendProblem(request, TOO_OFTEN);
        return answer({ request, tenant, id });
      }
      sendProblem(request, NOTHING_HERE);
    },
  };
}

function createRoutes({ gateway, wallMs }: TenantPlaneOptions): readonly TenantRoute[] {
  return [
    {
      pattern: /^\/spillway\/v1\/me\/usage$/,
      methods: { GET: ({ request, tenant }) => sendJson(request, 200, ownUsage(gateway, tenant.id)) },
    },
    {
      pattern: /^\/spillway\/v1\/me\/requests\/([^/]{1,512})$/,
      methods: {
        GET({ request, tenant, id }) {
          const view = gateway.request(id);
          if (view === undefined || view.tenant !== tenant.id) return sendProblem(request, UNKNOWN_REQUEST);
          const surroundings = { scheduler: gateway.config.scheduler, nodes: () => gateway.nodes() };
          const around = { nowWallMs: wallMs(), surroundings };
          sendJson(request, 200, ownRequest(view, tenant.nodeVisible, around));
        },
      },
    },
  ];
}

/** Counts answers in windows of a second; what it remembers is bounded by what it allows. */
function createPace(): { allows(tenant: string, now: MonoUs): boolean } {
  const byTenant = new Map<string, number>();
  let windowAt: MonoUs = Number.NEGATIVE_INFINITY;
  let answers = 0;
  return {
    allows(tenant, now) {
      if (now - windowAt >= WINDOW_US) {
        windowAt = now;
        answers = 0;
        byTenant.clear();
      }
      const own = byTenant.get(tenant) ?? 0;
      if (answers >= ANSWERS_MAX || own >= ANSWERS_PER_TENANT_MAX) return false;
      answers += 1;
      byTenant.set(tenant, own + 1);
      return true;
    },
  };
}

const UNKNOWN_REQUEST: TenantProblem = {
  status: 404,
  reason: 'unknown-request',
  detail: 'You have no request of this id; finished requests are kept for a while only',
};
const TOO_OFTEN: TenantProblem = {
  status: 429,
  reason: 'rate-limited',
  detail: `At most ${ANSWERS_PER_TENANT_MAX} of these answers a second`,
  headers: ['retry-after', '1'],
};
export const NO_KEY: TenantProblem = {
  status: 401,
  reason: 'unauthenticated',
  detail: 'Expected Authorization: Bearer, or x-api-key, with a key of a tenant',
  headers: ['www-authenticate', 'Bearer realm="spillway"'],
};

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
