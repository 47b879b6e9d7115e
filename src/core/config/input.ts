/**
 * Configuration as people give it: any part may be absent. Adapters turn files and command lines into this shape
 * (secrets already read, paths already absolute); `resolve.ts` fills and checks it.
 */
import type { ModelOffer } from '../request/needs.ts';
import type {
  AdmissionConfig,
  BoundsConfig,
  CacheConfig,
  DefaultAnswers,
  DegradeConfig,
  GatesConfig,
  HealthConfig,
  IdempotencyConfig,
  JournalConfig,
  SignalsConfig,
  KeyConfig,
  LimitsConfig,
  LadderConfig,
  NodeProtocol,
  NodeTlsConfig,
  ModelVariant,
  PlacementConfig,
  QualityConfig,
  PreemptionConfig,
  RetryConfig,
  RumConfig,
  SchedulerConfig,
  Secret,
  ServerConfig,
  SurvivalConfig,
  TimeoutsConfig,
  TracingConfig,
  WorkProfile,
} from './types.ts';

/** Every field may be absent or undefined; what parsers give is not exact. */
export type Partially<T> = { readonly [K in keyof T]?: T[K] | undefined };

export interface ClassInput {
  readonly name: string;
  readonly weight?: number | undefined;
  readonly shareMin?: number | undefined;
  readonly firstByteMs?: number | undefined;
  readonly completionMs?: number | undefined;
  readonly limits?: Partially<LimitsConfig> | undefined;
}

export interface ModelInput {
  readonly id: string;
  readonly aliases?: readonly string[] | undefined;
  readonly profile?: WorkProfile | undefined;
  readonly limits?: Partially<LimitsConfig> | undefined;
  readonly imageTokens?: number | undefined;
  readonly variants?: readonly ModelVariant[] | undefined;
  readonly quality?: readonly QualityInput[] | undefined;
  readonly default?: Partially<DefaultAnswers> | undefined;
  readonly off?: boolean | undefined;
  readonly revision?: string | undefined;
  readonly optional?: boolean | undefined;
}

export interface QualityInput extends Partially<QualityConfig> {
  readonly name: string;
}

export interface TenantInput {
  readonly id: string;
  readonly weight?: number | undefined;
  readonly classCeiling?: string | undefined;
  readonly classDefault?: string | undefined;
  readonly nodeVisible?: boolean | undefined;
  readonly cachePool?: string | undefined;
  readonly limits?: Partially<LimitsConfig> | undefined;
  readonly keys?: readonly KeyConfig[] | undefined;
}

export interface ShareInput {
  readonly model?: string | undefined;
  readonly tenant?: string | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

export interface GroupInput {
  readonly name: string;
  readonly nodes: {
    readonly ids?: readonly string[] | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
  };
  readonly reservedFor?:
    | { readonly models?: readonly string[] | undefined; readonly tenants?: readonly string[] | undefined }
    | undefined;
  readonly shares?: readonly ShareInput[] | undefined;
}

export interface NodeInput {
  readonly id?: string | undefined;
  readonly url: string;
  readonly protocol?: NodeProtocol | undefined;
  readonly models?: readonly ModelOffer[] | undefined;
  readonly slots?: number | undefined;
  readonly prefixBlocks?: number | undefined;
  readonly hardware?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly key?: Secret | undefined;
  readonly tls?: NodeTlsConfig | undefined;
  readonly telemetry?: NodeTelemetryInput | undefined;
}

export interface NodeTelemetryInput {
  readonly url: string;
  readonly gpus?: readonly string[] | undefined;
  readonly pressureUrl?: string | undefined;
  readonly reservedUse?: number | undefined;
}

/** Lists may hold `undefined` where an adapter refused an entry: indexes then still match the file. */
export interface ConfigInput {
  readonly policy?: SchedulerConfig['policy'] | undefined;
  readonly seed?: number | undefined;
  readonly classes?: readonly (ClassInput | undefined)[] | undefined;
  readonly defaultClass?: string | undefined;
  readonly bounds?: Partially<BoundsConfig> | undefined;
  readonly admission?: Partially<AdmissionConfig> | undefined;
  readonly placement?: Partially<PlacementConfig> | undefined;
  readonly health?: Partially<HealthConfig> | undefined;
  readonly retry?: Partially<RetryConfig> | undefined;
  readonly preemption?: Partially<PreemptionConfig> | undefined;
  readonly timeouts?: Partially<TimeoutsConfig> | undefined;
  readonly gates?: Partially<GatesConfig> | undefined;
  readonly degrade?: Partially<DegradeConfig> | undefined;
  readonly cache?: Partially<CacheConfig> | undefined;
  readonly idempotency?: Partially<IdempotencyConfig> | undefined;
  readonly tenantLimits?: Partially<LimitsConfig> | undefined;
  readonly ladder?: Partially<LadderConfig> | undefined;
  readonly models?: readonly (ModelInput | undefined)[] | undefined;
  readonly groups?: readonly (GroupInput | undefined)[] | undefined;
  readonly tenants?: readonly (TenantInput | undefined)[] | undefined;
  readonly nodes?: readonly (NodeInput | undefined)[] | undefined;
  readonly server?: Partially<ServerConfig> | undefined;
  readonly survival?: Partially<SurvivalConfig> | undefined;
  readonly tracing?: Partially<TracingConfig> | undefined;
  readonly rum?: Partially<RumConfig> | undefined;
  readonly journal?: Partially<JournalConfig> | undefined;
  readonly signals?: Partially<SignalsConfig> | undefined;
  readonly state?: { readonly folder?: string | undefined } | undefined;
}

export interface ConfigIssue {
  /** Keys and indexes from the top of the configuration; empty for the whole. */
  readonly path: readonly (string | number)[];
  /** What is asked, as a sentence without a period. */
  readonly rule: string;
  /** The offending value as text, cut short; '' when there is none or it must not be shown. */
  readonly received: string;
  /** The section whose entries this one refers to, when the issue is a broken reference. */
  readonly refersTo?: string;
}

const RECEIVED_CHARS_MAX = 80;

/** A value for a message: short, on one line. */
export function receivedText(value: unknown): string {
  if (value === undefined) return '';
  const text = typeof value === 'string' ? JSON.stringify(value) : describe(value);
  return text.length > RECEIVED_CHARS_MAX ? `${text.slice(0, RECEIVED_CHARS_MAX - 1)}…` : text;
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value !== null && typeof value === 'object') return `a mapping of ${Object.keys(value).length}`;
  return String(value);
}

/** `nodes[2].url`, as people write it. */
export function pathText(path: readonly (string | number)[]): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? part : `.${part}`;
  }
  return text;
}
