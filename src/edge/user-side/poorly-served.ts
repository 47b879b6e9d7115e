/**
 * The last users who were served poorly, one by one: by their own word, or slower than nearly all others of their class. From
 * here a person goes on to the trace or to `explain`. Holds `POORLY_MAX`; the oldest leaves.
 */
import type { ClassName, MonoUs } from '../../base/units.ts';
import type { Beacon } from './beacon.ts';
import type { ServerSide } from './pairs.ts';
import type { Quantiles } from './windowed-quantiles.ts';

export const POORLY_MAX = 50;
/** Fewer beacons of a class do not tell what is slow. */
const TOLD_MIN = 20;

export interface PoorlyServed {
  readonly className: ClassName;
  readonly beacon: Beacon;
  /** What the gateway says of the same request; absent where it has not ended or is forgotten. */
  readonly server: ServerSide | undefined;
  readonly at: MonoUs;
}

export class PoorlyServedUsers {
  readonly #last: PoorlyServed[] = [];
  #next = 0;

  /** The newest first. */
  list(): readonly PoorlyServed[] {
    return [...this.#last.slice(this.#next), ...this.#last.slice(0, this.#next)].reverse();
  }

  /** `others` are the completions of its class before it. */
  look(told: PoorlyServed, others: Quantiles): void {
    const { outcome, completionMs = 0 } = told.beacon;
    const { count, p95Ms = 0 } = others;
    if (outcome === 'ok' && (count < TOLD_MIN || completionMs <= p95Ms)) return;
    this.#last[this.#next] = told;
    this.#next = (this.#next + 1) % POORLY_MAX;
  }
}
