/** What host and engine of a node say of themselves, on the wire: unknown and stale are null, never zero. */
import type { WallMs } from '../../base/units.ts';
import {
  type AcceleratorReading,
  type HostFinding,
  hostFinding,
  type HostPressure,
} from '../../core/health/index.ts';
import type { NodeRow, NodeTelemetry } from '../../runtime/contract.ts';

type Known<T> = { readonly [K in keyof T]-?: Exclude<T[K], undefined> | null };

interface Dated {
  /** Milliseconds since 1970. */
  readonly at: WallMs;
  /** Older than `staleAfterMs`: then nothing else is told. */
  readonly stale: boolean;
}

export interface WireTelemetry {
  /** Of the newer of the two. */
  readonly at: WallMs;
  readonly staleAfterMs: number;
  readonly host:
    | (Dated & {
        readonly accelerators: readonly Known<AcceleratorReading>[];
        /** What the host waits for; null where it does not tell. */
        readonly pressure: Known<HostPressure> | null;
      })
    | null;
  readonly engine:
    | (Dated &
        Known<
          Pick<NonNullable<NodeTelemetry['engine']>, 'running' | 'waiting' | 'cacheUse' | 'prefixHitRatio'>
        >)
    | null;
  /** Both held against our own count; null where too little is known. */
  readonly finding: HostFinding | null;
}

export function wireTelemetry({ telemetry, inflight }: NodeRow): WireTelemetry | null {
  if (telemetry === undefined) return null;
  const { host, engine, staleAfterMs } = telemetry;
  return {
    at: Math.max(host?.at ?? 0, engine?.at ?? 0),
    staleAfterMs,
    host:
      host === undefined
        ? null
        : {
            at: host.at,
            stale: host.isStale,
            accelerators: host.isStale ? [] : host.accelerators.map(wireAccelerator),
            pressure: host.pressure === undefined ? null : wirePressure(host.pressure),
          },
    engine: engine === undefined ? null : wireEngine(engine),
    finding: findingOf(telemetry, inflight) ?? null,
  };
}

function wireAccelerator(one: AcceleratorReading): Known<AcceleratorReading> {
  return {
    id: one.id,
    busy: one.busy ?? null,
    engineActive: one.engineActive ?? null,
    memoryActive: one.memoryActive ?? null,
    memoryUsedBytes: one.memoryUsedBytes ?? null,
    memoryFreeBytes: one.memoryFreeBytes ?? null,
    temperatureC: one.temperatureC ?? null,
    powerW: one.powerW ?? null,
    xid: one.xid ?? null,
    pcieReplays: one.pcieReplays ?? null,
  };
}

function wirePressure(one: HostPressure): Known<HostPressure> {
  return {
    cpuWaiting: one.cpuWaiting ?? null,
    memoryStalled: one.memoryStalled ?? null,
    ioStalled: one.ioStalled ?? null,
    runQueueUs: one.runQueueUs ?? null,
    longRunQueue: one.longRunQueue ?? null,
  };
}

function wireEngine(engine: NonNullable<NodeTelemetry['engine']>): NonNullable<WireTelemetry['engine']> {
  const { at, isStale, ...told } = engine;
  const { running, waiting, cacheUse, prefixHitRatio }: typeof told = isStale ? {} : told;
  return {
    at,
    stale: isStale,
    running: running ?? null,
    waiting: waiting ?? null,
    cacheUse: cacheUse ?? null,
    prefixHitRatio: prefixHitRatio ?? null,
  };
}

function findingOf({ host, engine, ours }: NodeTelemetry, inflight: number): HostFinding | undefined {
  if (ours === undefined) return undefined;
  const running = engine?.isStale === false ? engine.running : undefined;
  return hostFinding({
    accelerators: host?.isStale === false ? host.accelerators : [],
    readingAgeUs: host?.ageUs ?? 0,
    inflight: ours.inflight,
    steadyUs: ours.steadyUs,
    engineInflight: inflight,
    ...(running === undefined ? {} : { engineRunning: running }),
    ...(host?.pressure === undefined ? {} : { pressure: host.pressure }),
  });
}
