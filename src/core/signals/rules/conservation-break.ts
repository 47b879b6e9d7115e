/**
 * Every request that arrived is queued, running, or has one of the outcomes: arrived = served + degraded + rejected + evicted +
 * failed + cancelled + queued + running. Whole numbers, so there is no tolerance: a difference is a request that was lost
 * or counted twice.
 */
import type { Rule } from '../detector.ts';

export const conservationBreak: Rule = {
  signal: 'conservation-break',
  thresholds: { difference: { value: 0, unit: 'tasks' } },
  enterSamples: 1,
  leaveSamples: 10,
  remedy:
    'Keep GET /spillway/v1/dump and the log, then restart the gateway: its books cannot be trusted. This is a bug: report it.',
  look({ now }) {
    const { arrived, queued, running, ...ended } = now.accounts;
    const settled = Object.values(ended).reduce((sum, count) => sum + count, 0);
    const difference = arrived - settled - queued - running;
    const isHollow = now.inside < queued + running;
    if (difference === 0 && !isHollow) return { kind: 'seen', suspicions: [] };
    const says =
      difference === 0
        ? `${queued + running} requests are queued or running, but only ${now.inside} are known`
        : `${Math.abs(difference)} requests ${difference > 0 ? 'have vanished from' : 'are counted twice in'} the books`;
    return {
      kind: 'seen',
      suspicions: [
        {
          subject: { kind: 'gateway', id: '' },
          severity: 'page',
          evidence: { arrived, settled, queued, running, inside: now.inside, difference },
          says,
        },
      ],
    };
  },
};
