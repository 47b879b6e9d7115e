/**
 * Users and work by phase of the scenario: from one change of a rate to the next. A phase is counted by who arrived in it;
 * goodput by the answers that were complete in it. A figure of the whole run hides on which step of a staircase it was lost.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';
import { type Ending, Group } from './group.ts';
import type { PhaseReport } from './report.ts';
import type { Window } from './tenants.ts';

/** Two days of half hours, and some. Of more phases, neighbours are counted as one. */
export const PHASES_MAX = 100;
/** Values kept one by one for each class of a phase. */
const EXACT_PER_GROUP_MAX = 2_000;

class Phase {
  readonly from: MonoUs;
  readonly until: MonoUs;
  readonly groups: readonly Group[];
  /** In time of the whole fleet. */
  offeredUs = 0;
  goodUs = 0;

  constructor({ from, until }: Window, classes: number) {
    this.from = from;
    this.until = until;
    this.groups = Array.from({ length: classes }, () => new Group({ exactMax: EXACT_PER_GROUP_MAX }));
  }
}

export interface PhasesOptions {
  /** Instants at which a rate changes, in any order. */
  readonly changes: readonly MonoUs[];
  readonly window: Window;
  readonly classes: readonly string[];
}

export class Phases {
  readonly #phases: readonly Phase[];
  readonly #classes: readonly string[];
  /** The one that was asked for last: time goes on, and phases are long. */
  #present: Phase;

  constructor({ changes, window, classes }: PhasesOptions) {
    this.#classes = classes;
    const edges = edgesOf(changes, window);
    this.#phases = edges.map(
      (from, index) => new Phase({ from, until: edges[index + 1] ?? window.until }, classes.length),
    );
    this.#present = this.#phases[0] as Phase;
  }

  /** A user who counts came; the whole fleet needs `fleetUs` for what he asks. */
  arrived(at: MonoUs, classIndex: number, fleetUs: DurationUs): void {
    if (this.#phases.length < 2) return;
    const phase = this.#at(at);
    phase.offeredUs += fleetUs;
    (phase.groups[classIndex] as Group).offered += 1;
  }

  ended(arrivedAt: MonoUs, classIndex: number, ending: Ending): void {
    if (this.#phases.length < 2) return;
    (this.#at(arrivedAt).groups[classIndex] as Group).end(ending);
  }

  /** An answer was complete in time, within the window. */
  answered(now: MonoUs, fleetUs: DurationUs): void {
    if (this.#phases.length < 2) return;
    this.#at(now).goodUs += fleetUs;
  }

  /** Absent where no rate changes. Numbered from 1. */
  report(): Readonly<Record<string, PhaseReport>> | undefined {
    if (this.#phases.length < 2) return undefined;
    return Object.fromEntries(this.#phases.map((phase, index) => [`${index + 1}`, this.#reportOf(phase)]));
  }

  #reportOf({ from, until, groups, offeredUs, goodUs }: Phase): PhaseReport {
    const sum = new Group();
    for (const group of groups) sum.merge(group);
    const offeredRatio = offeredUs / (until - from);
    const goodputRatio = goodUs / (until - from);
    return {
      fromSeconds: from / 1e6,
      offeredRatio,
      goodputRatio,
      usedRatio: usedOf(goodputRatio, offeredRatio),
      all: sum.report(),
      byClass: Object.fromEntries(
        this.#classes.map((name, index) => [name, (groups[index] as Group).report()]),
      ),
    };
  }

  /** The last phase that began by then. */
  #at(instant: MonoUs): Phase {
    const { from, until } = this.#present;
    if (instant < from || instant >= until) this.#present = this.#find(instant);
    return this.#present;
  }

  #find(instant: MonoUs): Phase {
    let low = 0;
    let high = this.#phases.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#phases[middle] as Phase).from <= instant) low = middle;
      else high = middle - 1;
    }
    return this.#phases[low] as Phase;
  }
}

function usedOf(goodput: Ratio, offered: Ratio): Ratio {
  return offered === 0 ? 1 : goodput / Math.min(1, offered);
}

function edgesOf(changes: readonly MonoUs[], { from, until }: Window): readonly MonoUs[] {
  const inside = changes.filter((at) => at > from && at < until);
  const edges = [...new Set([from, ...inside])].toSorted((a, b) => a - b);
  const stride = Math.ceil(edges.length / PHASES_MAX);
  return edges.filter((_, index) => index % stride === 0);
}
