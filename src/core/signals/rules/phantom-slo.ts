/**
 * The panel is green and users are not served well: what clients saw of the very same requests is worse than what the gateway saw. Bad
 * shares are compared by their 95 % intervals (Wilson 1927), times by their 95th percentiles.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import { percent, told, wilson } from '../statistics.ts';

const TOLD_MIN = 50;
const BAD_DIFFERENCE = 0.02;
const P95_RATIO = 1.5;
const P95_MS = 200;

export const phantomSlo: Rule = {
  signal: 'phantom-slo',
  thresholds: {
    toldMin: { value: TOLD_MIN, unit: 'requests that clients told of' },
    badDifference: { value: BAD_DIFFERENCE, unit: 'ratio of requests' },
    p95Ratio: { value: P95_RATIO, unit: 'times' },
    p95Difference: { value: P95_MS, unit: 'ms' },
  },
  enterSamples: 10,
  leaveSamples: 60,
  remedy:
    'Look between the gateway and its users: proxies that buffer or cut streams, the network, TLS, clients that give up before the deadline.',
  look({ now }: Past): Look {
    const side = now.outside?.userSide;
    if (side === undefined)
      return { kind: 'blind', why: 'No client tells what it saw (POST /spillway/v1/rum)' };
    const { told: count, toldBad, serverBad, clientP95Ms, serverP95Ms } = side;
    if (count < TOLD_MIN) return { kind: 'blind', why: `Clients told of ${count} requests only` };
    const isWorse = wilson(toldBad, count).low > wilson(serverBad, count).high;
    const isBad = isWorse && toldBad - serverBad >= BAD_DIFFERENCE * count;
    const isSlow = clientP95Ms >= P95_RATIO * serverP95Ms && clientP95Ms - serverP95Ms >= P95_MS;
    if (!isBad && !isSlow) return { kind: 'seen', suspicions: [], why: 'Clients see what the gateway sees' };
    const says = isBad
      ? `Clients call ${percent(toldBad / count)} of their requests bad, the gateway ${percent(serverBad / count)} of the same`
      : `Clients wait ${told(clientP95Ms)} ms (95th percentile) for what the gateway says took ${told(serverP95Ms)} ms`;
    return {
      kind: 'seen',
      suspicions: [
        {
          subject: { kind: 'gateway', id: '' },
          severity: 'page',
          evidence: {
            told: count,
            clientBad: toldBad,
            serverBad,
            clientP95Ms: told(clientP95Ms),
            serverP95Ms: told(serverP95Ms),
          },
          says,
        },
      ],
    };
  },
};
