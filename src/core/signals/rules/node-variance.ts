/**
 * A node is slower at a model than its peers of the same hardware at the same model. Times are over work and as logarithms, so
 * sizes do not matter and a factor is a difference; the spread of the peers is their median absolute deviation, which the slow one
 * cannot widen. A node that runs more at once is slower by right and is not accused; nor is one that had more of its tasks since all
 * became slower, which steps of ten seconds tell, each against the peers of that step.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import { median, robustZ, told } from '../statistics.ts';
import type { LogSumsSample, NodeSample } from '../sample.ts';
import { type LogMean, logMean, type NodeSince, nodesSince, type PaceSince } from './since.ts';

const WINDOW_S = 300;
const WINDOW_S_MIN = 60;
const Z_MIN = 3.5;
const RATIO_MIN = 1.5;
/** Of its own mean: sizes that are guessed badly make unlike tasks of equal nodes. */
const ERRORS_MIN = 4.5;
const TASKS_MIN = 30;
const PEERS_MIN = 4;
/** Peers that are alike by chance are taken to differ by so much, as a logarithm. */
const SPREAD_MIN = 0.05;
const INFLIGHT_RATIO = 1.25;
/** The median of fewer would be any of them. */
const STEP_PEERS_MIN = 2;
const NOTHING: LogSumsSample = Object.freeze({ count: 0, sum: 0, squares: 0 });

export const nodeVariance: Rule = {
  signal: 'node-variance',
  thresholds: {
    z: { value: Z_MIN, unit: 'robust standard scores' },
    errors: { value: ERRORS_MIN, unit: 'standard errors of its own tasks' },
    ratio: { value: RATIO_MIN, unit: 'times the median of the peers' },
    tasksMin: { value: TASKS_MIN, unit: 'tasks' },
    peersMin: { value: PEERS_MIN, unit: 'nodes beside it' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 10,
  leaveSamples: 30,
  remedy:
    'Look at the node: heat, power limit, a slower PCIe or NVLink path, other work on it, another engine version. Cordon it until it is as fast as the others.',
  look,
};

interface Row extends PaceSince {
  readonly id: string;
}

function look(past: Past): Look {
  const then = past.ago(WINDOW_S) ?? past.every10(WINDOW_S)[0];
  if (then === undefined || past.ageOf(then.at) < WINDOW_S_MIN)
    return { kind: 'blind', why: `It needs ${WINDOW_S_MIN} s of samples` };
  const groups = Map.groupBy(rowsOf(nodesSince(then, past.now)), ({ key }) => key);
  const suspicions = [...groups.values()].flatMap((rows) =>
    slowOnes(
      rows.map(({ row }) => row),
      past,
    ),
  );
  return { kind: 'seen', suspicions };
}

function rowsOf(nodes: readonly NodeSince[]): readonly { readonly key: string; readonly row: Row }[] {
  return nodes.flatMap(({ node, paces }) =>
    paces
      .filter(({ count }) => count >= TASKS_MIN)
      .map((pace) => ({ key: `${node.hardware} ${pace.model}`, row: { ...pace, id: node.id } })),
  );
}

function slowOnes(rows: readonly Row[], past: Past): readonly Suspicion[] {
  if (rows.length <= PEERS_MIN) return [];
  const paces = rows.map(({ mean }) => mean);
  const middle = median(paces);
  const usualInflight = median(rows.map(({ inflight }) => inflight));
  return rows.flatMap((row) => {
    const z = robustZ(row.mean, paces, SPREAD_MIN);
    const ratio = Math.exp(row.mean - middle);
    // Its own tasks must be enough to tell, too.
    const error = row.deviation / Math.sqrt(row.count);
    if (z < Z_MIN || ratio < RATIO_MIN || row.mean - middle < ERRORS_MIN * error) return [];
    if (row.inflight > usualInflight * INFLIGHT_RATIO) return [];
    if ((stepRatio(row, rows, past) ?? ratio) < RATIO_MIN) return [];
    return [suspicionOf(row, { z, ratio, peers: rows.length - 1 })];
  });
}

/** Its times over those of its peers in the same ten seconds; undefined where none of them had any. O(steps x nodes). */
function stepRatio(own: Row, rows: readonly Row[], past: Past): number | undefined {
  const ids = new Set(rows.map(({ id }) => id));
  const steps = past
    .every10(WINDOW_S)
    .map(({ nodes }) => new Map(nodes.filter(({ id }) => ids.has(id)).map((node) => [node.id, node.paces])));
  let count = 0;
  let sum = 0;
  for (const [index, now] of steps.entries()) {
    const then = steps[index - 1];
    if (then === undefined) continue;
    const since = (id: string): LogMean =>
      logMean(paceOf(then.get(id), own.model), paceOf(now.get(id), own.model));
    const peers = rows.flatMap(({ id }) => {
      const pace = id === own.id ? undefined : since(id);
      return pace === undefined || pace.count === 0 ? [] : [pace.mean];
    });
    const mine = since(own.id);
    if (mine.count === 0 || peers.length < STEP_PEERS_MIN) continue;
    count += mine.count;
    sum += mine.count * (mine.mean - median(peers));
  }
  return count === 0 ? undefined : Math.exp(sum / count);
}

function paceOf(paces: NodeSample['paces'] | undefined, model: string): LogSumsSample {
  return paces?.find((pace) => pace.model === model) ?? NOTHING;
}

function suspicionOf(
  row: Row,
  { z, ratio, peers }: { readonly z: number; readonly ratio: number; readonly peers: number },
): Suspicion {
  return {
    subject: { kind: 'node', id: row.id },
    severity: ratio > 2 * RATIO_MIN ? 'page' : 'warn',
    evidence: {
      model: row.model,
      ratio: told(ratio),
      z: told(z),
      tasks: row.count,
      peers,
      inflight: told(row.inflight),
    },
    says: `${row.id} takes ${told(ratio)} times as long for ${row.model} as its ${peers} peers of the same hardware`,
  };
}
