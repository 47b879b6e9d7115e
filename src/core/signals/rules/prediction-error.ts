/**
 * The gateway decides by predicted times, and they do not come true: actual over predicted, as logarithms over all nodes. A bias
 * makes deadlines be missed or work be refused for nothing; a spread makes every decision a guess.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import { told } from '../statistics.ts';
import { type NodeSince, nodesSince } from './since.ts';

const WINDOW_S = 300;
const BIAS_MAX = 1.5;
const SPREAD_MAX = 3;
const TASKS_MIN = 200;

export const predictionError: Rule = {
  signal: 'prediction-error',
  thresholds: {
    bias: { value: BIAS_MAX, unit: 'times, either way' },
    spread: { value: SPREAD_MAX, unit: 'times, one standard deviation' },
    tasksMin: { value: TASKS_MIN, unit: 'tasks' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 10,
  leaveSamples: 60,
  remedy:
    'Give the models work profiles that fit (models[].profile), state the hardware of nodes, and let clients bound their output.',
  look(past: Past): Look {
    const then = past.ago(WINDOW_S);
    if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
    const { count, mean, deviation } = pooled(nodesSince(then, past.now));
    if (count < TASKS_MIN)
      return { kind: 'seen', suspicions: [], why: `Only ${count} predictions within the window` };
    const isBiased = Math.abs(mean) > Math.log(BIAS_MAX);
    const isSpread = deviation > Math.log(SPREAD_MAX);
    if (!isBiased && !isSpread) return { kind: 'seen', suspicions: [], why: 'Predictions come true' };
    const [bias, spread] = [told(Math.exp(mean)), told(Math.exp(deviation))];
    const says = isBiased
      ? `Requests take ${bias} times as long as predicted`
      : `Requests take as long as predicted within a factor of ${spread} only`;
    return {
      kind: 'seen',
      suspicions: [
        {
          subject: { kind: 'gateway', id: '' },
          severity: 'warn',
          evidence: { bias, spread, tasks: count },
          says,
        },
      ],
    };
  },
};

function pooled(nodes: readonly NodeSince[]): { count: number; mean: number; deviation: number } {
  let count = 0;
  let sum = 0;
  let squares = 0;
  for (const { predictions } of nodes) {
    count += predictions.count;
    sum += predictions.count * predictions.mean;
    squares += predictions.count * (predictions.deviation ** 2 + predictions.mean ** 2);
  }
  if (count === 0) return { count, mean: 0, deviation: 0 };
  const mean = sum / count;
  return { count, mean, deviation: Math.sqrt(Math.max(0, squares / count - mean * mean)) };
}
