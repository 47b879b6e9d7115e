/** Answers of the tenants' routes: JSON, and refusals as RFC 9457 describes them. */
import { STATUS_CODES } from 'node:http';
import type { ClientRequest } from '../http/client-request.ts';

export interface TenantProblem {
  readonly status: number;
  readonly reason: string;
  readonly detail: string;
  readonly headers?: readonly string[];
}

export const NOTHING_HERE: TenantProblem = {
  status: 404,
  reason: 'not-found',
  detail: 'There is nothing at this path',
};
export function notAllowed(allow: string): TenantProblem {
  return { status: 405, reason: 'bad-request', detail: `Expected ${allow}`, headers: ['allow', allow] };
}

export function sendJson(request: ClientRequest, status: number, value: unknown): void {
  send(request, status, { type: 'application/json', value });
}

export function sendProblem(
  request: ClientRequest,
  { status, reason, detail, headers }: TenantProblem,
): void {
  const value = { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, reason, detail };
  send(request, status, { type: 'application/problem+json', value, headers: headers ?? [] });
}

function send(
  request: ClientRequest,
  status: number,
  answer: { readonly type: string; readonly value: unknown; readonly headers?: readonly string[] },
): void {
  const body = Buffer.from(JSON.stringify(answer.value));
  const headers = [...(answer.headers ?? []), 'content-type', answer.type, 'cache-control', 'no-store'];
  headers.push('content-length', String(body.length));
  // Whatever of a body still comes is not waited for.
  if (request.hasUnreadBody) headers.push('connection', 'close');
  const response = request.response();
  response.writeHead(status, headers);
  response.end(body);
}
