/** Counters of a gateway as rates over the last seconds. Pure: samples in, rates out. */

/** What became of requests of one class, counted since the gateway's start. */
export interface ClassCounts {
  readonly served: number;
  /** Lesser answers, by consent. */
  readonly degraded: number;
  readonly refused: number;
  readonly failed: number;
}

export interface CountSample {
  /** Milliseconds. */
  readonly at: number;
  readonly byClass: Readonly<Record<string, ClassCounts>>;
}

export interface ClassRates {
  readonly servedPerS: number;
  readonly degradedPerS: number;
  readonly refusedPerS: number;
  readonly failedPerS: number;
  /** Served in full, of all that ended; null when none did. */
  readonly servedRatio: number | null;
}

/** Short enough to follow what happens now, long enough that a few requests a second do not flicker. */
export const RATE_WINDOW_MS = 10_000;

const FAILED: ReadonlySet<string> = new Set(['node-failed', 'node-timeout', 'poison']);
/** Neither good nor bad: the client left, or the node refused the body for what it is. */
const NEUTRAL: ReadonlySet<string> = new Set(['cancelled', 'declined']);
const NOTHING: ClassCounts = { served: 0, degraded: 0, refused: 0, failed: 0 };
const LINE = /^spillway_requests_total\{class="((?:[^"\\]|\\.)*)",.*outcome="([^"]*)"\} (\d+)/;

/** Reads `spillway_requests_total` from the metrics page. */
export function countsOf(page: string): CountSample['byClass'] {
  const byClass: Record<string, { -readonly [K in keyof ClassCounts]: number }> = {};
  for (const line of page.split('\n')) {
    const [, name = '', outcome = '', count] = LINE.exec(line) ?? [];
    if (count === undefined || name === '' || NEUTRAL.has(outcome)) continue;
    const counts = (byClass[name] ??= { ...NOTHING });
    counts[kindOf(outcome)] += Number(count);
  }
  return byClass;
}

function kindOf(outcome: string): keyof ClassCounts {
  if (outcome === 'served' || outcome === 'degraded') return outcome;
  return FAILED.has(outcome) ? 'failed' : 'refused';
}

/** The samples of the window with the new one; counters that fell tell of a gateway that was started again. */
export function withSample(samples: readonly CountSample[], next: CountSample): readonly CountSample[] {
  const last = samples.at(-1);
  const isRestarted = last !== undefined && totalOf(next) < totalOf(last);
  const kept = isRestarted ? [] : samples.filter(({ at }) => next.at - at <= RATE_WINDOW_MS);
  return [...kept, next];
}

function totalOf({ byClass }: CountSample): number {
  return Object.values(byClass).reduce(
    (sum, one) => sum + one.served + one.degraded + one.refused + one.failed,
    0,
  );
}

/** Over the whole window; undefined before there are two samples. */
export function ratesOf(samples: readonly CountSample[], name: string): ClassRates | undefined {
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined || last.at <= first.at) return undefined;
  const seconds = (last.at - first.at) / 1_000;
  const before = first.byClass[name] ?? NOTHING;
  const after = last.byClass[name] ?? NOTHING;
  const served = after.served - before.served;
  const degraded = after.degraded - before.degraded;
  const refused = after.refused - before.refused;
  const failed = after.failed - before.failed;
  const ended = served + degraded + refused + failed;
  return {
    servedPerS: served / seconds,
    degradedPerS: degraded / seconds,
    refusedPerS: refused / seconds,
    failedPerS: failed / seconds,
    servedRatio: ended === 0 ? null : served / ended,
  };
}
