import { describe, expect, test } from 'vitest';
import { nodeSpec, S } from '../../../test/support/specs.ts';
import { SlotMachine } from '../machines/slot-machine.ts';
import type { AttemptEnd } from '../observer.ts';
import { SimNode } from '../sim-node.ts';
import { RetryDelays } from './retry-delays.ts';

const FAILED: AttemptEnd = { kind: 'failed', failure: 'reset', retryable: true };
const ABORTED: AttemptEnd = { kind: 'aborted' };

function node(name: string): SimNode {
  const machine = new SlotMachine({ slots: 1, serviceUs: () => S });
  return new SimNode({ spec: nodeSpec(name), machine, rttUs: 0, beatUs: 0 }, 0);
}

function cutOff(at: number): SimNode {
  const cut = node('cut');
  cut.faults.partitioned = true;
  cut.unreachableSince = at * S;
  return cut;
}

describe('RetryDelays', () => {
  test('counts from a failure to the next start', () => {
    const delays = new RetryDelays();
    delays.attemptEnded(1, { end: FAILED, node: node('a'), sentAt: 2 * S }, 5 * S);
    delays.started(1, node('b'), 7 * S);
    expect(delays.report()).toMatchObject({ retryDelayMs: { mean: 2_000, max: 2_000 }, retriedRatio: 1 });
  });

  test('counts from when the node could not be reached, or from the start of what was sent there later', () => {
    const delays = new RetryDelays();
    delays.attemptEnded(1, { end: ABORTED, node: cutOff(10), sentAt: 4 * S }, 30 * S);
    delays.attemptEnded(2, { end: FAILED, node: cutOff(10), sentAt: 20 * S }, 21 * S);
    for (const user of [1, 2]) delays.started(user, node('b'), 31 * S);
    expect(delays.report().retryDelayMs).toMatchObject({ p50: 11_000, max: 21_000 });
  });

  test('takes several losses in a row for one, and a start where nobody can be reached for none', () => {
    const delays = new RetryDelays();
    delays.attemptEnded(1, { end: FAILED, node: cutOff(10), sentAt: 12 * S }, 13 * S);
    delays.started(1, cutOff(10), 13 * S);
    delays.attemptEnded(1, { end: FAILED, node: cutOff(10), sentAt: 13 * S }, 14 * S);
    delays.started(1, node('b'), 15 * S);
    delays.started(1, node('b'), 25 * S);
    expect(delays.report()).toMatchObject({ retryDelayMs: { mean: 3_000, max: 3_000 }, retriedRatio: 1 });
  });

  test('is silent on answers, refusals, and attempts that were stopped on a node that is well', () => {
    const delays = new RetryDelays();
    const ends: readonly AttemptEnd[] = [{ kind: 'ok' }, ABORTED, { kind: 'lost' }];
    ends.forEach((end, user) => delays.attemptEnded(user, { end, node: node('a'), sentAt: 0 }, S));
    expect(delays.report()).toEqual({});
  });

  test('tells the share of losses that were started again', () => {
    const delays = new RetryDelays();
    for (const user of [1, 2]) delays.attemptEnded(user, { end: FAILED, node: node('a'), sentAt: 0 }, S);
    delays.userEnded(1);
    for (const user of [1, 2]) delays.started(user, node('b'), 2 * S);
    expect(delays.report()).toMatchObject({ retryDelayMs: { mean: 1_000 }, retriedRatio: 0.5 });
  });
});
