/**
 * What an engine says of its load is missing or frozen. The scheduler goes on with its own count of what it sent; what it
 * loses is the sight of other people's work on that node.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';

export const staleReadings: Rule = {
  signal: 'stale-readings',
  thresholds: { nodes: { value: 1, unit: 'nodes' } },
  enterSamples: 1,
  leaveSamples: 2,
  remedy: 'Look at the metrics page of the node: whether it answers, and whether its numbers move.',
  look({ now }: Past): Look {
    const stale = now.outside?.staleReadings;
    if (stale === undefined) return { kind: 'blind', why: 'Nobody reads the pages of engines here' };
    return {
      kind: 'seen',
      suspicions: stale.map((id) => ({
        subject: { kind: 'node', id },
        severity: 'warn',
        evidence: { node: id },
        says: `What ${id} says of its load is missing or frozen; our own count of its requests decides alone`,
      })),
    };
  },
};
