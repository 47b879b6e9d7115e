/**
 * `POST /spillway/v1/rum`: a browser tells what its user saw of an answer. It has no key of a tenant; what lets it in is the
 * token that came with the answer (see `user-side/beacon-desk.ts`).
 *
 * `navigator.sendBeacon` sends `text/plain` without asking first; JSON is asked for by a preflight. Either is answered for
 * the origins of the configuration and refused for every other one. Requests without an origin (a page's own backend, a test)
 * come from no page and are judged by their token alone.
 */
import type { BeaconResult } from '../../ports/metrics-sink.ts';
import type { BodyBudget, ClientRequest } from '../http/client-request.ts';
import { BEACON_BYTES_MAX } from '../user-side/beacon.ts';
import type { BeaconDesk } from '../user-side/beacon-desk.ts';
import { NOTHING_HERE, notAllowed, sendProblem, type TenantProblem } from './problem.ts';

export const RUM_PATH = '/spillway/v1/rum';

const PREFLIGHT_S = 600;

const REFUSALS: Readonly<Record<Exclude<BeaconResult, 'accepted'>, TenantProblem>> = {
  unreadable: {
    status: 400,
    reason: 'bad-request',
    detail: 'Expected {token, id, outcome, firstByteMs, completionMs, traceId, session}',
  },
  implausible: { status: 400, reason: 'bad-request', detail: 'These times cannot be true' },
  forged: { status: 403, reason: 'forbidden', detail: 'This token was not made here' },
  expired: { status: 403, reason: 'forbidden', detail: 'This token is too old' },
  'other-request': { status: 403, reason: 'forbidden', detail: 'This token belongs to another request' },
  reused: { status: 409, reason: 'reused', detail: 'This request was told of before' },
  'rate-limited': {
    status: 429,
    reason: 'rate-limited',
    detail: 'Too many beacons',
    headers: ['retry-after', '1'],
  },
};
const FOREIGN_ORIGIN: TenantProblem = {
  status: 403,
  reason: 'forbidden',
  detail: 'Pages of this origin may not send beacons; rum.originsAllowed names those that may',
};
const TOO_LARGE: TenantProblem = {
  status: 413,
  reason: 'too-large',
  detail: `Expected at most ${BEACON_BYTES_MAX} bytes`,
};
const BUSY: TenantProblem = {
  status: 503,
  reason: 'self-protection',
  detail: 'The gateway has no room for this body now',
  headers: ['retry-after', '1'],
};

export function takeBeacon(request: ClientRequest, desk: BeaconDesk, budget: BodyBudget): void {
  const { enabled, originsAllowed } = desk.config;
  if (!enabled) return sendProblem(request, NOTHING_HERE);
  const { origin } = request.head;
  if (origin !== '' && !originsAllowed.includes(origin)) return sendProblem(request, FOREIGN_ORIGIN);
  const cors = origin === '' ? [] : ['access-control-allow-origin', origin, 'vary', 'origin'];
  if (request.method === 'OPTIONS') return allow(request, cors);
  if (request.method !== 'POST') return sendProblem(request, notAllowed('POST, OPTIONS'));
  const refuse = (problem: TenantProblem): void =>
    sendProblem(request, { ...problem, headers: [...(problem.headers ?? []), ...cors] });
  request.readBody(BEACON_BYTES_MAX, budget, {
    complete(body) {
      if (request.isGone) return;
      const result = desk.take(body);
      if (result === 'accepted') sendNothing(request, cors);
      else refuse(REFUSALS[result]);
    },
    refused: (reason) => refuse(reason === 'too-large' ? TOO_LARGE : BUSY),
  });
}

function allow(request: ClientRequest, cors: readonly string[]): void {
  sendNothing(request, [
    ...cors,
    'access-control-allow-methods',
    'POST',
    'access-control-allow-headers',
    'content-type',
    'access-control-max-age',
    String(PREFLIGHT_S),
  ]);
}

function sendNothing(request: ClientRequest, headers: readonly string[]): void {
  const response = request.response();
  response.writeHead(204, [...headers, 'cache-control', 'no-store']);
  response.end();
}
