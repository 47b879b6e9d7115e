/** What is told of a request that the gate per flow refused. */
import { expect, test } from 'vitest';
import { defaultSchedulerConfig } from '../../core/config/index.ts';
import type { RequestFacts } from '../../runtime/contract.ts';
import { endingOf } from './finished.ts';

function gateOf(className: string, facts: Partial<RequestFacts> = {}): string | undefined {
  const timeline = { received: 0, admitted: -1, decided: -1, sent: -1, firstByte: -1, done: 2 };
  const ending = endingOf(
    {
      id: 'r',
      state: 'rejected',
      reason: 'deadline-infeasible',
      className,
      tenant: 't',
      model: 'm',
      nodeId: '',
      attempts: 0,
      timeline,
      facts: {
        workMs: 1_000,
        deadlineMs: 60_000,
        deadlineWished: true,
        stream: false,
        failures: [],
        ...facts,
      },
    },
    { scheduler: defaultSchedulerConfig(), nodes: () => [] },
  );
  return ending.gates[0]?.detail;
}

test('endingOf tells how much may wait: of the first class a quarter of the deadline, of others 5 s at most', () => {
  expect(gateOf('critical')).toMatch(/at most 15\.0 s may wait for its deadline of 60\.0 s \(asked for\)$/);
  expect(gateOf('normal')).toMatch(/at most 5\.0 s may wait for its deadline of 60\.0 s \(asked for\)$/);
  expect(gateOf('critical', { deadlineWished: false })).toContain('at most about 15.0 s');
});

test('endingOf tells that less may wait while the queue stands', () => {
  const cause =
    '70 % of this flow was refused in the last 20 s, so its queue is kept at 14 % of the usual length';
  expect(gateOf('normal', { cause })).toMatch(
    /at most 5\.0 s may wait for its deadline of 60\.0 s \(asked for\) \(70 % of this flow was refused/,
  );
});
