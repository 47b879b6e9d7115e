/** Asks a running gateway's admin plane. Finds address and token by itself where the gateway runs on this machine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { DEFAULT_SERVER } from '../../core/config/index.ts';
import { ADMIN_TOKEN_FILE, readRunning } from '../gateway/state-folder.ts';
import { CliError, FAILED, USAGE } from './exit.ts';
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

/** The gateway answered, and not with what was asked for. */
export class AdminRefusal extends CliError {
  readonly status: number;
  readonly problem: unknown;

  constructor(message: string, { status, problem }: { readonly status: number; readonly problem: unknown }) {
    super(message, status === 422 ? USAGE : FAILED);
    this.status = status;
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
  const signal = AbortSignal.timeout(ANSWER_MS);
  const response = await openAdmin(`/spillway/v1${path}`, options, environment, { signal, change });
  const body = parsed(await response.text());
  if (body === undefined) throw new CliError(`The gateway at ${new URL(response.url).origin} sent no JSON`);
  return body;
}

export interface Opening {
  readonly signal: AbortSignal;
  readonly change?: AdminChange | undefined;
}

/**
 * The answer of a 200, its body still to be read. Address and token are looked up each time: a gateway that was started
 * again may have others.
 */
export async function openAdmin(
  target: string,
  options: AdminOptions,
  environment: Environment,
  opening: Opening,
): Promise<Response> {
  const folder = options.state ?? defaultStateFolder(environment);
  if (options.cacert !== undefined) trust(options.cacert);
  const base = baseUrl(options, environment, folder);
  const token = options.token ?? (environment['SPILLWAY_TOKEN'] || tokenIn(folder));
  const response = await ask({ url: `${base}${target}`, base, token }, opening);
  const { status } = response;
  if (status === 200) return response;
  const problem = parsed(await response.text());
  if (status === 401 || status === 403)
    throw new AdminRefusal(refused(base, token, folder), { status, problem });
  const issues = status === 422 ? issuesIn(problem) : [];
  const { detail = `The gateway at ${base} answered ${status}` } = Object(problem) as { detail?: unknown };
  throw new AdminRefusal(issues.length > 0 ? issues.join('\n') : String(detail), { status, problem });
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

interface Target {
  readonly url: string;
  readonly base: string;
  readonly token: string;
}

async function ask({ url, base, token }: Target, { signal, change }: Opening): Promise<Response> {
  const headers = {
    ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    ...(change === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const sent = change === undefined ? {} : { method: change.method, body: JSON.stringify(change.body) };
  try {
    return await fetch(url, { ...sent, headers, redirect: 'error', signal });
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
