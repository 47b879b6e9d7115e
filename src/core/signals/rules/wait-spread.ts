/**
 * Some requests of a class wait very much longer than the others: the deviation of waits is more than 3.8 times their mean. While
 * nearly nobody waits that is so by itself (of one in twenty who waits at all the ratio is 4.4), so the deviation must also be a
 * second at least.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import { told } from '../statistics.ts';
import { classPairs } from './since.ts';

const WINDOW_S = 60;
const RATIO_MIN = 3.8;
const DEVIATION_S = 1;
const TASKS_MIN = 100;

export const waitSpread: Rule = {
  signal: 'wait-spread',
  thresholds: {
    ratio: { value: RATIO_MIN, unit: 'deviation over mean' },
    deviation: { value: DEVIATION_S, unit: 's' },
    tasksMin: { value: TASKS_MIN, unit: 'tasks' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 10,
  leaveSamples: 30,
  remedy:
    'See who waits so long: one model, one tenant or one need that few nodes meet (`GET /spillway/v1/queue`), and give it nodes or a share of its own.',
  look(past: Past): Look {
    const then = past.ago(WINDOW_S);
    if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
    const suspicions = classPairs(then, past.now).flatMap(([old, record]) => {
      const count = record.dispatched - old.dispatched;
      if (count < TASKS_MIN) return [];
      const mean = (record.waitS - old.waitS) / count;
      const variance = Math.max(0, (record.waitSquares - old.waitSquares) / count - mean * mean);
      const deviation = Math.sqrt(variance);
      if (deviation < DEVIATION_S || deviation < RATIO_MIN * mean) return [];
      return [
        {
          subject: { kind: 'class', id: record.name } as const,
          severity: 'warn' as const,
          evidence: {
            meanS: told(mean),
            deviationS: told(deviation),
            ratio: told(deviation / mean),
            tasks: count,
          },
          says: `Waits of ${record.name} spread by ${told(deviation)} s around a mean of ${told(mean)} s: a few wait for very long`,
        },
      ];
    });
    return { kind: 'seen', suspicions };
  },
};
