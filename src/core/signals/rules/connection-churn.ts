/**
 * Connections to nodes are opened again and again instead of being used again: a proxy or an engine closes them after each answer,
 * and every request pays for a handshake.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import { percent, told } from '../statistics.ts';

const WINDOW_S = 60;
const REUSE_MIN = 0.4;
const REQUESTS_MIN = 100;

export const connectionChurn: Rule = {
  signal: 'connection-churn',
  thresholds: {
    reuse: { value: REUSE_MIN, unit: 'ratio of requests on a connection that was there' },
    requestsMin: { value: REQUESTS_MIN, unit: 'requests' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 10,
  leaveSamples: 30,
  remedy: 'Let engines and proxies in front of them keep connections alive for at least five seconds.',
  look(past: Past): Look {
    const then = past.ago(WINDOW_S);
    if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
    const [old, connections] = [then.outside?.connections, past.now.outside?.connections];
    if (old === undefined || connections === undefined)
      return { kind: 'blind', why: 'Nobody counts connections here' };
    const requests = connections.requests - old.requests;
    const opened = connections.opened - old.opened;
    if (requests < REQUESTS_MIN)
      return { kind: 'seen', suspicions: [], why: `Only ${requests} requests within the window` };
    const reuse = Math.max(0, 1 - opened / requests);
    if (reuse >= REUSE_MIN) return { kind: 'seen', suspicions: [], why: 'Connections are used again' };
    return {
      kind: 'seen',
      suspicions: [
        {
          subject: { kind: 'gateway', id: '' },
          severity: 'warn',
          evidence: { requests, opened, reuse: told(reuse) },
          says: `Only ${percent(reuse)} of ${requests} requests found an open connection to their node`,
        },
      ],
    };
  },
};
