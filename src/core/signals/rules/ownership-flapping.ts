/**
 * A node goes and comes: it leaves work and is back at it again and again. One that stays dead, and is tried again in ever longer
 * intervals, went once. Each change moves its work and forgets what it kept; no panel of nodes
 * shows it, since at every look some of them are there.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import { nodesSince } from './since.ts';

const WINDOW_S = 300;
const FLIPS_MIN = 6;

export const ownershipFlapping: Rule = {
  signal: 'ownership-flapping',
  thresholds: {
    flips: { value: FLIPS_MIN, unit: 'times that it left or came back' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 2,
  leaveSamples: 30,
  remedy:
    'Look at its heartbeats and its network, and whether two processes register under one id. Cordon it until it stays.',
  look(past: Past): Look {
    const then = past.ago(WINDOW_S) ?? past.every10(WINDOW_S)[0];
    if (then === undefined || then === past.now) return { kind: 'blind', why: 'It needs two samples' };
    const suspicions = nodesSince(then, past.now)
      .filter(({ flips }) => flips >= FLIPS_MIN)
      .map(({ node, flips }) => ({
        subject: { kind: 'node', id: node.id } as const,
        severity: flips >= 2 * FLIPS_MIN ? ('page' as const) : ('warn' as const),
        evidence: { flips, state: node.state },
        says: `${node.id} left work or came back ${flips} times within ${past.lasting(WINDOW_S)} s; now it is ${node.state}`,
      }));
    return { kind: 'seen', suspicions };
  },
};
