/**
 * The rules that a configuration must keep beyond the type of each value: ranges, relations between bounds, unique
 * names, references that exist. Every broken rule is reported, not the first.
 */
import { checkDegrade } from './check-degrade.ts';
import { checkHeaders } from './check-headers.ts';
import { checkSeeing } from './check-seeing.ts';
import type { ConfigInput, ConfigIssue, GroupInput, NodeInput, Partially, TenantInput } from './input.ts';
import { pathText, receivedText } from './input.ts';
import { parseNodeUrl } from './node-url.ts';
import { SETTINGS, type Setting, type SettingPath } from './settings.ts';
import type { GatewayConfig, LimitsConfig } from './types.ts';

/** Most entries of a list: far above any fleet of one gateway, so that a runaway generator is noticed. */
export const CONFIG_LIST_MAX: Readonly<
  Record<'classes' | 'models' | 'tenants' | 'nodes' | 'groups', number>
> = Object.freeze({ classes: 16, models: 5_000, tenants: 20_000, nodes: 20_000, groups: 64 });

/** Shares of one group: far more than models or tenants that anybody wants to keep apart by hand. */
export const SHARES_MAX = 64;

const CLASS_NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
/** Metrics use this name for all tenants that are not configured. */
export const RESERVED_TENANT = 'other';
/** Model names contain slashes, colons and at signs in the wild; white space and control characters never. */
const MODEL_ID = /^[^\s\p{Cc}]{1,256}$/u;
const SHA256_HEX = /^[0-9a-f]{64}$/;
/** Devices of one node that can be named. */
const GPUS_MAX = 64;

type Path = readonly (string | number)[];

/** Collects broken rules; nothing is thrown. */
export interface Issues {
  readonly list: readonly ConfigIssue[];
  add(path: Path, rule: string, received?: unknown): void;
  /** An entry that names something of another section which is not there. */
  addReference(path: Path, refersTo: string, rule: string, received: unknown): void;
}

export function createIssues(): Issues {
  const list: ConfigIssue[] = [];
  return {
    list,
    add(path, rule, received) {
      list.push({ path, rule, received: receivedText(received) });
    },
    addReference(path, refersTo, rule, received) {
      list.push({ path, rule, received: receivedText(received), refersTo });
    },
  };
}

/** Checks what was given against the complete value that was built from it. */
export function checkConfig(input: ConfigInput, config: GatewayConfig, issues: Issues): void {
  checkRanges(input, issues);
  checkRelations(config, issues);
  checkClasses(input, config, issues);
  checkModels(input, issues);
  checkDegrade(
    input,
    config.scheduler.classes.map((one) => one.name),
    issues,
    (path, setting, value) => checkNumber(path, setting, value, issues),
  );
  checkTenants(input, config, issues);
  checkNodes(input, issues);
  checkGroups(input, issues);
  checkSeeing(input, issues);
  checkExposure(config, issues);
}

export function rangeRule(setting: Setting): string {
  const unit = setting.unit === 'count' ? '' : ` ${setting.unit}`;
  const kind = setting.integer ? 'a whole number' : 'a number';
  return `Expected ${kind} from ${setting.min} to ${setting.max}${unit}`;
}

function checkNumber(path: Path, settingPath: SettingPath, value: number | undefined, issues: Issues): void {
  if (value === undefined) return;
  const setting = SETTINGS[settingPath];
  const isRightKind = setting.integer ? Number.isInteger(value) : Number.isFinite(value);
  if (!isRightKind || value < setting.min || value > setting.max) issues.add(path, rangeRule(setting), value);
}

const SECTIONS = [
  'bounds',
  'admission',
  'placement',
  'health',
  'retry',
  'preemption',
  'degrade',
  'cache',
  'ladder',
  'timeouts',
  'idempotency',
  'journal',
  'signals',
  'server',
  'survival',
  'tracing',
  'rum',
] as const;

function checkRanges(input: ConfigInput, issues: Issues): void {
  checkNumber(['seed'], 'seed', input.seed, issues);
  for (const section of SECTIONS) {
    for (const [key, value] of Object.entries(input[section] ?? {})) {
      const settingPath = `${section}.${key}` as SettingPath;
      if (Object.hasOwn(SETTINGS, settingPath))
        checkNumber([section, key], settingPath, value as number, issues);
    }
  }
  const status = input.server?.overloadStatus;
  if (status !== undefined && status !== 429 && status !== 503) {
    issues.add(['server', 'overloadStatus'], 'Expected 429 or 503', status);
  }
  eachOf(input.classes, (entry, i) => {
    for (const key of ['weight', 'shareMin', 'firstByteMs', 'completionMs'] as const) {
      checkNumber(['classes', i, key], `classes[].${key}`, entry[key], issues);
    }
  });
  eachOf(input.tenants, (entry, i) =>
    checkNumber(['tenants', i, 'weight'], 'tenants[].weight', entry.weight, issues),
  );
  eachOf(input.models, (entry, i) =>
    checkNumber(['models', i, 'imageTokens'], 'models[].imageTokens', entry.imageTokens, issues),
  );
  for (const list of ['tenants', 'classes', 'models'] as const) {
    eachOf<{ readonly limits?: Partially<LimitsConfig> | undefined }>(input[list], (entry, i) =>
      checkLimits([list, i, 'limits'], entry.limits, issues),
    );
  }
  checkLimits(['tenantLimits'], input.tenantLimits, issues);
  eachOf(input.nodes, (entry, i) => {
    checkNumber(['nodes', i, 'slots'], 'nodes[].slots', entry.slots, issues);
    checkNumber(['nodes', i, 'prefixBlocks'], 'nodes[].prefixBlocks', entry.prefixBlocks, issues);
  });
}

/** A burst is the size of a bucket; without a rate there is none. */
const BURSTS = { requestsBurst: 'requestsPerMinute', tokensBurst: 'tokensPerMinute' } as const;

function checkLimits(path: Path, limits: Partially<LimitsConfig> | undefined, issues: Issues): void {
  if (limits === undefined) return;
  for (const [key, value] of Object.entries(limits)) {
    const setting = `tenants[].limits.${key}` as SettingPath;
    if (Object.hasOwn(SETTINGS, setting)) checkNumber([...path, key], setting, value, issues);
  }
  for (const [burst, rate] of Object.entries(BURSTS)) {
    const value = limits[burst as keyof typeof BURSTS];
    if (value !== undefined && limits[rate] === undefined)
      issues.add([...path, burst], `Expected ${rate} beside it: a burst is the size of that limit`, value);
  }
}

function eachOf<T>(
  list: readonly (T | undefined)[] | undefined,
  visit: (entry: T, index: number) => void,
): void {
  list?.forEach((entry, index) => {
    if (entry !== undefined) visit(entry, index);
  });
}

/** Pairs of settings where the first must not exceed the second. */
function checkRelations(config: GatewayConfig, issues: Issues): void {
  const { admission, placement, health, ladder, bounds } = config.scheduler;
  const { server } = config;
  const atMost = (path: Path, value: number, limit: number, limitPath: string): void => {
    if (value > limit) issues.add(path, `Expected at most ${limitPath}, which is ${limit}`, value);
  };
  atMost(
    ['admission', 'deadlineMsMin'],
    admission.deadlineMsMin,
    admission.deadlineMsMax,
    'admission.deadlineMsMax',
  );
  atMost(['admission', 'marginMin'], admission.marginMin, admission.marginMax, 'admission.marginMax');
  atMost(
    ['placement', 'cacheUseResume'],
    placement.cacheUseResume,
    placement.cacheUseMax,
    'placement.cacheUseMax',
  );
  atMost(['ladder', 'memoryUseResume'], ladder.memoryUseResume, ladder.memoryUseMax, 'ladder.memoryUseMax');
  atMost(['ladder', 'missRatioResume'], ladder.missRatioResume, ladder.missRatioMax, 'ladder.missRatioMax');
  atMost(['health', 'ejectMs'], health.ejectMs, health.ejectMsMax, 'health.ejectMsMax');
  atMost(['health', 'heartbeatMs'], health.heartbeatMs, health.suspectAfterMs, 'health.suspectAfterMs');
  atMost(['health', 'reconcileMs'], health.reconcileMs, health.suspectLeaseMs, 'health.suspectLeaseMs');
  atMost(
    ['server', 'spoolBytesMax'],
    server.spoolBytesMax,
    server.spoolBytesTotalMax,
    'server.spoolBytesTotalMax',
  );
  const { answerBytesMax, bytesTotalMax } = config.idempotency;
  atMost(['idempotency', 'answerBytesMax'], answerBytesMax, bytesTotalMax, 'idempotency.bytesTotalMax');
  const { journal } = config;
  atMost(['journal', 'segmentBytesMax'], journal.segmentBytesMax, journal.bytesMax, 'journal.bytesMax');
  atMost(['cache', 'entryBytesMax'], config.cache.entryBytesMax, config.cache.bytesMax, 'cache.bytesMax');
  atMost(['server', 'headersMs'], server.headersMs, server.requestMs, 'server.requestMs');
  atMost(['server', 'bodyBytesMax'], server.bodyBytesMax, bounds.bytesMax, 'bounds.bytesMax');
  if (server.adminPort !== undefined && server.adminPort !== 0 && server.adminPort === server.port) {
    issues.add(
      ['server', 'adminPort'],
      'Expected another port than server.port; leave it out to share that port',
      server.adminPort,
    );
  }
}

function checkLength(
  key: keyof typeof CONFIG_LIST_MAX,
  list: readonly unknown[] | undefined,
  issues: Issues,
): void {
  if (list !== undefined && list.length > CONFIG_LIST_MAX[key]) {
    issues.add([key], `Expected at most ${CONFIG_LIST_MAX[key]} entries`, list);
  }
}

/** Remembers where each name was seen first. */
function uniqueNames(issues: Issues): (path: Path, name: string, what: string) => void {
  const seen = new Map<string, Path>();
  return (path, name, what) => {
    const first = seen.get(name);
    if (first === undefined) seen.set(name, path);
    else issues.add(path, `Expected every ${what} once; ${pathText(first)} has the same`, name);
  };
}

function checkClasses(input: ConfigInput, config: GatewayConfig, issues: Issues): void {
  checkLength('classes', input.classes, issues);
  if (input.classes?.length === 0) issues.add(['classes'], 'Expected at least one class', input.classes);
  const unique = uniqueNames(issues);
  eachOf(input.classes, (entry, i) => {
    if (!CLASS_NAME.test(entry.name)) {
      issues.add(
        ['classes', i, 'name'],
        'Expected lower-case letters, digits, - and _, at most 32',
        entry.name,
      );
    }
    unique(['classes', i, 'name'], entry.name, 'class name');
  });
  const floors = config.scheduler.classes.reduce((sum, entry) => sum + entry.shareMin, 0);
  if (floors > 1 + 1e-9)
    issues.add(['classes'], 'Expected the shareMin of all classes to add up to at most 1', floors);
  const names = config.scheduler.classes.map((entry) => entry.name);
  if (input.defaultClass !== undefined && !names.includes(input.defaultClass)) {
    issues.addReference(
      ['defaultClass'],
      'classes',
      `Expected one of the classes: ${names.join(', ')}`,
      input.defaultClass,
    );
  } else if (
    input.classes !== undefined &&
    input.classes.length > 0 &&
    !names.includes(config.scheduler.defaultClass)
  ) {
    issues.addReference(
      ['defaultClass'],
      'classes',
      `Expected one of the classes: ${names.join(', ')}`,
      undefined,
    );
  }
}

function checkModels(input: ConfigInput, issues: Issues): void {
  checkLength('models', input.models, issues);
  const unique = uniqueNames(issues);
  eachOf(input.models, (entry, i) => {
    const path: Path = ['models', i, 'id'];
    if (!MODEL_ID.test(entry.id))
      issues.add(path, 'Expected 1 to 256 characters without white space', entry.id);
    unique(path, entry.id, 'model id and alias');
  });
  eachOf(input.models, (entry, i) => {
    entry.aliases?.forEach((alias, j) => {
      const path: Path = ['models', i, 'aliases', j];
      if (!MODEL_ID.test(alias)) issues.add(path, 'Expected 1 to 256 characters without white space', alias);
      unique(path, alias, 'model id and alias');
    });
  });
}

function checkTenants(input: ConfigInput, config: GatewayConfig, issues: Issues): void {
  checkLength('tenants', input.tenants, issues);
  const names = config.scheduler.classes.map((entry) => entry.name);
  const unique = uniqueNames(issues);
  const uniqueKey = uniqueNames(issues);
  const uniqueHash = uniqueNames(issues);
  eachOf(input.tenants, (entry, i) => {
    const path: Path = ['tenants', i, 'id'];
    if (!ID.test(entry.id)) issues.add(path, 'Expected letters, digits, . _ : and -, at most 128', entry.id);
    if (entry.id === RESERVED_TENANT)
      issues.add(path, 'Expected another id; metrics use this name for all the rest', entry.id);
    unique(path, entry.id, 'tenant id');
    if (entry.cachePool !== undefined && !ID.test(entry.cachePool)) {
      issues.add(
        ['tenants', i, 'cachePool'],
        'Expected letters, digits, . _ : and -, at most 128',
        entry.cachePool,
      );
    }
    checkTenantClasses(entry, i, names, issues);
    entry.keys?.forEach((key, j) => {
      const keyPath: Path = ['tenants', i, 'keys', j];
      uniqueKey([...keyPath, 'id'], key.id, 'key id');
      if (!SHA256_HEX.test(key.sha256)) {
        issues.add(
          [...keyPath, 'sha256'],
          'Expected the SHA-256 of the key: 64 lower-case hexadecimal digits',
        );
      } else uniqueHash([...keyPath, 'sha256'], key.sha256, 'key');
    });
  });
}

function checkTenantClasses(entry: TenantInput, i: number, names: readonly string[], issues: Issues): void {
  for (const key of ['classCeiling', 'classDefault'] as const) {
    const value = entry[key];
    if (value !== undefined && !names.includes(value)) {
      issues.addReference(
        ['tenants', i, key],
        'classes',
        `Expected one of the classes: ${names.join(', ')}`,
        value,
      );
    }
  }
  if (entry.classCeiling === undefined || entry.classDefault === undefined) return;
  const ceiling = names.indexOf(entry.classCeiling);
  const fallback = names.indexOf(entry.classDefault);
  if (ceiling >= 0 && fallback >= 0 && fallback < ceiling) {
    issues.add(
      ['tenants', i, 'classDefault'],
      `Expected no higher class than the ceiling ${entry.classCeiling}`,
      entry.classDefault,
    );
  }
}

function checkNodes(input: ConfigInput, issues: Issues): void {
  checkLength('nodes', input.nodes, issues);
  const unique = uniqueNames(issues);
  eachOf(input.nodes, (entry, i) => {
    const parsed = parseNodeUrl(entry.url);
    if (parsed.kind === 'refused') issues.add(['nodes', i, 'url'], parsed.rule, parsed.received);
    const id = entry.id ?? (parsed.kind === 'url' ? parsed.id : undefined);
    if (entry.id !== undefined && !ID.test(entry.id)) {
      issues.add(['nodes', i, 'id'], 'Expected letters, digits, . _ : and -, at most 128', entry.id);
    }
    if (id !== undefined) unique(['nodes', i, entry.id === undefined ? 'url' : 'id'], id, 'node id');
    checkNodeDetails(entry, i, issues);
  });
}

function checkNodeDetails(entry: NodeInput, i: number, issues: Issues): void {
  const unique = uniqueNames(issues);
  entry.models?.forEach((offer, j) => {
    const path: Path = ['nodes', i, 'models', j, 'model'];
    if (!MODEL_ID.test(offer.model))
      issues.add(path, 'Expected 1 to 256 characters without white space', offer.model);
    unique(path, offer.model, 'model of a node');
  });
  checkHeaders(entry.headers ?? {}, ['nodes', i, 'headers'], issues);
  checkTelemetry(entry, i, issues);
  const tls = entry.tls;
  if (tls !== undefined && (tls.cert === undefined) !== (tls.key === undefined)) {
    issues.add(['nodes', i, 'tls'], 'Expected both cert and key for mutual TLS, or neither');
  }
}

function checkGroups(input: ConfigInput, issues: Issues): void {
  checkLength('groups', input.groups, issues);
  const unique = uniqueNames(issues);
  eachOf(input.groups, (entry, i) => {
    const path: Path = ['groups', i];
    if (!ID.test(entry.name))
      issues.add([...path, 'name'], 'Expected letters, digits, . _ : and -, at most 128', entry.name);
    unique([...path, 'name'], entry.name, 'group name');
    const { ids = [], labels = {} } = entry.nodes;
    if (ids.length === 0 && Object.keys(labels).length === 0)
      issues.add([...path, 'nodes'], 'Expected ids or labels of the nodes', entry.nodes);
    checkShares(entry, i, input, issues);
    for (const kind of ['models', 'tenants'] as const) {
      entry.reservedFor?.[kind]?.forEach((name, j) =>
        checkHolder([...path, 'reservedFor', kind, j], kind, name, { input, issues }),
      );
    }
  });
}

function checkShares(group: GroupInput, i: number, input: ConfigInput, issues: Issues): void {
  const { shares = [] } = group;
  const path: Path = ['groups', i, 'shares'];
  if (shares.length > SHARES_MAX) issues.add(path, `Expected at most ${SHARES_MAX} entries`, shares);
  const unique = uniqueNames(issues);
  shares.forEach((share, j) => {
    const { model, tenant, min = 0, max = 1 } = share;
    checkNumber([...path, j, 'min'], 'groups[].shares[].min', share.min, issues);
    checkNumber([...path, j, 'max'], 'groups[].shares[].max', share.max, issues);
    if (min > max && min <= 1) issues.add([...path, j, 'min'], `Expected at most max, which is ${max}`, min);
    if ((model === undefined) === (tenant === undefined))
      return issues.add([...path, j], 'Expected either model or tenant', share);
    const kind = model === undefined ? 'tenants' : 'models';
    const name = model ?? tenant ?? '';
    unique([...path, j, kind === 'models' ? 'model' : 'tenant'], `${kind}: ${name}`, 'holder of a share');
    checkHolder([...path, j, kind === 'models' ? 'model' : 'tenant'], kind, name, { input, issues });
  });
  const kept = shares.reduce((sum, { min }) => sum + (min ?? 0), 0);
  if (kept > 1 + 1e-9) issues.add(path, 'Expected the min of all shares to add up to at most 1', kept);
}

/** Tenants must be configured where any is. Models may be the nodes' own, but never an alias: tasks carry the id. */
function checkHolder(
  path: Path,
  kind: 'models' | 'tenants',
  name: string,
  { input, issues }: { readonly input: ConfigInput; readonly issues: Issues },
): void {
  if (kind === 'tenants') {
    const known = (input.tenants ?? []).map((entry) => entry?.id);
    if (known.length > 0 && !known.includes(name))
      issues.addReference(path, 'tenants', 'Expected the id of a configured tenant', name);
    return;
  }
  const owner = input.models?.find((entry) => entry?.aliases?.includes(name) === true);
  if (owner !== undefined)
    issues.addReference(path, 'models', `Expected the id ${owner.id}, not its alias`, name);
}

function checkTelemetry({ telemetry }: NodeInput, i: number, issues: Issues): void {
  if (telemetry === undefined) return;
  const path: Path = ['nodes', i, 'telemetry'];
  for (const name of ['url', 'pressureUrl'] as const) {
    const parsed = telemetry[name] === undefined ? undefined : parseNodeUrl(telemetry[name]);
    if (parsed?.kind === 'refused') issues.add([...path, name], parsed.rule, parsed.received);
  }
  checkNumber([...path, 'reservedUse'], 'nodes[].telemetry.reservedUse', telemetry.reservedUse, issues);
  if ((telemetry.gpus?.length ?? 0) > GPUS_MAX)
    issues.add([...path, 'gpus'], `Expected at most ${GPUS_MAX} devices`, telemetry.gpus);
}

export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Without keys anybody who reaches the port is served, so it must not be reachable from outside. */
function checkExposure(config: GatewayConfig, issues: Issues): void {
  const { host } = config.server;
  if (host === '') issues.add(['server', 'host'], 'Expected a host name or address', host);
  else if (!isLoopbackHost(host) && !config.tenants.some((tenant) => tenant.keys.length > 0)) {
    const rule =
      'Without tenant keys the gateway listens on a loopback address only; create a key or use 127.0.0.1';
    issues.addReference(['server', 'host'], 'tenants', rule, host);
  }
}
