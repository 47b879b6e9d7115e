/**
 * The web console's files. They hold no secret, so they are open, as every page that asks for a token is. Only names of
 * the built console are answered, from memory: no path of a request ever reaches the file system.
 *
 * The policy lets the page run its own scripts and styles and talk to this gateway, and nothing else: no inline script,
 * no frame around it, no other origin.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendProblem } from './reply.ts';

export interface ConsoleFile {
  readonly bytes: Buffer;
  readonly contentType: string;
  /** Quoted, as it is sent. */
  readonly etag: string;
  /** Its name changes with its content, so that it may be kept for ever. */
  readonly isHashed: boolean;
}

/** By the path below `/console/`; the page itself is `index.html`. Undefined where the console was not built. */
export type ConsoleFiles = () => ReadonlyMap<string, ConsoleFile> | undefined;

const PATH = '/console';

const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const PROTECTION: Readonly<Record<string, string>> = {
  'content-security-policy': CONTENT_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

export function ownsConsole(path: string): boolean {
  return path === PATH || path.startsWith(`${PATH}/`);
}

export function serveConsole(
  req: IncomingMessage,
  res: ServerResponse,
  { path, files }: { readonly path: string; readonly files: ConsoleFiles },
): void {
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    return sendProblem(res, {
      status: 405,
      reason: 'bad-request',
      detail: 'Expected GET, HEAD',
      headers: { allow: 'GET, HEAD' },
    });
  }
  const built = files();
  if (built === undefined) return sendProblem(res, { status: 404, reason: 'not-found', detail: NOT_BUILT });
  const name = path.slice(PATH.length + 1);
  const file = built.get(name === '' ? 'index.html' : name);
  if (file === undefined)
    return sendProblem(res, { status: 404, reason: 'not-found', detail: 'The console has no such file' });
  sendFile(req, res, file);
}

const NOT_BUILT = 'The console is not built: npm start builds it, and so does npm run build:console';

function sendFile(req: IncomingMessage, res: ServerResponse, file: ConsoleFile): void {
  const headers = {
    ...PROTECTION,
    etag: file.etag,
    'cache-control': file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
  };
  if (req.headers['if-none-match'] === file.etag) {
    res.writeHead(304, headers).end();
    return;
  }
  res.writeHead(200, {
    ...headers,
    'content-type': file.contentType,
    'content-length': file.bytes.length,
  });
  res.end(req.method === 'HEAD' ? undefined : file.bytes);
}
