/**
 * Little's law (1961): in a stationary system the mean number inside is the rate of leaving times the mean time inside,
 * L = lambda W. Both sides are exact sums over the window; what is left over are requests that age without leaving, such as
 * leaked slots and attempts whose end was lost.
 *
 *   gap = (integral of those inside - times of those who left) / window
 *
 * A window that is not many times as long as a request is inside, or whose halves have unlike numbers inside, says nothing.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import type { NodeSample, Sample } from '../sample.ts';
import { percent, seconds, told } from '../statistics.ts';

const WINDOW_S = 60;
const GAP_RATIO = 0.1;
const GAP_TASKS = 1;
const LEFT_MIN = 100;
/** The window over the mean time inside, at least. */
const TIMES_MIN = 10;
/** Difference of the mean numbers inside of both halves over the mean of all, at most. */
const DRIFT_MAX = 0.3;
/** Age of somebody inside over the mean stay, at most, as far as it is nothing strange. */
const AGES_PER_STAY = 2;

export const littleGap: Rule = {
  signal: 'little-gap',
  thresholds: {
    gap: { value: GAP_RATIO, unit: 'ratio of the mean number inside' },
    gapTasks: { value: GAP_TASKS, unit: 'tasks' },
    window: { value: WINDOW_S, unit: 's' },
    leftMin: { value: LEFT_MIN, unit: 'tasks' },
    driftMax: { value: DRIFT_MAX, unit: 'ratio' },
  },
  enterSamples: 60,
  leaveSamples: 30,
  remedy:
    'Look at the node that is named: its requests do not end. `spillway explain` one of its oldest; drain and restart the node if its engine hangs.',
  look,
};

function look(past: Past): Look {
  const { now } = past;
  const then = past.ago(WINDOW_S);
  if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
  const middle = past.ago(WINDOW_S / 2) ?? then;
  const spanUs = now.at - then.at;
  const inside = insideOver(then, now);
  const left = now.left - then.left;
  const stayedUs = now.stayedUs - then.stayedUs;
  const quiet = (why: string): Look => ({ kind: 'seen', suspicions: [], why });
  if (left < LEFT_MIN) return quiet(`Only ${left} requests left within the window`);
  if ((stayedUs / left) * TIMES_MIN > spanUs)
    return quiet('Requests are inside for longer than a window can tell');
  const drift = Math.abs(insideOver(middle, now) - insideOver(then, middle)) / inside;
  if (drift > DRIFT_MAX) return quiet('The number inside changes: the law holds for stationary traffic');
  // Who is inside beyond those of the beginning has aged within the window, and will leave like the others.
  const grown = (Math.max(0, now.inside - then.inside) * AGES_PER_STAY * (stayedUs / left)) / spanUs;
  const gap = inside - stayedUs / spanUs - grown;
  if (gap < GAP_TASKS || gap / inside < GAP_RATIO) return quiet('Who comes also leaves');
  const worst = worstNode(then, now);
  const where = worst === undefined ? '' : `, most of them on ${worst.id}`;
  return {
    kind: 'seen',
    suspicions: [
      {
        subject: { kind: 'gateway', id: '' },
        severity: gap / inside > 2 * GAP_RATIO ? 'page' : 'warn',
        evidence: {
          inside: told(inside),
          leavingPerSecond: told((left / spanUs) * 1e6),
          meanStayS: seconds(stayedUs / left),
          gapTasks: told(gap),
          ...(worst === undefined ? {} : { node: worst.id, nodeGapTasks: told(worst.gap) }),
        },
        says: `${told(gap)} of ${told(inside)} requests inside (${percent(gap / inside)}) age without ever leaving${where}`,
      },
    ],
  };
}

/** The mean number inside. */
function insideOver(from: Sample, until: Sample): number {
  return (until.insideUs - from.insideUs) / (until.at - from.at);
}

/** The same sum per node, over attempts. */
function worstNode(then: Sample, now: Sample): { readonly id: string; readonly gap: number } | undefined {
  const before = new Map(then.nodes.map((node): [string, NodeSample] => [node.id, node]));
  let worst: { id: string; gap: number } | undefined;
  for (const node of now.nodes) {
    const old = before.get(node.id);
    if (old === undefined) continue;
    const gap = (node.inflightUs - old.inflightUs - (node.elapsedUs - old.elapsedUs)) / (now.at - then.at);
    if (gap > 0.5 && gap > (worst?.gap ?? 0)) worst = { id: node.id, gap };
  }
  return worst;
}
