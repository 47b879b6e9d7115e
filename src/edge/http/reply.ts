/** Whole answers in one write: flat headers, the body as a string so that node joins it with the head. */
import type { ServerResponse } from 'node:http';
import type { RenderedRefusal } from '../outcomes/refusal.ts';

export function sendText(res: ServerResponse, status: number, headers: string[], body: string): void {
  headers.push('content-length', String(Buffer.byteLength(body)));
  res.writeHead(status, headers);
  res.end(body);
}

/** A refusal. With `closes` the connection ends after it, because the rest of the request is not read. */
export function sendRefusal(res: ServerResponse, refusal: RenderedRefusal, closes: 'keeps' | 'closes'): void {
  if (closes === 'closes') refusal.headers.push('connection', 'close');
  // The body is ASCII, see `asciiJson`.
  refusal.headers.push('content-length', String(refusal.body.length));
  res.writeHead(refusal.status, refusal.headers);
  res.end(refusal.body, 'latin1');
}
