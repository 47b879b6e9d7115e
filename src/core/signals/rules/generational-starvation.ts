/**
 * Tasks of a class wait while those that came after them are served, until their deadline is over: the old generation
 * starves on the newer one. A class under a fair order is passed too, by its share: only misses count that were passed by
 * more than two rounds of it (2 / share dispatches of its lane that came later).
 */
import type { Look, Rule, Suspicion } from '../detector.ts';
import type { ClassSample, Sample } from '../sample.ts';
import { percent, told } from '../statistics.ts';

const WINDOW_S = 60;
const OVERTAKEN_MIN = 10;
const OVERTAKEN_RATIO = 0.1;

export const generationalStarvation: Rule = {
  signal: 'generational-starvation',
  thresholds: {
    window: { value: WINDOW_S, unit: 's' },
    overtakenMin: { value: OVERTAKEN_MIN, unit: 'tasks' },
    overtaken: { value: OVERTAKEN_RATIO, unit: 'ratio of what ended in the class' },
  },
  enterSamples: 10,
  leaveSamples: 30,
  remedy:
    'Raise the shareMin or weight of the class, or refuse it sooner (gate flow-wait): what waits to miss its deadline costs its users more than a refusal.',
  look(past): Look {
    const then = past.ago(WINDOW_S);
    if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
    return {
      kind: 'seen',
      suspicions: past.now.classes.flatMap((record) => suspicionOf(record, past.now, then)),
    };
  },
};

function suspicionOf(record: ClassSample, now: Sample, then: Sample): readonly Suspicion[] {
  const old = then.classes.find(({ name }) => name === record.name);
  if (old === undefined) return [];
  const since = (pick: (sample: ClassSample) => number): number => pick(record) - pick(old);
  const overtaken = since((sample) => sample.overtaken);
  const missed = since((sample) => sample.missed);
  const ended = since(({ served, missed: m, failed }) => served + m + failed);
  if (overtaken < OVERTAKEN_MIN || overtaken < OVERTAKEN_RATIO * ended) return [];
  const work = workShare(record, now, then);
  return [
    {
      subject: { kind: 'class', id: record.name },
      severity: overtaken > 0.5 * ended ? 'page' : 'warn',
      evidence: {
        overtaken,
        missed,
        ended,
        oldestWaitS: told(record.oldestWaitUs / 1e6),
        share: told(record.share),
        shareOfWork: told(work),
        servedInstead: servedInstead(record, now, then),
      },
      says: `${overtaken} of ${ended} ${record.name} requests (${percent(overtaken / ended)}) waited past their deadline while newer ones were served`,
    },
  ];
}

/** What the class got of the work that was dispatched. */
function workShare(record: ClassSample, now: Sample, then: Sample): number {
  const whole = now.classes.reduce((sum, one) => sum + dispatchedSince(one, then), 0);
  return whole === 0 ? 0 : dispatchedSince(record, then) / whole;
}

/** The other classes by their part of what was dispatched, the greatest first. */
function servedInstead({ name }: ClassSample, now: Sample, then: Sample): string {
  const others = now.classes
    .filter((one) => one.name !== name)
    .map((one) => ({ name: one.name, part: workShare(one, now, then) }));
  return others
    .filter(({ part }) => part > 0)
    .toSorted((a, b) => b.part - a.part)
    .map((one) => `${one.name} ${percent(one.part)}`)
    .join(', ');
}

function dispatchedSince(record: ClassSample, then: Sample): number {
  const old = then.classes.find(({ name }) => name === record.name);
  return record.dispatchedWorkUs - (old?.dispatchedWorkUs ?? 0);
}
