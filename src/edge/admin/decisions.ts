/** `GET /spillway/v1/decisions?since=&limit=`: the last decisions, page by page, from a bounded ring in memory. */
import type { Gateway } from '../../runtime/contract.ts';
import { sendJson } from './reply.ts';
import { numberOf, type Route } from './route.ts';

const LIMIT_DEFAULT = 200;
const LIMIT_MAX = 1_000;

export function decisionsRoute(gateway: Gateway): Route {
  return {
    scope: 'admin',
    methods: {
      GET({ res, query }) {
        const since = numberOf(query, 'since', { fallback: 0, max: Number.MAX_SAFE_INTEGER });
        const limit = Math.max(1, numberOf(query, 'limit', { fallback: LIMIT_DEFAULT, max: LIMIT_MAX }));
        sendJson(res, 200, gateway.decisions(since, limit));
      },
    },
  };
}
