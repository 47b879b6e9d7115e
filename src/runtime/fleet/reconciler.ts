/**
 * The periodic look at every node, so that no missed event can last: a dead node leaves and a recovered one returns
 * within a few intervals although nothing else happens.
 *
 * Each node has its own phase inside the interval, from a hash of its id: probes of a large fleet are spread evenly
 * and in the same order in every process, and a restart does not probe a thousand nodes in one burst. The number of
 * probes under way is bounded; a node that must wait for a place keeps its turn.
 *
 * Busy is not dead. Any answer is life, and silence proves nothing while the node works for us: then the attempt's
 * own time limits decide. A failed probe raises the scheduler's lease on the node; the next good one ends it.
 */
import { type DurationMs, type DurationUs, type MonoUs, msToUs } from '../../base/units.ts';
import type { DeviceTelemetry, HostReading } from '../../ports/device-telemetry.ts';
import type { EngineAccount, EngineProbe } from '../../ports/engine-driver.ts';
import type { CancelTimer, RuntimeClock } from '../clock.ts';
import { endpointOf, type FleetNode } from './fleet-node.ts';
import { isPressing } from './load-page.ts';

/** Probes and readings under way at once; the others wait in order of their turn, each node once. */
export const PROBES_MAX = 64;
/** A probe ends after this time, or after the interval if that is shorter. */
const PROBE_MS_MAX: DurationMs = 3_000;
/** The first look at a known fleet is spread over this time. */
const FIRST_LOOK_MS: DurationMs = 5_000;
/** Load of an engine that batches, while it works for us or as long as it says that it can take no more. */
const READ_MS: DurationMs = 1_000;
/** Accelerators of a node, where its host tells of them; as often as probes if those are more frequent. */
const TELEMETRY_MS: DurationMs = 5_000;
/** How often the fleet is scanned for what is due: 10,000 comparisons take 20 µs. */
const SCAN_MS: DurationMs = 250;

const DRIVER_FAILED: EngineProbe = Object.freeze({ alive: false, ready: false, detail: 'the driver failed' });

export interface ReconcilerOptions {
  readonly clock: RuntimeClock;
  readonly nodes: () => Iterable<FleetNode>;
  readonly intervalMs: () => DurationMs;
  /** The result of a finished probe. Not called for a node that left or changed its endpoint meanwhile. */
  readonly onProbe: (node: FleetNode, probe: EngineProbe) => void;
  /** What a look at the load page gave; undefined when it gave no load. */
  readonly onReading: (node: FleetNode, reading: EngineAccount | undefined) => void;
  /** Asks the host of a node about its accelerators; absent where no node has such a page. */
  readonly telemetry?: DeviceTelemetry;
  /** What such a page said; nothing is called when it said nothing. */
  readonly onHost: (node: FleetNode, reading: HostReading) => void;
  /** Called after every scan. */
  readonly onScan: () => void;
}

export interface Reconciler {
  /** Gives a new node its place in the schedule; with `paced`, spread over the first seconds. */
  place(node: FleetNode, how: 'at-once' | 'paced'): void;
  /** Looks at a node now; resolves when the result was handed on. */
  look(node: FleetNode): Promise<void>;
  /** Brings the next probe forward, to a quarter of the interval. */
  lookAgain(node: FleetNode): void;
  start(): void;
  stop(): void;
}

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { clock } = options;
  const turns: Turn[] = [];
  let underway = 0;
  let stopped = false;
  let cancel: CancelTimer | undefined;

  function enqueue(node: FleetNode, work: Turn['work'], done: () => void): void {
    node.probing = true;
    turns.push({ node, work, done });
  }

  function pump(): void {
    while (!stopped && underway < PROBES_MAX) {
      const turn = turns.shift();
      if (turn === undefined) return;
      underway += 1;
      void run(turn);
    }
  }

  async function run(turn: Turn): Promise<void> {
    const { node } = turn;
    const { generation } = node;
    const isCurrent = (): boolean => !stopped && node.generation === generation;
    if (turn.work === 'telemetry') {
      const told = await hostOf(node, options.telemetry);
      if (isCurrent() && told !== undefined) options.onHost(node, told);
    } else if (turn.work === 'read') {
      const reading = await readOf(node);
      if (isCurrent()) options.onReading(node, reading);
    } else {
      const probe = await probeOf(node, Math.min(PROBE_MS_MAX, options.intervalMs()));
      if (isCurrent()) options.onProbe(node, probe);
    }
    underway -= 1;
    node.probing = false;
    turn.done();
    pump();
  }

  function scan(): void {
    const now = clock.nowUs();
    const intervalUs = msToUs(options.intervalMs());
    for (const node of options.nodes()) {
      if (node.probing) continue;
      // The interval may have become shorter since the turn was set.
      if (node.nextProbeAt > now + 2 * intervalUs) {
        node.nextProbeAt = now + Math.floor(phaseOf(node.id) * intervalUs);
      }
      if (node.nextProbeAt <= now) {
        node.nextProbeAt = nextTurn(node.nextProbeAt, now, intervalUs);
        node.nextReadAt = now + msToUs(READ_MS);
        enqueue(node, 'probe', nothing);
      } else if (needsReading(node) && node.nextReadAt <= now) {
        node.nextReadAt = now + msToUs(READ_MS);
        enqueue(node, 'read', nothing);
      } else if (node.config.telemetry !== undefined && node.nextTelemetryAt <= now) {
        node.nextTelemetryAt = now + Math.min(msToUs(TELEMETRY_MS), intervalUs);
        enqueue(node, 'telemetry', nothing);
      }
    }
    pump();
    options.onScan();
  }

  function schedule(): void {
    cancel = clock.after(Math.max(1, Math.min(SCAN_MS, options.intervalMs() / 2)), () => {
      scan();
      if (!stopped) schedule();
    });
  }

  return {
    place(node, how) {
      const spreadMs = Math.min(FIRST_LOOK_MS, options.intervalMs());
      const offsetUs = how === 'paced' ? Math.floor(phaseOf(node.id) * msToUs(spreadMs)) : 0;
      node.nextProbeAt = clock.nowUs() + offsetUs;
    },
    look(node) {
      if (node.probing || stopped) return Promise.resolve();
      // The rhythm goes on from here, at most one and a half intervals later and each node at its own phase.
      node.nextProbeAt = clock.nowUs() + Math.floor((0.5 + phaseOf(node.id)) * msToUs(options.intervalMs()));
      return new Promise((resolve) => {
        enqueue(node, 'probe', resolve);
        pump();
      });
    },
    lookAgain(node) {
      const soon = clock.nowUs() + Math.floor(msToUs(options.intervalMs()) / 4);
      node.nextProbeAt = Math.min(node.nextProbeAt, soon);
    },
    start: schedule,
    stop() {
      stopped = true;
      cancel?.();
      for (const turn of turns.splice(0)) turn.done();
    },
  };
}

/** A node's place in the line of probes. */
interface Turn {
  readonly node: FleetNode;
  readonly work: 'probe' | 'read' | 'telemetry';
  readonly done: () => void;
}

function nothing(): void {}

function needsReading(node: FleetNode): boolean {
  return node.driver.read !== undefined && (node.inflight > 0 || isPressing(node.loadPage));
}

async function probeOf(node: FleetNode, timeoutMs: DurationMs): Promise<EngineProbe> {
  try {
    return await node.driver.probe(endpointOf(node), timeoutMs);
  } catch {
    return DRIVER_FAILED;
  }
}

async function readOf(node: FleetNode): Promise<EngineAccount | undefined> {
  try {
    return await node.driver.read?.(endpointOf(node), READ_MS);
  } catch {
    return undefined;
  }
}

async function hostOf(
  { config }: FleetNode,
  telemetry: DeviceTelemetry | undefined,
): Promise<HostReading | undefined> {
  if (config.telemetry === undefined) return undefined;
  try {
    return await telemetry?.read(config.telemetry, READ_MS);
  } catch {
    return undefined;
  }
}

/** The next instant of the node's own rhythm; turns that were missed are not made up for. */
function nextTurn(due: MonoUs, now: MonoUs, intervalUs: DurationUs): MonoUs {
  const next = due + intervalUs;
  return next > now ? next : now + intervalUs;
}

/** A number in [0, 1) that only depends on the id (FNV-1a). */
export function phaseOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i += 1) {
    hash ^= id.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  return (hash >>> 0) / 2 ** 32;
}
