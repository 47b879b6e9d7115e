/**
 * Partial configuration in, complete and frozen configuration out, or every issue at once. Pure: files, environment
 * and the memory limit are read by the caller.
 */
import type { Bytes } from '../../base/units.ts';
import { checkConfig, createIssues } from './check.ts';
import {
  DEFAULT_ADMISSION,
  DEFAULT_CACHE,
  DEFAULT_CLASS,
  DEFAULT_CLASSES,
  DEFAULT_GATES,
  DEFAULT_HEALTH,
  DEFAULT_LADDER,
  DEFAULT_IDEMPOTENCY,
  DEFAULT_JOURNAL,
  DEFAULT_SIGNALS,
  DEFAULT_PLACEMENT,
  DEFAULT_PROFILE,
  DEFAULT_PREEMPTION,
  DEFAULT_RETRY,
  DEFAULT_RUM,
  DEFAULT_SERVER,
  DEFAULT_STATE,
  DEFAULT_SURVIVAL,
  DEFAULT_TIMEOUTS,
  DEFAULT_TRACING,
  defaultBounds,
  defaultDegrade,
} from './defaults.ts';
import type {
  ClassInput,
  ConfigInput,
  ConfigIssue,
  GroupInput,
  ModelInput,
  NodeInput,
  NodeTelemetryInput,
  Partially,
  TenantInput,
} from './input.ts';
import { parseNodeUrl } from './node-url.ts';
import { defaultOf } from './settings.ts';
import type {
  ClassConfig,
  GatewayConfig,
  LimitsConfig,
  GroupConfig,
  ModelConfig,
  NodeConfig,
  NodeTelemetryConfig,
  SchedulerConfig,
  ServerConfig,
  TenantConfig,
  TracingConfig,
} from './types.ts';

export interface ResolveOptions {
  /** Memory that the process may use; 0 or absent when unlimited. Shrinks the default bounds. */
  readonly memoryLimitBytes?: Bytes;
}

export type ResolvedConfig =
  | { readonly kind: 'config'; readonly config: GatewayConfig }
  | { readonly kind: 'issues'; readonly issues: readonly ConfigIssue[] };

export function resolveConfig(input: ConfigInput, options: ResolveOptions = {}): ResolvedConfig {
  const config = build(input, options.memoryLimitBytes ?? 0);
  const issues = createIssues();
  checkConfig(input, config, issues);
  if (issues.list.length > 0) return { kind: 'issues', issues: issues.list };
  return { kind: 'config', config: freezeDeep(config) };
}

function build(input: ConfigInput, memoryLimitBytes: Bytes): GatewayConfig {
  const scheduler = buildScheduler(input, memoryLimitBytes);
  return {
    scheduler,
    server: buildServer(input, scheduler.bounds.bytesMax),
    cache: fill(DEFAULT_CACHE, input.cache),
    idempotency: fill(DEFAULT_IDEMPOTENCY, input.idempotency),
    survival: fill(DEFAULT_SURVIVAL, input.survival),
    tracing: buildTracing(input.tracing),
    rum: fill(DEFAULT_RUM, input.rum),
    state: fill(DEFAULT_STATE, input.state),
    journal: fill(DEFAULT_JOURNAL, input.journal),
    signals: fill(DEFAULT_SIGNALS, input.signals),
    tenants: present(input.tenants).map((entry) => buildTenant(entry, scheduler)),
    nodes: present(input.nodes).map(buildNode),
  };
}

function buildScheduler(input: ConfigInput, memoryLimitBytes: Bytes): SchedulerConfig {
  const classes = input.classes === undefined ? DEFAULT_CLASSES : present(input.classes).map(buildClass);
  return {
    policy: input.policy ?? 'spillway',
    seed: input.seed ?? defaultOf('seed'),
    classes,
    defaultClass: input.defaultClass ?? fallbackClass(classes),
    bounds: fill(defaultBounds(memoryLimitBytes), input.bounds),
    admission: fill(DEFAULT_ADMISSION, input.admission),
    placement: fill(DEFAULT_PLACEMENT, input.placement),
    health: fill(DEFAULT_HEALTH, input.health),
    retry: fill(DEFAULT_RETRY, input.retry),
    preemption: fill(DEFAULT_PREEMPTION, input.preemption),
    timeouts: fill(DEFAULT_TIMEOUTS, input.timeouts),
    gates: fill(DEFAULT_GATES, input.gates),
    degrade: fill(defaultDegrade(classes), input.degrade),
    ladder: fill(DEFAULT_LADDER, input.ladder),
    models: present(input.models).map(buildModel),
    groups: present(input.groups).map(buildGroup),
    tenantWeights: present(input.tenants).map((entry) => ({
      id: entry.id,
      weight: entry.weight ?? defaultOf('tenants[].weight'),
    })),
    ...limitsOf('tenantLimits', input.tenantLimits),
    tenantLimitsOwn: present(input.tenants).flatMap(({ id, limits }) =>
      limits === undefined ? [] : [{ id, limits: fill(NO_LIMITS, limits) }],
    ),
  };
}

/** `normal` where it exists; else the only class; else none, and then the file must name one. */
function fallbackClass(classes: readonly ClassConfig[]): string {
  if (classes.some((entry) => entry.name === DEFAULT_CLASS)) return DEFAULT_CLASS;
  return classes.length === 1 ? (classes[0]?.name ?? '') : '';
}

function buildClass(entry: ClassInput): ClassConfig {
  const known = DEFAULT_CLASSES.find((candidate) => candidate.name === entry.name);
  return {
    name: entry.name,
    weight: entry.weight ?? known?.weight ?? defaultOf('classes[].weight'),
    shareMin: entry.shareMin ?? known?.shareMin ?? defaultOf('classes[].shareMin'),
    firstByteMs: entry.firstByteMs ?? known?.firstByteMs ?? defaultOf('classes[].firstByteMs'),
    completionMs: entry.completionMs ?? known?.completionMs ?? defaultOf('classes[].completionMs'),
    ...limitsOf('limits', entry.limits),
  };
}

function buildModel(entry: ModelInput): ModelConfig {
  const { variants, quality, off, revision, imageTokens } = entry;
  return {
    id: entry.id,
    aliases: entry.aliases ?? [],
    profile: entry.profile ?? DEFAULT_PROFILE,
    ...limitsOf('limits', entry.limits),
    ...(imageTokens === undefined ? {} : { imageTokens }),
    ...(variants === undefined ? {} : { variants }),
    ...(quality === undefined ? {} : { quality: quality.map((one) => fill({ name: one.name }, one)) }),
    ...(entry.default === undefined ? {} : { default: fill({}, entry.default) }),
    ...(off === undefined ? {} : { off }),
    ...(revision === undefined ? {} : { revision }),
    ...(entry.optional === true ? { optional: true } : {}),
  };
}

const NO_LIMITS: LimitsConfig = Object.freeze({});

/** The field of that name where limits are given, even empty ones: they say that there are none. */
function limitsOf<Name extends string>(
  name: Name,
  limits: Partially<LimitsConfig> | undefined,
): { readonly [K in Name]?: LimitsConfig } {
  if (limits === undefined) return {};
  return { [name]: fill(NO_LIMITS, limits) } as { readonly [K in Name]?: LimitsConfig };
}

function buildGroup(entry: GroupInput): GroupConfig {
  const { nodes, reservedFor, shares } = entry;
  return {
    name: entry.name,
    nodes: { ids: nodes.ids ?? [], labels: nodes.labels ?? {} },
    reservedFor: { models: reservedFor?.models ?? [], tenants: reservedFor?.tenants ?? [] },
    shares: (shares ?? []).map(({ model, tenant, min, max }) => ({
      holder: model === undefined ? 'tenant' : 'model',
      name: model ?? tenant ?? '',
      min: min ?? defaultOf('groups[].shares[].min'),
      max: max ?? defaultOf('groups[].shares[].max'),
    })),
  };
}

/** The default class of a tenant is the gateway's, lowered to the tenant's ceiling. */
function buildTenant(entry: TenantInput, scheduler: SchedulerConfig): TenantConfig {
  const names = scheduler.classes.map((candidate) => candidate.name);
  const ceiling = entry.classCeiling ?? names[0] ?? '';
  const classDefault =
    names.indexOf(scheduler.defaultClass) < names.indexOf(ceiling) ? ceiling : scheduler.defaultClass;
  return {
    id: entry.id,
    weight: entry.weight ?? defaultOf('tenants[].weight'),
    classCeiling: ceiling,
    classDefault: entry.classDefault ?? classDefault,
    nodeVisible: entry.nodeVisible ?? true,
    ...limitsOf('limits', entry.limits),
    keys: entry.keys ?? [],
    ...(entry.cachePool === undefined ? {} : { cachePool: entry.cachePool }),
  };
}

function buildNode(entry: NodeInput): NodeConfig {
  const parsed = parseNodeUrl(entry.url);
  const address = parsed.kind === 'url' ? parsed : { id: '', url: entry.url };
  return {
    id: entry.id ?? address.id,
    url: address.url,
    protocol: entry.protocol ?? 'openai',
    models: entry.models ?? [],
    hardware: entry.hardware ?? '',
    labels: entry.labels ?? {},
    headers: entry.headers ?? {},
    ...(entry.slots === undefined ? {} : { slots: entry.slots }),
    ...(entry.prefixBlocks === undefined ? {} : { prefixBlocks: entry.prefixBlocks }),
    ...(entry.key === undefined ? {} : { key: entry.key }),
    ...(entry.tls === undefined ? {} : { tls: entry.tls }),
    ...(entry.telemetry === undefined ? {} : { telemetry: buildTelemetry(entry.telemetry) }),
  };
}

/** Exporters serve their page at `/metrics`; a URL without a path means that. */
function buildTelemetry({ url, gpus, pressureUrl, reservedUse }: NodeTelemetryInput): NodeTelemetryConfig {
  return {
    url: pageOf(url),
    gpus: gpus ?? [],
    ...(pressureUrl === undefined ? {} : { pressureUrl: pageOf(pressureUrl) }),
    ...(reservedUse === undefined ? {} : { reservedUse }),
  };
}

function pageOf(url: string): string {
  const hasPath = /^https?:\/\/[^/]+\/./.test(url);
  return hasPath ? url : `${url.replace(/\/$/, '')}/metrics`;
}

/** Without a path the endpoint is a collector, which takes spans at `/v1/traces`. */
function buildTracing(given: ConfigInput['tracing']): TracingConfig {
  const tracing = fill(DEFAULT_TRACING, given);
  const isBare = /^https?:\/\/[^/]+\/?$/.test(tracing.endpoint);
  return isBare ? { ...tracing, endpoint: `${tracing.endpoint.replace(/\/$/, '')}/v1/traces` } : tracing;
}

/** The default bound on a body follows the bound on all bodies where memory is small. */
function buildServer(input: ConfigInput, bytesMax: Bytes): ServerConfig {
  const server = fill(DEFAULT_SERVER, input.server);
  if (input.server?.bodyBytesMax !== undefined) return server;
  return { ...server, bodyBytesMax: Math.min(server.bodyBytesMax, bytesMax) };
}

function fill<T extends object>(defaults: T, given: Partially<T> | undefined): T {
  const isGiven = (entry: [string, unknown]): boolean => entry[1] !== undefined;
  return { ...defaults, ...Object.fromEntries(Object.entries(given ?? {}).filter(isGiven)) };
}

function present<T>(list: readonly (T | undefined)[] | undefined): T[] {
  return (list ?? []).filter((entry) => entry !== undefined);
}

function freezeDeep<T>(value: T): T {
  if (value === null || typeof value !== 'object' || Object.isFrozen(value)) return value;
  for (const child of Object.values(value)) freezeDeep(child);
  return Object.freeze(value);
}
