/** Asks a running gateway's admin plane. Finds address and token by itself where the gateway runs on this machine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { DEFAULT_SERVER } from '../../core/config/index.ts';
import { ADMIN_TOKEN_FILE, readRunning } from '../gateway/state-folder.ts';
import { CliError, USAGE } from './exit.ts';
import { printable } from './output.ts';
import { defaultStateFolder, type Environment } from './state.ts';

export interface AdminOptions {
  readonly url?: string;
  readonly token?: string;
  readonly state?: string;
  /** File of the authority, or of the certificate itself, that a gateway with TLS shows. */
  readonly cacert?: string;
  readonly json?: boolean;
}

const ANSWER_MS = 10_000;
/** Codes of OpenSSL and Node for a chain that does not end at a known authority, or is for another name. */
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_|CERT_|ALTNAME/;

export interface AdminChange {
  readonly method: 'PUT' | 'POST';
  readonly body: object;
}

/** The gateway understood the change and refused it: every broken rule is on a line of its own. */
export class RefusedChange extends CliError {
  readonly problem: unknown;

  constructor(message: string, problem: unknown) {
    super(message, USAGE);
    this.problem = problem;
  }
}

/** Asks, or sends a change. The body of a 200; everything else ends the command with a sentence that says what to do. */
export async function askAdmin(
  path: string,
  options: AdminOptions,
  environment: Environment,
  change?: AdminChange,
): Promise<unknown> {
  const folder = options.state ?? defaultStateFolder(environment);
  if (options.cacert !== undefined) trust(options.cacert);
  const base = baseUrl(options, environment, folder);
  const token = options.token ?? (environment['SPILLWAY_TOKEN'] || tokenIn(folder));
  const response = await ask(`${base}/spillway/v1${path}`, token, base, change);
  const text = await response.text();
  const body = parsed(text);
  if (response.status === 200 && body !== undefined) return body;
  if (response.status === 401 || response.status === 403) throw new CliError(refused(base, token, folder));
  const issues = issuesIn(body);
  if (response.status === 422 && issues.length > 0) throw new RefusedChange(issues.join('\n'), body);
  const detail =
    body !== undefined && typeof body === 'object' && body !== null && 'detail' in body
      ? String(body.detail)
      : '';
  throw new CliError(detail === '' ? `The gateway at ${base} answered ${response.status}` : detail);
}

function baseUrl(options: AdminOptions, environment: Environment, folder: string): string {
  const named = options.url ?? environment['SPILLWAY_URL'];
  if (named !== undefined && named !== '') {
    if (!URL.canParse(named))
      throw new CliError(
        `Expected a URL for --url, such as http://127.0.0.1:8480 (received ${JSON.stringify(named)})`,
        USAGE,
      );
    return named.replace(/\/+$/, '');
  }
  const running = readRunning(folder)?.adminUrl;
  return running === undefined || running === ''
    ? `http://${DEFAULT_SERVER.host}:${DEFAULT_SERVER.port}`
    : running;
}

function tokenIn(folder: string): string {
  try {
    return readFileSync(join(folder, ADMIN_TOKEN_FILE), 'utf8').trim();
  } catch {
    return '';
  }
}

function trust(file: string): void {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch {
    throw new CliError(`Expected a readable file for --cacert (received ${JSON.stringify(file)})`, USAGE);
  }
  setDefaultCACertificates([...getCACertificates('default'), pem]);
}

/** `path: rule (received …)`, for each issue of a problem. */
function issuesIn(body: unknown): readonly string[] {
  const { issues } = Object(body) as { readonly issues?: unknown };
  if (!Array.isArray(issues)) return [];
  return issues.map((issue) => {
    const { path = '', rule = '', received = '' } = Object(issue) as Record<string, unknown>;
    const end = received === '' ? '' : ` (received ${String(received)})`;
    return printable(`${path === '' ? '' : `${String(path)}: `}${String(rule)}${end}`);
  });
}

async function ask(url: string, token: string, base: string, change?: AdminChange): Promise<Response> {
  const headers = {
    ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    ...(change === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const sent = change === undefined ? {} : { method: change.method, body: JSON.stringify(change.body) };
  try {
    return await fetch(url, { ...sent, headers, redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) });
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const code =
      cause instanceof Error && 'code' in cause
        ? String(cause.code)
        : cause instanceof Error
          ? cause.name
          : 'failed';
    if (UNTRUSTED.test(code)) {
      throw new CliError(
        `The gateway at ${base} shows a certificate that this machine does not trust (${code}); name its authority with --cacert`,
      );
    }
    throw new CliError(
      `Cannot reach a gateway at ${base} (${code}); start one with \`spillway serve\`, or name it with --url`,
    );
  }
}

function refused(base: string, token: string, folder: string): string {
  if (token === '') {
    return `The gateway at ${base} asks for its admin token, and there is none in ${folder}; give it with --token or SPILLWAY_TOKEN, or the gateway's state folder with --state`;
  }
  return `The gateway at ${base} refused the token; give the right one with --token or SPILLWAY_TOKEN, or the gateway's state folder with --state`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
