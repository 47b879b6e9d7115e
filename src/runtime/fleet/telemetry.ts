/**
 * What a node's host and its engine said last, and how old it is. What is too old is unknown: a page that is gone must not
 * go on telling that all is well.
 */
import {
  type DurationMs,
  type DurationUs,
  type MonoUs,
  msToUs,
  type Ratio,
  US_PER_MS,
} from '../../base/units.ts';
import type { WallMs } from '../../base/units.ts';
import {
  type AcceleratorReading,
  type HostPattern,
  type HostPressure,
  pressureBetween,
  type PressureCounters,
  pressurePattern,
} from '../../core/health/index.ts';
import type { HostReading } from '../../ports/device-telemetry.ts';
import type { EngineAccount } from '../../ports/engine-driver.ts';
import type { NodeTelemetry } from '../contract.ts';

/** Three looks at the engine of an idle node, at the usual interval of probes; the host is looked at more often. */
export const STALE_AFTER_MS: DurationMs = 30_000;
/** Looks that may be missed where the configuration makes them rarer. */
const LOOKS_MISSED = 3;
/** Nodes on one host whose work is added up; more share a page by mistake. */
const SHARERS_MAX = 64;

interface Told<T> {
  readonly what: T;
  readonly at: MonoUs;
}

export interface TelemetryState {
  host: Told<readonly AcceleratorReading[]> | undefined;
  /** Sums at the last look, and what they grew by since the one before. */
  counters: Told<PressureCounters> | undefined;
  pressure: Told<HostPressure> | undefined;
  engine: Told<EngineAccount> | undefined;
  /** Over the prompts between the last two looks that saw any. */
  prefixHitRatio: Ratio | undefined;
  /** When tasks of ours came to the empty node, or the last one left. */
  steadySince: MonoUs;
}

export function createTelemetryState(): TelemetryState {
  return {
    host: undefined,
    counters: undefined,
    pressure: undefined,
    engine: undefined,
    prefixHitRatio: undefined,
    steadySince: 0,
  };
}

export function noteHost(
  state: TelemetryState,
  { accelerators, pressure: after }: HostReading,
  at: MonoUs,
): void {
  state.host = { what: accelerators, at };
  if (after === undefined) return;
  const before = state.counters;
  state.counters = { what: after, at };
  const what = before === undefined ? undefined : pressureBetween(before.what, after, at - before.at);
  if (what !== undefined) state.pressure = { what, at };
}

/** What the host lacked at the last look, if that was lately. */
export function lackOf({ pressure }: TelemetryState, now: MonoUs): HostPattern | undefined {
  if (pressure === undefined || now - pressure.at > msToUs(STALE_AFTER_MS)) return undefined;
  return pressurePattern(pressure.what);
}

/** Counters that fell belong to an engine that was started again. */
export function noteEngine(state: TelemetryState, account: EngineAccount, at: MonoUs): void {
  const { prefixHits: hits, prefixQueries: queries, prefixHitRatio } = account;
  const { prefixHits: hitsBefore, prefixQueries: queriesBefore } = state.engine?.what ?? {};
  if (prefixHitRatio !== undefined) state.prefixHitRatio = prefixHitRatio;
  else if (hits === undefined || queries === undefined || queries < (queriesBefore ?? 0))
    state.prefixHitRatio = undefined;
  else if (hitsBefore !== undefined && queriesBefore !== undefined && queries > queriesBefore)
    state.prefixHitRatio = Math.min(1, Math.max(0, (hits - hitsBefore) / (queries - queriesBefore)));
  state.engine = { what: account, at };
}

/** A node as far as telemetry is concerned. */
export interface ToldNode {
  readonly inflight: number;
  readonly telemetry: TelemetryState;
  readonly config: { readonly telemetry?: { readonly url: string; readonly gpus: readonly string[] } };
}

export interface TelemetryClocks {
  readonly now: MonoUs;
  readonly wallMs: WallMs;
  /** Between two looks at an engine that has nothing to do. */
  readonly intervalMs: DurationMs;
}

/** Undefined when neither has told anything yet. `sameHost`: the nodes that name the same page, this one included. */
export function telemetryOf(
  node: ToldNode,
  sameHost: readonly ToldNode[],
  clocks: TelemetryClocks,
): NodeTelemetry | undefined {
  const { host, pressure, engine, prefixHitRatio } = node.telemetry;
  if (host === undefined && engine === undefined) return undefined;
  const staleAfterMs = Math.max(STALE_AFTER_MS, LOOKS_MISSED * clocks.intervalMs);
  const age = (told: Told<unknown>): DurationUs => clocks.now - told.at;
  const dated = (told: Told<unknown>): { at: WallMs; isStale: boolean } => ({
    at: Math.round(clocks.wallMs - age(told) / US_PER_MS),
    isStale: age(told) > msToUs(staleAfterMs),
  });
  return {
    staleAfterMs,
    ...(host === undefined
      ? {}
      : {
          host: {
            ...dated(host),
            accelerators: host.what,
            ageUs: age(host),
            ...(pressure === undefined || dated(pressure).isStale ? {} : { pressure: pressure.what }),
          },
        }),
    ...(engine === undefined
      ? {}
      : {
          engine: {
            ...dated(engine),
            ...loadOf(engine.what),
            ...(prefixHitRatio === undefined ? {} : { prefixHitRatio }),
          },
        }),
    ...oursThere(node, sameHost, clocks.now),
  };
}

/** What the scheduler is told of an account. */
export function loadOf({
  running,
  waiting,
  cacheUse,
}: EngineAccount): Pick<EngineAccount, 'running' | 'waiting' | 'cacheUse'> {
  return {
    ...(running === undefined ? {} : { running }),
    ...(waiting === undefined ? {} : { waiting }),
    ...(cacheUse === undefined ? {} : { cacheUse }),
  };
}

/** Tasks of ours on the devices of this node, over all nodes that use one of them. */
function oursThere(node: ToldNode, sameHost: readonly ToldNode[], now: MonoUs): Pick<NodeTelemetry, 'ours'> {
  if (sameHost.length > SHARERS_MAX) return {};
  const there = sameHost.filter((other) => other === node || sharesDevice(node, other));
  const latest = Math.max(...there.map(({ telemetry }) => telemetry.steadySince));
  return {
    ours: {
      inflight: there.reduce((sum, other) => sum + other.inflight, 0),
      steadyUs: now - latest,
    },
  };
}

function sharesDevice(a: ToldNode, b: ToldNode): boolean {
  const mine = a.config.telemetry?.gpus ?? [];
  const theirs = b.config.telemetry?.gpus ?? [];
  return mine.length === 0 || theirs.length === 0 || mine.some((gpu) => theirs.includes(gpu));
}

/** Nodes by the page that tells of their host. */
export function byHost<T extends ToldNode>(nodes: Iterable<T>): ReadonlyMap<string, readonly T[]> {
  const hosts = new Map<string, T[]>();
  for (const node of nodes) {
    const url = node.config.telemetry?.url;
    if (url === undefined) continue;
    const known = hosts.get(url);
    if (known === undefined) hosts.set(url, [node]);
    else known.push(node);
  }
  return hosts;
}
