/**
 * The configuration of a running gateway: what file and command line say, with the stored overlay on top. Both may change
 * while it runs; a valid change is taken without loss, an invalid one leaves everything as it is and says every issue.
 *
 * A change of the overlay is checked, committed, taken, answered, in this order: whoever is told "done" finds it after
 * any crash. Changes wait for each other; what the file says may change between the check and the commit, and the newest
 * valid file wins.
 */
import {
  issueText,
  type LayOver,
  locatedInOverlay,
  type Overlaid,
  overlayOrigins,
  type OverlayState,
  type OverlayStore,
  type ReadConfig,
} from '../../adapters/config-file/index.ts';
import {
  configDifferences,
  type ConfigIssue,
  type GatewayConfig,
  isJsonObject,
  type JsonObject,
  NAMED_LISTS,
  patched,
  pathOfNames,
  versionsOf,
} from '../../core/config/index.ts';
import type { ConfigControl, ConfigVerdict } from '../../edge/admin/config.ts';
import { mergeConfig } from '../../runtime/config-change.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { RuntimeLog } from '../../runtime/log.ts';

export type GoodConfig = Extract<ReadConfig, { kind: 'config' }>;

export interface LiveConfigOptions {
  readonly gateway: Gateway;
  readonly log: RuntimeLog;
  /** Reads file and command line again. */
  read(): ReadConfig;
  readonly initial: GoodConfig;
  readonly overlays: OverlayStore;
  wallMs(): number;
}

export type Reloaded =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'changed'; readonly needsRestart: readonly string[] }
  | { readonly kind: 'refused'; readonly issues: readonly string[] };

export interface LiveConfig extends ConfigControl {
  /** Also for SIGHUP. */
  reload(): Reloaded;
  /** Reloads by itself when a file changes, from now on until `close`. */
  watch(): Promise<void>;
  close(): Promise<void>;
}

type Valid = Extract<Overlaid, { kind: 'config' }>;

export function createLiveConfig(options: LiveConfigOptions): LiveConfig {
  const { gateway, log, overlays } = options;
  let base = options.initial;
  let current: Valid = firstOf(base, overlays.state.overlay);
  let turn: Promise<unknown> = Promise.resolve();
  let watcher: { set(files: readonly string[]): void; close(): Promise<void> } | undefined;

  function take(next: Valid): readonly string[] {
    current = next;
    return gateway.reconfigure(next.config).needsRestart;
  }

  function reload(): Reloaded {
    const read = options.read();
    watcher?.set(read.files);
    const { overlay, version } = overlays.state;
    const laid = read.kind === 'config' ? { read, over: read.layOver(overlay) } : undefined;
    if (laid === undefined || laid.over.kind === 'issues') {
      const found = read.kind === 'issues' ? read.issues : [];
      const own = laid?.over.kind === 'issues' ? locatedInOverlay(laid.over.issues, version) : [];
      const issues = [...found, ...own].map(issueText);
      log.error({ issues }, 'The new configuration is invalid; the running one stays in force');
      return { kind: 'refused', issues };
    }
    const { over } = laid;
    base = laid.read;
    const isSame = JSON.stringify(over.config) === JSON.stringify(current.config);
    if (isSame) return { kind: 'unchanged' };
    const needsRestart = take(over);
    if (needsRestart.length > 0)
      log.warn({ needsRestart }, 'Configuration reloaded; these values wait for a restart');
    else log.info({}, 'Configuration reloaded');
    return { kind: 'changed', needsRestart };
  }

  function verdictOn(version: number, next: GatewayConfig): Extract<ConfigVerdict, { kind: 'done' }> {
    const { changed, total } = configDifferences(current.config, next);
    const waiting = mergeConfig(gateway.config, next).needsRestart;
    const needsRestart = waiting.filter((path) =>
      changed.some((one) => one.path === path || one.path.startsWith(`${path}.`)),
    );
    return { kind: 'done', version, changed, changedTotal: total, needsRestart };
  }

  /** Stores the overlay as a new version and takes it. An overlay that says nothing new is no version. */
  async function commit(overlay: JsonObject, next: Valid, author: Author): Promise<ConfigVerdict> {
    const before = overlays.state;
    const verdict = verdictOn(before.version + 1, next.config);
    if (JSON.stringify(overlay) === JSON.stringify(before.overlay))
      return { ...verdict, version: before.version };
    const checkedOn = base;
    await overlays.commit(nextState(before, { overlay, changed: verdict.changed, ...author }));
    const fresh = base === checkedOn ? next : base.layOver(overlay);
    take(fresh.kind === 'config' ? fresh : next);
    const { version, needsRestart } = verdict;
    const paths = verdict.changed.map(({ path }) => path);
    log.info(
      { version, ...author, paths, needsRestart },
      'The configuration was changed over the admin plane',
    );
    return verdict;
  }

  /** One change after another; a failed one does not hold up the next. */
  function inTurn(work: () => Promise<ConfigVerdict>): Promise<ConfigVerdict> {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  }

  const author = (why: string, who: string | undefined): Author => ({
    why,
    who: who ?? 'admin token',
    at: Math.round(options.wallMs()),
  });

  return {
    reload,
    status: () => ({
      origins: overlayOrigins(base.origins, overlays.state),
      version: overlays.state.version,
      durable: overlays.durable,
      overlay: overlays.state.overlay,
      dormant: current.dormant.map(pathOfNames),
      needsRestart: mergeConfig(gateway.config, current.config).needsRestart,
    }),
    history: () => overlays.state.history.map(({ overlay: _overlay, ...version }) => version).toReversed(),
    change: ({ patch, why = '', who, expected }) =>
      inTurn(async () => {
        const { version, overlay } = overlays.state;
        if (expected !== undefined && expected !== version) return { kind: 'stale', version };
        const checked = await checkPatch(overlay, patch, base.layOver);
        return checked.kind === 'issues' ? checked : commit(checked.overlay, checked.next, author(why, who));
      }),
    async dryRun(patch) {
      const { version, overlay } = overlays.state;
      const checked = await checkPatch(overlay, patch, base.layOver);
      return checked.kind === 'issues' ? checked : verdictOn(version, checked.next.config);
    },
    rollback: ({ version: wanted, why, who, expected }) =>
      inTurn(async () => {
        const { version, history } = overlays.state;
        if (expected !== undefined && expected !== version) return { kind: 'stale', version };
        const found = wanted === 0 ? {} : history.find((one) => one.version === wanted)?.overlay;
        if (found === undefined) return { kind: 'unknown-version', oldest: history[0]?.version ?? 0 };
        const checked = await check({ overlay: found, shape: [], patch: {} }, base.layOver);
        if (checked.kind === 'issues') return checked;
        return commit(found, checked.next, author(why ?? `Back to version ${wanted}`, who));
      }),
    async watch() {
      const { watchFiles } = await import('../../adapters/config-file/watch.ts');
      watcher = watchFiles(base.files, reload);
    },
    async close() {
      await turn;
      await watcher?.close();
    },
  };
}

interface Author {
  readonly who: string;
  readonly why: string;
  readonly at: number;
}

/** It was laid over once before the start, so it fits; a file that changed since is met by the watcher. */
function firstOf(base: GoodConfig, overlay: JsonObject): Valid {
  const over = base.layOver(overlay);
  return over.kind === 'config' ? over : { kind: 'config', config: base.config, dormant: [] };
}

function nextState(
  before: OverlayState,
  { overlay, ...row }: Author & Pick<OverlayState['history'][number], 'overlay' | 'changed'>,
): OverlayState {
  const version = before.version + 1;
  return {
    version,
    overlay,
    setIn: versionsOf(overlay, before, version),
    history: [...before.history, { version, ...row, overlay }],
  };
}

type CheckedPatch =
  | { readonly kind: 'good'; readonly overlay: JsonObject; readonly next: Valid }
  | { readonly kind: 'issues'; readonly issues: readonly ConfigIssue[] };

interface Candidate {
  readonly overlay: JsonObject;
  /** What the patch itself gets wrong, and the names that it may not invent. */
  readonly shape: readonly ConfigIssue[];
  readonly patch: JsonObject;
}

/** Every issue at once: what breaks its shape is left out, and the rest is still checked. */
async function check({ overlay, shape, patch }: Candidate, layOver: LayOver): Promise<CheckedPatch> {
  const { overlayIssues } = await import('../../adapters/config-file/overlay-schema.ts');
  const broken = [...shape, ...overlayIssues(overlay)];
  const next = layOver(broken.reduce((rest, { path }) => withoutPath(rest, path), overlay));
  const issues = [...broken, ...(next.kind === 'issues' ? next.issues : unknownEntries(next, patch))];
  return issues.length > 0 || next.kind === 'issues'
    ? { kind: 'issues', issues }
    : { kind: 'good', overlay, next };
}

function checkPatch(before: JsonObject, patch: JsonObject, layOver: LayOver): Promise<CheckedPatch> {
  return check({ overlay: patched(before, patch), shape: shapeIssues(before, patch), patch }, layOver);
}

/** A mapping by name would quietly stand in for a whole list. */
function shapeIssues(before: JsonObject, patch: JsonObject): readonly ConfigIssue[] {
  return Object.keys(NAMED_LISTS)
    .filter((list) => Array.isArray(before[list]) && isJsonObject(patch[list]))
    .map((list) => ({
      path: [list],
      rule: 'Expected the whole list, or null first: the overlay holds this list as a whole',
      received: '',
    }));
}

function withoutPath(overlay: JsonObject, path: ConfigIssue['path']): JsonObject {
  const index = path.findIndex((part) => typeof part === 'number');
  const names = index < 0 ? path : path.slice(0, index);
  if (names.length === 0) return {};
  return patched(
    overlay,
    names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), null) as JsonObject,
  );
}

/** A name that nobody knows is a typing error while it is written, and only later something that went away. */
function unknownEntries({ dormant }: Valid, patch: JsonObject): readonly ConfigIssue[] {
  return dormant
    .filter(([list = '', name = '']) => Object.hasOwn(Object(patch[list]), name))
    .map((path) => ({
      path,
      rule: `Expected an entry of ${path[0]} that there is; by name, entries are changed and not added`,
      received: '',
    }));
}
