/** Virtual time for tests of the engines: nothing passes until `advance` says so. */
import type { DurationMs } from '../base/units.ts';
import type { EmulatorClock } from './clock.ts';

export interface VirtualClock extends EmulatorClock {
  /** Runs everything due within `ms`, each timer `lateMs` after its instant. */
  advance(ms: DurationMs): void;
}

interface Entry {
  readonly at: DurationMs;
  readonly order: number;
  readonly call: () => void;
  live: boolean;
}

export function createVirtualClock(options: { readonly lateMs?: DurationMs } = {}): VirtualClock {
  const lateMs = options.lateMs ?? 0;
  let now = 0;
  let order = 0;
  let entries: Entry[] = [];

  function nextDue(until: DurationMs): Entry | undefined {
    entries = entries.filter((entry) => entry.live);
    entries.sort((left, right) => left.at - right.at || left.order - right.order);
    const first = entries[0];
    return first !== undefined && first.at <= until ? first : undefined;
  }

  return {
    now: () => now,
    after(delayMs, call) {
      order += 1;
      const entry: Entry = { at: now + Math.max(0, delayMs) + lateMs, order, call, live: true };
      entries.push(entry);
      return {
        cancel: () => {
          entry.live = false;
        },
      };
    },
    advance(ms) {
      const until = now + ms;
      for (let due = nextDue(until); due !== undefined; due = nextDue(until)) {
        due.live = false;
        now = Math.max(now, due.at);
        due.call();
      }
      now = until;
    },
  };
}
