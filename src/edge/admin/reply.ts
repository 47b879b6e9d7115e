/** Answers of the admin plane: JSON, and problems as RFC 9457 describes them. Never a stack trace, never a secret. */
import { type ServerResponse, STATUS_CODES } from 'node:http';

export interface Problem {
  readonly status: number;
  /** Stable and short, for programs. */
  readonly reason: string;
  /** A sentence for people. */
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Broken rules of the body, where there are several. */
  readonly issues?: readonly { readonly path: string; readonly rule: string; readonly received?: string }[];
}

export function sendJson(
  res: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  send(res, status, JSON.stringify(value), { ...headers, 'content-type': 'application/json' });
}

export function sendProblem(res: ServerResponse, problem: Problem): void {
  const { status, reason, detail, issues, headers } = problem;
  const body = {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    reason,
    detail,
    issues,
  };
  send(res, status, JSON.stringify(body), { ...headers, 'content-type': 'application/problem+json' });
}

export function sendText(res: ServerResponse, status: number, type: string, text: string): void {
  send(res, status, text, { 'content-type': type });
}

function send(
  res: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>>,
): void {
  if (res.headersSent || res.destroyed) return;
  const length = Buffer.byteLength(body);
  res.writeHead(status, { 'content-length': length, 'cache-control': 'no-store', ...headers });
  res.end(res.req.method === 'HEAD' ? undefined : body);
}
