/**
 * A node as the gateway meets it: a machine behind a connection, with what can go wrong between and in them. Faults are
 * switched by the scenario; everything that a fault does to an attempt is decided here.
 */
import { HeapSlot } from '../base/keyed-heap.ts';
import type { DurationUs, MonoUs } from '../base/units.ts';
import type { NodeMemory, NodeSpec } from '../core/scheduler/events.ts';
import type { Machine } from './machines/machine.ts';

export interface NodeFaults {
  /** Nothing listens: attempts fail at once, what ran is gone. */
  dead: boolean;
  /** Takes requests and never answers. */
  hangs: boolean;
  /** Answers every request with a refusal at once, although its health page is green. */
  refuses: boolean;
  /** Part of the requests that it answers with an error. */
  failShare: number;
  /** The gateway cannot reach it, nor it the gateway; what runs goes on and its answer is lost. */
  partitioned: boolean;
  /** Readings stay what they were. */
  staleReadings: boolean;
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

export class SimNode {
  readonly spec: NodeSpec;
  readonly machine: Machine;
  readonly memory: NodeMemory | undefined;
  readonly rttUs: DurationUs;
  readonly beatUs: DurationUs;
  /** Position in the fleet, for the decision hash and for breaking ties. */
  readonly index: number;
  readonly place: HeapSlot<SimNode>;
  readonly faults: NodeFaults = {
    dead: false,
    hangs: false,
    refuses: false,
    failShare: 0,
    partitioned: false,
    staleReadings: false,
  };

  constructor(options: SimNodeOptions, index: number) {
    this.spec = options.spec;
    this.machine = options.machine;
    this.memory = options.memory;
    this.rttUs = options.rttUs;
    this.beatUs = options.beatUs;
    this.index = index;
    this.place = new HeapSlot<SimNode>(this, index);
  }

  /** When its machine must be looked at; Infinity while it is idle. */
  nextAt(): MonoUs {
    return this.machine.nextAt();
  }
}
