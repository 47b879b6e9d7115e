/** Bodies of the admin plane. Loaded at the first request that has one, so that a start does not wait for it. */
import { z } from 'zod';
import {
  depthOf,
  type NodeConfig,
  PATCH_DEPTH_MAX,
  pathText,
  resolveConfig,
} from '../../core/config/index.ts';
import type { ConfigChangeBody, RollbackBody } from './config.ts';
import { type LadderBody, OVERRIDE_SECONDS_MAX } from './ladder.ts';
import type { HeartbeatChange } from '../../runtime/contract.ts';
import type { Problem } from './reply.ts';

const offer = z.strictObject({
  model: z.string(),
  upstreamModel: z.string().optional(),
  contextTokensMax: z.int().positive().optional(),
  capabilities: z.array(z.enum(['vision', 'tools', 'json-schema', 'audio'])).optional(),
  loras: z.array(z.string()).max(1_000).optional(),
  pixelsMax: z.int().positive().optional(),
  embeddingSize: z.int().positive().optional(),
});

const registration = z.strictObject({
  id: z.string().optional(),
  url: z.string(),
  protocol: z.enum(['openai', 'vllm', 'llama.cpp']).optional(),
  models: z
    .array(z.union([z.string(), offer]))
    .max(1_000)
    .optional(),
  slots: z.int().optional(),
  hardware: z.string().max(64).optional(),
  labels: z
    .record(z.string().max(64), z.string().max(256))
    .refine((labels) => Object.keys(labels).length <= 32, 'Expected at most 32 labels')
    .optional(),
});

const nodePatch = z
  .strictObject({ cordoned: z.boolean().optional(), draining: z.boolean().optional() })
  .refine(
    (patch) => patch.cordoned !== undefined || patch.draining !== undefined,
    'Expected cordoned or draining',
  );

const ladder = z
  .strictObject({
    /** Null gives it back to the evidence. */
    stage: z.union([z.literal(0), z.literal(1), z.literal(2), z.literal(3), z.null()]),
    seconds: z.int().min(1).max(OVERRIDE_SECONDS_MAX).optional(),
    why: z.string().min(1).max(200).optional(),
    who: z.string().min(1).max(64).optional(),
  })
  .refine((body) => body.stage === null || body.seconds !== undefined, {
    path: ['seconds'],
    message: `Expected how many seconds it holds, from 1 to ${OVERRIDE_SECONDS_MAX}`,
  })
  .refine((body) => body.stage === null || body.why !== undefined, {
    path: ['why'],
    message: 'Expected why, in 1 to 200 characters',
  });

const who = z.string().min(1).max(64).optional();
const why = z.string().min(1).max(200);
const version = z.int().min(0);
const patch = z
  .record(z.string(), z.unknown())
  .refine(
    (value) => depthOf(value) <= PATCH_DEPTH_MAX,
    `Expected a patch that nests at most ${PATCH_DEPTH_MAX} deep`,
  );
const configChange = z.strictObject({ patch, why, who, version: version.optional() });
const configDryRun = configChange.partial({ why: true });
const configRollback = z.strictObject({ version, why: why.optional(), who });

const ratio = z.number().min(0).max(1).optional();
const heartbeat = z.strictObject({
  slots: z.int().min(1).max(100_000).optional(),
  memoryUse: ratio,
  reservedUse: ratio,
});

export type Checked<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'problem'; readonly problem: Problem };

export interface NodePatch {
  readonly cordoned?: boolean | undefined;
  readonly draining?: boolean | undefined;
}

export function checkRegistration(body: unknown): Checked<NodeConfig> {
  const parsed = registration.safeParse(body);
  if (!parsed.success) return invalid(parsed.error.issues);
  const { models, ...rest } = parsed.data;
  const offers = models?.map((entry) =>
    typeof entry === 'string' ? { model: entry } : withoutUndefined(entry),
  );
  const resolved = resolveConfig({ nodes: [{ ...rest, models: offers }] });
  if (resolved.kind === 'issues') {
    return invalid(resolved.issues.map(({ path, rule }) => ({ path: path.slice(2), message: rule })));
  }
  return { kind: 'value', value: resolved.config.nodes[0] as NodeConfig };
}

/** What the parser leaves out may be present as undefined; exact optional fields do not allow that. */
function withoutUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}

export function checkNodePatch(body: unknown): Checked<NodePatch> {
  const parsed = nodePatch.safeParse(body);
  return parsed.success ? { kind: 'value', value: parsed.data } : invalid(parsed.error.issues);
}

export function checkLadder(body: unknown): Checked<LadderBody> {
  const parsed = ladder.safeParse(body);
  return parsed.success ? { kind: 'value', value: parsed.data } : invalid(parsed.error.issues);
}

export function checkConfigChange(body: unknown): Checked<ConfigChangeBody> {
  const parsed = configChange.safeParse(body);
  return parsed.success ? { kind: 'value', value: parsed.data } : invalid(parsed.error.issues);
}

export function checkConfigDryRun(body: unknown): Checked<Pick<ConfigChangeBody, 'patch'>> {
  const parsed = configDryRun.safeParse(body);
  return parsed.success ? { kind: 'value', value: parsed.data } : invalid(parsed.error.issues);
}

export function checkConfigRollback(body: unknown): Checked<RollbackBody> {
  const parsed = configRollback.safeParse(body);
  return parsed.success ? { kind: 'value', value: parsed.data } : invalid(parsed.error.issues);
}

export function checkHeartbeat(body: unknown): Checked<HeartbeatChange> {
  const parsed = heartbeat.safeParse(body);
  if (!parsed.success) return invalid(parsed.error.issues);
  return { kind: 'value', value: withoutUndefined(parsed.data) };
}

function invalid(issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]): {
  readonly kind: 'problem';
  readonly problem: Problem;
} {
  const rows = issues.map(({ path, message }) => ({
    path: pathText(path.map((part) => (typeof part === 'number' ? part : String(part)))),
    rule: message,
  }));
  const detail = rows.map((row) => (row.path === '' ? row.rule : `${row.path}: ${row.rule}`)).join('; ');
  return { kind: 'problem', problem: { status: 422, reason: 'bad-request', detail, issues: rows } };
}
