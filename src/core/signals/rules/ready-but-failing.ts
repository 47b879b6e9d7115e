/**
 * The health page says that the node is well, its users say that it fails: differential observability (Huang et al.,
 * "Gray failure", HotOS 2017). It fails twice what all others together may fail at most (the upper end of their interval, Wilson
 * 1927), and so many failures are no chance there (the exact binomial tail). Two intervals that do not overlap would be a weak test of few
 * attempts: where all fail a twentieth, one node of a few hundred has five failures of twenty-five.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import { chanceOfAtLeast, percent, told, wilson } from '../statistics.ts';
import { nodesSince } from './since.ts';

/** Of the share that the others fail. */
const Z = 3;
/** All nodes are compared at every look, for years. */
const CHANCE = 1e-6;
const TIMES = 2;
const WINDOW_S = 300;
const WINDOW_S_MIN = 30;
const ATTEMPTS_MIN = 20;
const FAILED_MIN = 5;
const FAILED_RATIO = 0.05;

export const readyButFailing: Rule = {
  signal: 'ready-but-failing',
  thresholds: {
    chance: { value: CHANCE, unit: 'probability of as many failures by chance' },
    times: { value: TIMES, unit: 'times the share that the others fail' },
    attemptsMin: { value: ATTEMPTS_MIN, unit: 'attempts' },
    failedMin: { value: FAILED_MIN, unit: 'attempts' },
    failed: { value: FAILED_RATIO, unit: 'ratio of attempts' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 5,
  leaveSamples: 30,
  remedy:
    'Cordon the node and read its engine log for the failures of its requests: its health page does not test what requests need.',
  look(past: Past): Look {
    const then = past.ago(WINDOW_S) ?? past.every10(WINDOW_S)[0];
    if (then === undefined || past.ageOf(then.at) < WINDOW_S_MIN)
      return { kind: 'blind', why: `It needs ${WINDOW_S_MIN} s of samples` };
    const nodes = nodesSince(then, past.now);
    const all = { served: 0, failed: 0 };
    for (const { served, failed } of nodes) {
      all.served += served;
      all.failed += failed;
    }
    const suspicions = nodes.flatMap(({ node, served, failed }) => {
      const attempts = served + failed;
      if (!node.isReady || attempts < ATTEMPTS_MIN || failed < FAILED_MIN) return [];
      if (failed < FAILED_RATIO * attempts) return [];
      const others = { served: all.served - served, attempts: all.served + all.failed - attempts };
      if (others.attempts < ATTEMPTS_MIN) return [];
      const peersFail = 1 - wilson(others.served, others.attempts, Z).low;
      if (failed < TIMES * peersFail * attempts) return [];
      const chance = chanceOfAtLeast(failed, attempts, peersFail);
      if (chance > CHANCE) return [];
      return [
        {
          subject: { kind: 'node', id: node.id } as const,
          severity: failed > attempts / 2 ? ('page' as const) : ('warn' as const),
          evidence: {
            attempts,
            failed,
            success: told(served / attempts),
            peersFail: told(peersFail),
            chance: told(chance),
            state: node.state,
          },
          says: `${node.id} says that it is ready and fails ${percent(failed / attempts)} of its requests; the others fail ${percent(1 - others.served / others.attempts)}`,
        },
      ];
    });
    return { kind: 'seen', suspicions };
  },
};
