/**
 * One node takes more of the work than it can do. Plain entropy of the shares is wrong on unequal nodes, and so is equality:
 * measured is the divergence of the shares p of started work from the shares c of capacity, KL(p||c) = sum p ln(p / c).
 *
 * A scheduler that gives work to the fastest free node diverges by itself while there is little of it: at a use of rho no node
 * can be given more than c / rho without being overloaded, which bounds the divergence by ln(1 / rho). Only what is beyond that is
 * a sink. What chance alone adds, (nodes - 1) / (2 starts), is taken off as well (Miller 1955).
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import { percent, told } from '../statistics.ts';
import { type NodeSince, nodesSince } from './since.ts';

const WINDOW_S = 60;
const WARN_NATS = 0.05;
const PAGE_NATS = 0.2;
const STARTS_MIN = 200;
/** Share of the work over share of the capacity of the node that takes most. */
const SHARE_RATIO = 1.5;
/** Served over started: who serves what it takes is no sink, whatever its share. */
const SERVED_MAX = 0.9;

export const trafficSink: Rule = {
  signal: 'traffic-sink',
  thresholds: {
    warn: { value: WARN_NATS, unit: 'nats' },
    page: { value: PAGE_NATS, unit: 'nats' },
    served: { value: SERVED_MAX, unit: 'of what it starts, at most' },
    share: { value: SHARE_RATIO, unit: 'times its share of the capacity' },
    startsMin: { value: STARTS_MIN, unit: 'attempts' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 10,
  leaveSamples: 30,
  remedy:
    'Look at the node that takes most: one that fails at once is always free. Cordon it; look for affinity that binds everybody to it.',
  look,
};

interface Part {
  readonly since: NodeSince;
  readonly share: number;
  readonly capacityShare: number;
}

function look(past: Past): Look {
  const then = past.ago(WINDOW_S);
  if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
  const nodes = nodesSince(then, past.now).filter(
    ({ node, started }) => node.capacity > 0 && (node.isOpen || started > 0),
  );
  const starts = nodes.reduce((sum, { started }) => sum + started, 0);
  if (nodes.length < 2) return { kind: 'seen', suspicions: [], why: 'There is one node: it takes all' };
  if (starts < STARTS_MIN)
    return { kind: 'seen', suspicions: [], why: `Only ${starts} attempts within the window` };
  const work = nodes.reduce((sum, { startedWorkUs }) => sum + startedWorkUs, 0);
  const capacity = nodes.reduce((sum, { node }) => sum + node.capacity, 0);
  const parts = nodes.map((since): Part => {
    return { since, share: since.startedWorkUs / work, capacityShare: since.node.capacity / capacity };
  });
  const use = work / capacity / (past.now.at - then.at);
  const divergence = parts.reduce((sum, part) => sum + divergenceOf(part), 0);
  const byDesign = Math.max(0, Math.log(1 / Math.max(1e-9, use)));
  const excess = divergence - byDesign - (nodes.length - 1) / (2 * starts);
  if (excess < WARN_NATS) return { kind: 'seen', suspicions: [], why: 'No node takes more than it can do' };
  const [worst] = parts.toSorted((a, b) => divergenceOf(b) - divergenceOf(a)) as [Part];
  if (worst.share < SHARE_RATIO * worst.capacityShare)
    return { kind: 'seen', suspicions: [], why: 'No node takes much more than its part' };
  const { node, started, served, failed, refused } = worst.since;
  if (served > SERVED_MAX * started)
    return { kind: 'seen', suspicions: [], why: 'Who takes most serves what it takes' };
  return {
    kind: 'seen',
    suspicions: [
      {
        subject: { kind: 'node', id: node.id },
        severity: excess >= PAGE_NATS ? 'page' : 'warn',
        evidence: {
          divergenceNats: told(divergence),
          byDesignNats: told(byDesign),
          excessNats: told(excess),
          share: told(worst.share),
          capacityShare: told(worst.capacityShare),
          started,
          served,
          failed: failed + refused,
        },
        says: `${node.id} takes ${percent(worst.share)} of the work with ${percent(worst.capacityShare)} of the capacity, and serves ${served} of ${started}`,
      },
    ],
  };
}

function divergenceOf({ share, capacityShare }: Part): number {
  return share === 0 ? 0 : share * Math.log(share / capacityShare);
}
