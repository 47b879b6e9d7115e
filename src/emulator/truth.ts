/** What an emulated node really did, kept apart from what it says of itself. */
import type { DurationMs, Rate } from '../base/units.ts';

/** Tasks over which the recent rate is taken. */
const RECENT_TASKS = 50;

export interface NodeTruth {
  readonly emulated: true;
  readonly id: string;
  readonly kind: 'image' | 'text';
  readonly model: string;
  readonly statedHardware: string;
  readonly trueHardware: string;
  readonly trueSpeed: number;
  readonly slowFactor: number;
  readonly dead: boolean;
  /** Wall milliseconds of an image request now: `fixedMs + perImageMs * images * steps/30 * megapixel share`. */
  readonly fixedMs: DurationMs;
  readonly perImageMs: DurationMs;
  readonly received: number;
  readonly served: number;
  /** Clients who left while their task waited or ran. */
  readonly aborted: number;
  /** Tasks that ran to their end for clients who had left. */
  readonly ghosts: number;
  readonly refused: number;
  readonly failed: number;
  readonly waiting: number;
  readonly running: number;
  readonly busyMs: DurationMs;
  /** Work of served tasks, in wall milliseconds of the reference accelerator at the same speed-up. */
  readonly workMs: DurationMs;
  readonly ghostWorkMs: DurationMs;
  /** Work per service time over the last served tasks, and how many those are. */
  readonly recentRate: Rate;
  readonly recentTasks: number;
}

export interface Tally {
  received: number;
  served: number;
  aborted: number;
  ghosts: number;
  refused: number;
  failed: number;
  workMs: DurationMs;
  ghostWorkMs: DurationMs;
}

export function emptyTally(): Tally {
  return {
    received: 0,
    served: 0,
    aborted: 0,
    ghosts: 0,
    refused: 0,
    failed: 0,
    workMs: 0,
    ghostWorkMs: 0,
  };
}

export interface RecentRate {
  add(workMs: DurationMs, serviceMs: DurationMs): void;
  /** Forgets what was seen: the node's speed changed. */
  reset(): void;
  readonly tasks: number;
  readonly rate: Rate;
}

export function createRecentRate(): RecentRate {
  let seen: { workMs: DurationMs; serviceMs: DurationMs }[] = [];
  return {
    add(workMs, serviceMs) {
      seen.push({ workMs, serviceMs });
      if (seen.length > RECENT_TASKS) seen.shift();
    },
    reset() {
      seen = [];
    },
    get tasks() {
      return seen.length;
    },
    get rate() {
      let work = 0;
      let service = 0;
      for (const task of seen) {
        work += task.workMs;
        service += task.serviceMs;
      }
      return service > 0 ? work / service : 0;
    },
  };
}
