/**
 * The state folder of a running gateway: its tokens, who uses it now, and where it can be reached.
 *
 * Files, all of mode 0600 in a folder of mode 0700: `admin-token`, `metrics-token` (for scrapers, `/metrics` alone),
 * `gateway.json` (process and addresses while one runs; also the lock), `registry.sqlite`, `keys.json`.
 */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from '../../adapters/config-file/index.ts';

export interface Tokens {
  readonly admin: string;
  readonly metrics: string;
}

export interface RunningGateway {
  readonly pid: number;
  /** Tells a process from a later one of the same number; '' where the system does not say. */
  readonly startedAt: string;
  /** '' until it listens. */
  readonly dataUrl: string;
  readonly adminUrl: string;
}

const TOKEN_BYTES = 32;
/** A token that an operator wrote himself must not be guessable. */
const TOKEN_CHARS_MIN = 16;

export const ADMIN_TOKEN_FILE = 'admin-token';
export const METRICS_TOKEN_FILE = 'metrics-token';
const RUNNING_FILE = 'gateway.json';

/** A start that cannot go on, with what to do; for people. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

export function randomToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

export function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(
      `Cannot create the state folder ${folder} (${codeOf(error)}); name another one with --state`,
    );
  }
}

/** Reads the tokens of this folder, or makes them at the first start. */
export function readOrCreateTokens(folder: string): Tokens {
  return { admin: tokenIn(folder, ADMIN_TOKEN_FILE), metrics: tokenIn(folder, METRICS_TOKEN_FILE) };
}

/** Before its first start, for gateways that are to be opened by the same tokens. */
export function writeTokens(folder: string, { admin, metrics }: Tokens): void {
  writePrivateFile(join(folder, ADMIN_TOKEN_FILE), `${admin}\n`);
  writePrivateFile(join(folder, METRICS_TOKEN_FILE), `${metrics}\n`);
}

function tokenIn(folder: string, name: string): string {
  const path = join(folder, name);
  const known = readText(path)?.trim();
  if (known !== undefined && known.length >= TOKEN_CHARS_MIN) return known;
  if (known !== undefined && known !== '') {
    throw new StartError(
      `The token in ${path} is too short: expected at least ${TOKEN_CHARS_MIN} characters`,
    );
  }
  const token = randomToken();
  try {
    writePrivateFile(path, `${token}\n`);
  } catch (error) {
    throw new StartError(`Cannot write ${path} (${codeOf(error)}); name another folder with --state`);
  }
  return token;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new StartError(`Cannot read ${path} (${codeOf(error)})`);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
}

/** One gateway per folder: two would overwrite each other's registry. A folder whose owner is gone is taken over. */
export function lockFolder(folder: string): void {
  const other = readRunning(folder);
  if (other !== undefined && other.pid !== process.pid) {
    const where = other.adminUrl === '' ? '' : ` (${other.adminUrl})`;
    throw new StartError(
      `Another gateway${where}, process ${other.pid}, uses the state folder ${folder}; stop it, or name another folder with --state`,
    );
  }
  announce(folder, { dataUrl: '', adminUrl: '' });
}

export function announce(
  folder: string,
  urls: { readonly dataUrl: string; readonly adminUrl: string },
): void {
  const running: RunningGateway = { pid: process.pid, startedAt: startedAt(process.pid), ...urls };
  writePrivateFile(join(folder, RUNNING_FILE), `${JSON.stringify(running)}\n`, 'quick');
}

export function unlockFolder(folder: string): void {
  rmSync(join(folder, RUNNING_FILE), { force: true });
}

/** The gateway that runs with this folder, or undefined when there is none or it is gone. */
export function readRunning(folder: string): RunningGateway | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(join(folder, RUNNING_FILE), 'utf8'));
  } catch {
    return undefined;
  }
  return isRunning(parsed) && isAlive(parsed) ? parsed : undefined;
}

function isRunning(value: unknown): value is RunningGateway {
  if (value === null || typeof value !== 'object') return false;
  const { pid, startedAt: start, dataUrl, adminUrl } = value as Record<string, unknown>;
  return Number.isInteger(pid) && [start, dataUrl, adminUrl].every((field) => typeof field === 'string');
}

function isAlive(running: RunningGateway): boolean {
  try {
    process.kill(running.pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
  const now = startedAt(running.pid);
  return now === '' || running.startedAt === '' || now === running.startedAt;
}

/** Clock ticks since boot at which the process started: field 22 of its stat, after the name in parentheses. */
function startedAt(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
