/** Streams on engines that compute prompts in turn, through the whole scheduler. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { TaskSpec } from '../request/task.ts';
import type { NodeSpec } from './events.ts';

const BATCHING = { batching: true, slots: 16 };

function world(nodes: readonly string[], change: Partial<NodeSpec> = BATCHING, swapMs = 0): CheckedScheduler {
  const config = defaultSchedulerConfig({ health: { slowStartTasks: 0 }, placement: { swapMs } });
  const checked = new CheckedScheduler(config);
  for (const id of nodes) checked.apply({ kind: 'node-registered', node: nodeSpec(id, change) });
  return checked;
}

/** Ten seconds of work, of which the first byte needs one. */
function stream(checked: CheckedScheduler, id: number, change: Partial<TaskSpec> = {}): string | undefined {
  const deadlineAt = checked.now + 60 * S;
  checked.submit(taskSpec(id, { stream: true, workUs: 10 * S, firstByteWorkUs: S, deadlineAt, ...change }));
  return checked.permits.get(id)?.nodeId ?? checked.outcomes.get(id)?.kind;
}

function begin(checked: CheckedScheduler, id: number): void {
  checked.apply({ kind: 'attempt-first-byte', taskId: id });
}

/** Streams one after the other, beside one another at the rate of `1 / slowness`, whose first bytes come at once. */
function serveBeside(checked: CheckedScheduler, ids: readonly number[], slowness: number): void {
  for (const id of ids) {
    stream(checked, id, { deadlineAt: checked.now + 1_000 * S });
    checked.advance(S);
    begin(checked, id);
  }
  checked.advance(10 * S * slowness);
  for (const id of ids) checked.end(id);
}

/** A node that was seen with one stream, which ran and began as fast as the reference. */
function seenOnce(): CheckedScheduler {
  const checked = world(['a']);
  stream(checked, 1);
  checked.advance(S);
  begin(checked, 1);
  checked.advance(9 * S);
  checked.end(1);
  return checked;
}

/** The same, and since then with several: each ran at a tenth of its speed, and began in a second. */
function seasoned(): CheckedScheduler {
  const checked = seenOnce();
  for (let round = 0; round < 10; round++)
    serveBeside(
      checked,
      Array.from({ length: 4 }, (_, nth) => 100 + 10 * round + nth),
      10,
    );
  return checked;
}

describe('a stream on an engine that batches', () => {
  test('is let in where its first byte comes in time, however slowly streams run beside each other there', () => {
    const checked = seasoned();
    for (const id of [1_000, 1_001, 1_002]) {
      stream(checked, id);
      begin(checked, id);
    }
    // At a tenth of the speed four seconds would be forty.
    expect(stream(checked, 1_003, { firstByteWorkUs: 4 * S, deadlineAt: checked.now + 10 * S })).toBe('a');
  });

  test('is not sent where the prompts before it make it late', () => {
    const checked = seenOnce();
    expect(stream(checked, 2, { firstByteWorkUs: 8 * S })).toBe('a');
    expect(stream(checked, 3, { deadlineAt: checked.now + 5 * S })).toBeUndefined();
    begin(checked, 2);
    expect(checked.permits.get(3)?.nodeId).toBe('a');
  });

  test('is offered a node anew, which it declined, as soon as fewer prompts are before it', () => {
    const checked = seenOnce();
    stream(checked, 2);
    begin(checked, 2);
    stream(checked, 3, { firstByteWorkUs: 8 * S });
    stream(checked, 4, { deadlineAt: checked.now + 5 * S });
    checked.end(2);
    expect(checked.permits.has(4), 'late behind the prompt of 3').toBe(false);
    begin(checked, 3);
    expect(checked.permits.get(4)?.nodeId).toBe('a');
  });

  test('goes where fewer prompts are before it', () => {
    const checked = world(['a', 'b']);
    for (const id of [1, 2]) stream(checked, id);
    checked.advance(S);
    for (const id of [1, 2]) begin(checked, id);
    checked.advance(9 * S);
    for (const id of [1, 2]) checked.end(id);
    const first = stream(checked, 3, { firstByteWorkUs: 9 * S });
    const second = stream(checked, 4);
    checked.advance(S);
    begin(checked, 4);
    // Both have one; the other one's prompt is computed.
    expect(second).not.toBe(first);
    expect([5, 6].map((id) => stream(checked, id))).toEqual([second, second]);
  });

  test.each([
    ['ended', { kind: 'ok' }],
    ['failed', { kind: 'failed', failure: 'reset', retryable: false }],
    ['was declined', { kind: 'declined' }],
  ] as const)('that %s without a first byte is waited for no more', (_, result) => {
    const checked = world(['a']);
    stream(checked, 1);
    checked.advance(10 * S);
    checked.end(1);
    stream(checked, 2, { firstByteWorkUs: 8 * S });
    checked.end(2, result);
    checked.advance(S);
    expect(stream(checked, 3, { deadlineAt: checked.now + 5 * S })).toBe('a');
  });

  test('whose prompt waits keeps nobody out who is no stream', () => {
    const checked = world(['a']);
    stream(checked, 1);
    checked.advance(10 * S);
    checked.end(1);
    stream(checked, 2, { firstByteWorkUs: 8 * S });
    checked.submit(taskSpec(3, { deadlineAt: checked.now + 5 * S }));
    expect(checked.permits.get(3)?.nodeId).toBe('a');
  });
});

describe('a stream on a node with slots', () => {
  test('waits for no prompt of another slot', () => {
    const checked = world(['a'], { slots: 4 });
    stream(checked, 1);
    checked.advance(10 * S);
    checked.end(1);
    stream(checked, 2, { firstByteWorkUs: 8 * S });
    expect(stream(checked, 3, { deadlineAt: checked.now + 5 * S })).toBe('a');
  });
});

describe('first bytes of one model', () => {
  const TWO = { ...BATCHING, models: [{ model: 'm' }, { model: 'slow' }] };

  function serveAlone(checked: CheckedScheduler, id: number, model: string, untilFirstUs: number): void {
    stream(checked, id, { model });
    checked.advance(untilFirstUs);
    begin(checked, id);
    checked.advance(S);
    checked.end(id);
  }

  test('say nothing of another one on the same node', () => {
    const checked = world(['a'], TWO);
    for (let id = 1; id <= 20; id++)
      serveAlone(checked, id, id % 2 === 0 ? 'm' : 'slow', id % 2 === 0 ? S : 9 * S);
    const within = { deadlineAt: checked.now + 4 * S };
    expect(stream(checked, 100, { model: 'slow', ...within })).toBe('rejected');
    expect(stream(checked, 101, { model: 'm', ...within })).toBe('a');
  });

  test('are doubted with the rates of its tasks: no deadline is refused for ever by what was measured once', () => {
    const checked = world(['a']);
    for (let id = 1; id <= 20; id++) serveAlone(checked, id, 'm', 20 * S);
    expect(stream(checked, 100, { deadlineAt: checked.now + 10 * S })).toBe('rejected');
    checked.advance(checked.config.placement.exploreEveryMs * 1_000 + S);
    expect(stream(checked, 101, { deadlineAt: checked.now + 10 * S })).toBe('a');
    checked.advance(S);
    begin(checked, 101);
    expect(stream(checked, 102, { deadlineAt: checked.now + 10 * S })).toBe('a');
  });

  test('do not teach the time of loading it', () => {
    const checked = world(['a'], TWO, 5_000);
    for (let id = 1; id <= 20; id++) serveAlone(checked, id, id % 2 === 0 ? 'm' : 'slow', 6 * S);
    expect(stream(checked, 100, { model: 'slow', deadlineAt: checked.now + 8 * S })).toBe('a');
  });
});

describe('a stream that only one node begins in time', () => {
  /** Two nodes that do the whole in the same time; `a` begins late. */
  function unequal(): CheckedScheduler {
    const checked = world(['a', 'b']);
    for (const [id, other, untilFirstUs] of [
      ['b', 'a', S],
      ['a', 'b', 9 * S],
    ] as const) {
      checked.apply({ kind: 'node-cordoned', nodeId: other, cordoned: true });
      for (let nth = 0; nth < 20; nth++) {
        const taskId = 10 + nth + (id === 'a' ? 0 : 100);
        stream(checked, taskId);
        checked.advance(untilFirstUs);
        begin(checked, taskId);
        checked.advance(10 * S - untilFirstUs);
        checked.end(taskId);
      }
      checked.apply({ kind: 'node-cordoned', nodeId: other, cordoned: false });
    }
    return checked;
  }

  test('is let in and goes there', () => {
    const checked = unequal();
    expect(stream(checked, 1_000, { deadlineAt: checked.now + 4 * S })).toBe('b');
  });

  test('is refused while that one is closed', () => {
    const checked = unequal();
    checked.apply({ kind: 'node-cordoned', nodeId: 'b', cordoned: true });
    expect(stream(checked, 1_000, { deadlineAt: checked.now + 4 * S })).toBe('rejected');
  });
});

test('a stream that waits for a place is told so, and not that the node is too slow, where only the rest of it would be', () => {
  const checked = world(['a'], { ...BATCHING, slots: 1 });
  for (let id = 1; id <= 20; id++) {
    stream(checked, id);
    checked.advance(S);
    begin(checked, id);
    checked.advance(99 * S);
    checked.end(id);
  }
  stream(checked, 100);
  begin(checked, 100);
  checked.submit(
    taskSpec(101, {
      stream: true,
      workUs: 10 * S,
      firstByteWorkUs: S,
      deadlineAt: checked.now + 5 * S,
      className: 'critical',
    }),
  );
  const told = checked.scheduler.explain(101, checked.now);
  expect(JSON.stringify(told?.gates)).toContain('no-room');
  expect(JSON.stringify(told)).not.toContain('too-slow');
});
