/**
 * The protective gates by name. Each can be on, off, or in shadow: then it decides nothing and counts what it would
 * have refused, so that an operator sees what a new gate would do before it does it.
 */
import type { GateMode, GateName, GatesConfig } from '../config/types.ts';

/** What a gate did so far. One of the two counts grows, by its mode at the time. */
export interface GateCount {
  readonly gate: GateName;
  readonly mode: GateMode;
  readonly refused: number;
  /** In shadow: what would have been refused. */
  readonly wouldRefuse: number;
}

export class Gates {
  #modes: GatesConfig;
  readonly #refused: Map<GateName, number> = new Map();
  readonly #wouldRefuse: Map<GateName, number> = new Map();

  constructor(modes: GatesConfig) {
    this.#modes = modes;
  }

  /** Takes over new modes; the counts stay. */
  configure(modes: GatesConfig): void {
    this.#modes = modes;
  }

  /** Whether the gate is to be worked out at all. */
  isWatching(gate: GateName): boolean {
    return this.#modes[gate] !== 'off';
  }

  /** Whether the gate decides. */
  isOn(gate: GateName): boolean {
    return this.#modes[gate] === 'on';
  }

  /** Counts that the gate's rule says no, and tells whether that holds. Call only where the rule says no. */
  refuses(gate: GateName): boolean {
    const mode = this.#modes[gate];
    if (mode === 'off') return false;
    const counts = mode === 'on' ? this.#refused : this.#wouldRefuse;
    counts.set(gate, (counts.get(gate) ?? 0) + 1);
    return mode === 'on';
  }

  counts(): readonly GateCount[] {
    return (Object.keys(this.#modes) as GateName[]).map((gate) => ({
      gate,
      mode: this.#modes[gate],
      refused: this.#refused.get(gate) ?? 0,
      wouldRefuse: this.#wouldRefuse.get(gate) ?? 0,
    }));
  }
}
