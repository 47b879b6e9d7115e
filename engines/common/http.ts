/**
 * The little HTTP that the engines share: bounded JSON bodies, OpenAI-shaped errors, one ready line, a clean end.
 * Engines are separate processes that stand for foreign software, so nothing here is imported by the gateway and
 * the gateway's own code is not imported here.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';

export const BODY_BYTES_MAX: number = 4 * 1024 * 1024;
/** How long running requests may go on after SIGTERM. */
const DRAIN_MS_MAX = 2_000;
/**
 * Node closes an idle connection after 5 s. An engine that computes on its main thread may be away for longer; its timers
 * then run before it reads what came meanwhile, and a request on a reused connection is reset although nothing is wrong.
 */
const KEEP_ALIVE_MS = 120_000;

export type JsonBody =
  | { readonly kind: 'ok'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  | { readonly kind: 'client-left' };

/** Reads a body that must be one JSON object of at most `BODY_BYTES_MAX`. Never rejects. */
export async function readJson(request: IncomingMessage): Promise<JsonBody> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) {
        return { kind: 'refused', status: 413, message: `The body is larger than ${BODY_BYTES_MAX} bytes` };
      }
      chunks.push(chunk);
    }
  } catch {
    return { kind: 'client-left' };
  }
  return parseJsonObject(Buffer.concat(chunks).toString('utf8'));
}

function parseJsonObject(text: string): JsonBody {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { kind: 'ok', value: value as Record<string, unknown> };
    }
  } catch {
    // Falls through: both kinds of wrong body get the same answer.
  }
  return { kind: 'refused', status: 400, message: 'The body is not a JSON object' };
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  if (response.destroyed || response.headersSent) return;
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, {
    'content-type': 'text/plain; version=0.0.4',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

export function sendError(response: ServerResponse, status: number, message: string): void {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  sendJson(response, status, { error: { message, type, param: null, code: null } });
}

export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
) => void | Promise<void>;

/**
 * An engine's command line: `--port N` (0: any free one), `--host H`, `--until stdin-ends` (a child that must not outlive
 * its parent, also when that one crashes), plus the strings it names itself.
 */
export function engineArguments(names: readonly string[]): Readonly<Record<string, string | undefined>> {
  const options: Record<string, { type: 'string' }> = {
    port: { type: 'string' },
    host: { type: 'string' },
    until: { type: 'string' },
  };
  for (const name of names) options[name] = { type: 'string' };
  const { values } = parseArgs({ options, strict: true, allowPositionals: false });
  return values as Readonly<Record<string, string | undefined>>;
}

/**
 * Listens, prints `{"ready":true,"url":…}` as the only line on stdout, and ends with code 0 on SIGTERM or SIGINT.
 * `onStop` runs once connections are closed, before the process exits.
 */
export async function serveEngine(
  flags: Readonly<Record<string, string | undefined>>,
  handler: Handler,
  onStop: () => Promise<void> = async () => {},
): Promise<void> {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    // A handler's rejection must not end the process: the engine answers 500 as a foreign server would.
    Promise.resolve(handler(request, response, path)).catch((error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      sendError(response, 500, 'The engine failed');
    });
  });
  server.listen(Number(flags['port'] ?? '0'), flags['host'] ?? '127.0.0.1');
  await new Promise<void>((resolve, reject) => server.once('listening', resolve).once('error', reject));
  const { address, port } = server.address() as AddressInfo;
  const host = address.includes(':') ? `[${address}]` : address;
  process.stdout.write(`${JSON.stringify({ ready: true, url: `http://${host}:${port}` })}\n`);
  stopOnSignal(server, onStop, flags['until'] === 'stdin-ends');
}

function stopOnSignal(server: Server, onStop: () => Promise<void>, untilStdinEnds: boolean): void {
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    const cut = setTimeout(() => server.closeAllConnections(), DRAIN_MS_MAX);
    server.close(() => {
      clearTimeout(cut);
      void onStop().finally(() => process.exit(0));
    });
    server.closeIdleConnections();
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  if (untilStdinEnds) process.stdin.once('close', stop).resume();
}
