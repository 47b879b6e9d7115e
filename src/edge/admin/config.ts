/**
 * Live configuration over HTTP: what is in force and where each value came from, changes to the stored overlay, its
 * history, and the way back. A change is answered when it is durable and in force.
 */
import {
  type ConfigDifference,
  type ConfigIssue,
  type JsonObject,
  pathOfNames,
} from '../../core/config/index.ts';
import type { Gateway } from '../../runtime/contract.ts';
import { checkedBody } from './checked-body.ts';
import { type Problem, sendJson, sendProblem } from './reply.ts';
import type { Call, Route } from './route.ts';
import { wireConfig } from './views.ts';

/** What changes the configuration of a running gateway. Calls are carried out one after another. */
export interface ConfigControl {
  status(): ConfigStatus;
  /** Newest first. */
  history(): readonly ConfigVersion[];
  change(wish: ConfigWish): Promise<ConfigVerdict>;
  /** What `change` would answer; nothing is stored. */
  dryRun(patch: JsonObject): Promise<ConfigVerdict>;
  /** The overlay of that version, as a new version. */
  rollback(wish: RollbackWish): Promise<ConfigVerdict>;
}

export interface ConfigStatus {
  /** By path; what is absent is a default. */
  readonly origins: Readonly<Record<string, string>>;
  readonly version: number;
  /** False: the overlay is gone when the process ends. */
  readonly durable: boolean;
  readonly overlay: JsonObject;
  /** Values of the overlay for entries that nobody names any more. */
  readonly dormant: readonly string[];
  /** What differs from what is in force, and waits for a restart. */
  readonly needsRestart: readonly string[];
}

export interface ConfigVersion {
  readonly version: number;
  readonly at: number;
  readonly who: string;
  readonly why: string;
  readonly changed: readonly ConfigDifference[];
}

interface Authored {
  readonly why?: string | undefined;
  readonly who?: string | undefined;
  /** The version that the caller has seen; another one makes the change stale. */
  readonly expected?: number | undefined;
}

export interface ConfigWish extends Authored {
  readonly patch: JsonObject;
}

export interface RollbackWish extends Authored {
  readonly version: number;
}

export type ConfigVerdict =
  | {
      readonly kind: 'done';
      readonly version: number;
      readonly changed: readonly ConfigDifference[];
      readonly changedTotal: number;
      readonly needsRestart: readonly string[];
    }
  | { readonly kind: 'issues'; readonly issues: readonly ConfigIssue[] }
  | { readonly kind: 'stale'; readonly version: number }
  | { readonly kind: 'unknown-version'; readonly oldest: number };

/** Bodies, as they come. */
export interface ConfigChangeBody {
  readonly patch: JsonObject;
  readonly why: string;
  readonly who?: string | undefined;
  readonly version?: number | undefined;
}

export interface RollbackBody {
  readonly version: number;
  readonly why?: string | undefined;
  readonly who?: string | undefined;
}

/** By the last part of their path. Without a control the configuration is shown, and nothing changes it. */
export function configRoutes(
  gateway: Gateway,
  control: ConfigControl | undefined,
): ReadonlyMap<string, Route> {
  return new Map<string, Route>([
    [
      'config',
      {
        scope: 'admin',
        methods: {
          GET: (call) => showConfig(call, gateway, control),
          PUT: controlled(control, putConfig),
        },
      },
    ],
    ['config/history', { scope: 'admin', methods: { GET: controlled(control, showHistory) } }],
    ['config/rollback', { scope: 'admin', methods: { POST: controlled(control, rollBack) } }],
    ['config/dry-run', { scope: 'admin', methods: { POST: controlled(control, dryRun) } }],
  ]);
}

const FIXED: Problem = {
  status: 409,
  reason: 'config-fixed',
  detail: 'This gateway was started with a configuration that does not change',
};

function controlled(
  control: ConfigControl | undefined,
  handle: (call: Call, control: ConfigControl) => void | Promise<void>,
): (call: Call) => void | Promise<void> {
  return (call) => (control === undefined ? sendProblem(call.res, FIXED) : handle(call, control));
}

function showConfig({ res }: Call, gateway: Gateway, control: ConfigControl | undefined): void {
  const config = wireConfig(gateway.config);
  if (control === undefined) return sendJson(res, 200, { config, origins: {} });
  const status = control.status();
  sendJson(res, 200, { config, ...status }, { etag: etagOf(status.version) });
}

function showHistory({ res }: Call, control: ConfigControl): void {
  const { version, durable } = control.status();
  sendJson(res, 200, { versions: control.history(), version, durable });
}

async function putConfig(call: Call, control: ConfigControl): Promise<void> {
  const body = await checkedBody<ConfigChangeBody>(call, (schemas, value) =>
    schemas.checkConfigChange(value),
  );
  if (body === undefined) return;
  const { version, ...wish } = body;
  const header = ifMatch(call);
  sendVerdict(call, await control.change({ ...wish, expected: header ?? version }), header !== undefined);
}

async function dryRun(call: Call, control: ConfigControl): Promise<void> {
  const body = await checkedBody<Pick<ConfigChangeBody, 'patch'>>(call, (schemas, value) =>
    schemas.checkConfigDryRun(value),
  );
  if (body !== undefined) sendVerdict(call, await control.dryRun(body.patch), false);
}

async function rollBack(call: Call, control: ConfigControl): Promise<void> {
  const body = await checkedBody<RollbackBody>(call, (schemas, value) => schemas.checkConfigRollback(value));
  if (body === undefined) return;
  const header = ifMatch(call);
  sendVerdict(call, await control.rollback({ ...body, expected: header }), header !== undefined);
}

function etagOf(version: number): string {
  return `"${version}"`;
}

/** The version of `if-match`; -1 for what is none of ours, which never matches. */
function ifMatch({ req }: Call): number | undefined {
  const text = req.headers['if-match'];
  if (text === undefined || text.trim() === '*') return undefined;
  const match = /^\s*"?(\d{1,15})"?\s*$/.exec(text);
  return match === null ? -1 : Number(match[1]);
}

function sendVerdict({ res }: Call, verdict: ConfigVerdict, isConditional: boolean): void {
  if (verdict.kind === 'done') {
    const { kind: _kind, ...told } = verdict;
    return sendJson(res, 200, told, { etag: etagOf(verdict.version) });
  }
  sendProblem(res, problemOf(verdict, isConditional));
}

function problemOf(verdict: Exclude<ConfigVerdict, { kind: 'done' }>, isConditional: boolean): Problem {
  if (verdict.kind === 'stale') {
    const detail = `Somebody changed the configuration meanwhile: it is at version ${verdict.version}`;
    const headers = { etag: etagOf(verdict.version) };
    return { status: isConditional ? 412 : 409, reason: 'stale-version', detail, headers };
  }
  if (verdict.kind === 'unknown-version') {
    const detail = `There is no such version; kept are those from ${verdict.oldest} on, and 0 for none`;
    return { status: 404, reason: 'unknown-version', detail };
  }
  const issues = verdict.issues.map(({ path, rule, received }) => ({
    path: pathOfNames(path),
    rule,
    received,
  }));
  const detail = issues.map(({ path, rule }) => (path === '' ? rule : `${path}: ${rule}`)).join('; ');
  return { status: 422, reason: 'bad-request', detail, issues };
}
