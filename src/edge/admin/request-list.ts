/** `GET /requests`: which requests wait, run or have ended, without what explaining one costs. */
import type { Gateway, ListedState, RequestView } from '../../runtime/contract.ts';
import { sendJson, sendProblem } from './reply.ts';
import { type Call, numberOf, type Route } from './route.ts';

const LISTED_DEFAULT = 50;
/** Requests in one answer. */
export const LISTED_MAX = 500;
const STATES: readonly ListedState[] = ['queued', 'running', 'ended'];

export function requestListRoute(gateway: Gateway): Route {
  return { scope: 'admin', methods: { GET: (call) => list(call, gateway) } };
}

function list({ res, query }: Call, gateway: Gateway): void {
  const asked = query.get('state') ?? 'queued';
  const state = STATES.find((one) => one === asked);
  if (state === undefined) {
    const detail = `Expected state to be one of ${STATES.join(', ')}`;
    return sendProblem(res, { status: 422, reason: 'bad-request', detail });
  }
  const limit = numberOf(query, 'limit', { fallback: LISTED_DEFAULT, min: 1, max: LISTED_MAX });
  sendJson(res, 200, { state, requests: gateway.requests(state, limit).map(wireRow) });
}

function wireRow(view: RequestView): unknown {
  const { received, done } = view.timeline;
  return {
    id: view.id,
    state: view.state,
    reason: view.reason,
    class: view.className,
    tenant: view.tenant,
    model: view.model,
    node: view.nodeId === '' ? null : view.nodeId,
    attempts: view.attempts,
    received,
    done: done < 0 ? null : received + done,
    deadlineMs: view.className === '' ? null : (view.facts?.deadlineMs ?? null),
  };
}
