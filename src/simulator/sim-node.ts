/**
 * A node as the gateway meets it: a machine behind a connection, with what can go wrong between and in them. Faults are
 * switched by the scenario; what they do to an attempt is decided here and in the simulation.
 */
import { HeapSlot } from '../base/keyed-heap.ts';
import type { DurationUs, MonoUs, Ratio } from '../base/units.ts';
import type { AttemptResult, FailureKind } from '../core/request/outcome.ts';
import type { EngineReading, NodeMemory, NodeSpec } from '../core/scheduler/events.ts';
import type { Machine } from './machines/machine.ts';
import type { SimJob } from './sim-job.ts';

/** What is wrong with a node now. */
export interface NodeFaults {
  /** Nothing listens: attempts fail at once. */
  dead: boolean;
  /** Answers every request with a refusal at once, although its health page is green. */
  refuses: boolean;
  /** Part of the requests that it answers with an error. */
  failShare: Ratio;
  /** The gateway cannot reach it, nor it the gateway; what runs goes on, and its answers come when the way is open again. */
  partitioned: boolean;
  /** Readings stay what they were. */
  staleReadings: boolean;
  /** Work of others on its host: all that it computes takes this many times as long. At least 1. */
  hostLoad: number;
}

/** What a node has to say of an attempt. */
export interface Letter {
  readonly job: SimJob;
  readonly turn: number;
  /** undefined: the first content byte. */
  readonly result: AttemptResult | undefined;
}

export interface SimNodeOptions {
  readonly spec: NodeSpec;
  readonly machine: Machine;
  /** What a policy may know of it beforehand, such as its true rates. */
  readonly memory?: NodeMemory | undefined;
  /** There and back again. */
  readonly rttUs: DurationUs;
  /** How often it beats or is probed; 0 for never. */
  readonly beatUs: DurationUs;
}

/** How often the gateway reads the load of an engine that batches. */
const READ_US: DurationUs = 1_000_000;

export class SimNode {
  readonly spec: NodeSpec;
  readonly machine: Machine;
  readonly memory: NodeMemory | undefined;
  readonly rttUs: DurationUs;
  readonly beatUs: DurationUs;
  /** Looks at its load between two probes, the one with a probe included. */
  readonly #readsPerProbe: number;
  #reads = 0;
  /** Position in the fleet, for the decision hash and for breaking ties. */
  readonly index: number;
  readonly place: HeapSlot<SimNode>;
  readonly beatPlace: HeapSlot<SimNode>;
  readonly faults: NodeFaults = {
    dead: false,
    refuses: false,
    failShare: 0,
    partitioned: false,
    staleReadings: false,
    hostLoad: 1,
  };
  /** While it is cut off: what it could not say, and what it was not told to stop. */
  readonly unsent: Letter[] = [];
  readonly unstopped: Set<SimJob> = new Set();
  /** When it was last cut off or died; kept by whoever switches the faults. */
  unreachableSince: MonoUs = 0;
  readonly #speeds: number[] = [];
  #lastReading: EngineReading | undefined;

  constructor(options: SimNodeOptions, index: number) {
    this.spec = options.spec;
    this.machine = options.machine;
    this.memory = options.memory;
    this.rttUs = options.rttUs;
    this.beatUs = options.beatUs;
    this.#readsPerProbe = options.spec.batching ? Math.max(1, Math.round(options.beatUs / READ_US)) : 1;
    this.index = index;
    this.place = new HeapSlot<SimNode>(this, index);
    this.beatPlace = new HeapSlot<SimNode>(this, index);
  }

  get isReachable(): boolean {
    return !this.faults.dead && !this.faults.partitioned;
  }

  /** When its machine must be looked at; Infinity while it is idle. */
  nextAt(): MonoUs {
    return this.machine.nextAt();
  }

  /** Faults that change its speed multiply. */
  addSpeed(factor: number, now: MonoUs): void {
    this.#speeds.push(factor);
    this.#setSpeed(now);
  }

  removeSpeed(factor: number, now: MonoUs): void {
    const at = this.#speeds.indexOf(factor);
    if (at >= 0) this.#speeds.splice(at, 1);
    this.#setSpeed(now);
  }

  /** From one look at it to the next. */
  get lookUs(): DurationUs {
    return this.beatUs / this.#readsPerProbe;
  }

  /** It is looked at once more: whether that is a probe too, as the first look is. */
  isProbedNow(): boolean {
    const isProbed = this.#reads === 0;
    this.#reads = (this.#reads + 1) % this.#readsPerProbe;
    return isProbed;
  }

  /** What its engine says of itself, or said when that still changed. */
  reading(now: MonoUs): EngineReading | undefined {
    if (!this.faults.staleReadings) this.#lastReading = this.machine.reading?.(now);
    return this.#lastReading;
  }

  /** How the attempt fails at once; undefined when it does not. */
  failureOf(job: SimJob): FailureKind | undefined {
    const { dead, partitioned, refuses, failShare } = this.faults;
    if (dead || partitioned) return 'connect';
    if (refuses) return 'refused';
    return failShare > 0 && drawOf(job) < failShare ? 'server-error' : undefined;
  }

  #setSpeed(now: MonoUs): void {
    this.machine.setSpeed(
      this.#speeds.reduce((product, factor) => product * factor, 1),
      now,
    );
  }
}

/** Uniform in [0, 1), the same for the same attempt under every policy. The finaliser of MurmurHash3. */
function drawOf({ id, attempts }: SimJob): number {
  let mixed = Math.imul(id ^ Math.imul(attempts, 0x9e3779b1), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296;
}
