import { describe, expect, test } from 'vitest';
import { type CheckedPolicy, policyWorld } from '../../../test/support/checked-policy.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import type { AttemptResult, FailureKind } from '../../core/request/outcome.ts';

function failed(failure: FailureKind): AttemptResult {
  return { kind: 'failed', failure, retryable: true };
}

function submitAll(world: CheckedPolicy, tenants: string, className = 'normal'): void {
  for (const tenant of tenants) world.submit(taskSpec(world.specs.size + 1, { tenant, className }));
}

/** Ends what runs, the longest running first, until nothing waits; whose requests ran, in order. */
function tenantsServed(world: CheckedPolicy): string {
  let served = '';
  for (let [id] = world.permits.keys(); id !== undefined; [id] = world.permits.keys()) {
    served += world.specs.get(id)?.tenant;
    world.end(id);
  }
  return served;
}

describe('model-of-litellm', () => {
  test('draws by stated weights, or evenly without them', () => {
    const share = (weights: string): number => {
      const world = policyWorld(
        'model-of-litellm',
        [
          { rate: 4, slots: 999 },
          { rate: 1, slots: 999 },
        ],
        {
          weights,
        },
      );
      for (let id = 1; id <= 900; id++) world.submit(taskSpec(id));
      return world.runningOn('n0').length / 900;
    };
    expect(share('stated')).toBeGreaterThan(0.75);
    expect(share('none')).toBeLessThan(0.55);
  });

  test('cools a deployment down after one refusal, and refuses for that long when all are cooling', () => {
    const world = policyWorld('model-of-litellm', [{ rate: 1 }, { rate: 1 }]);
    world.submit(taskSpec(1));
    world.end(1, failed('refused'));
    world.end(1, failed('refused'));
    expect(world.submit(taskSpec(2))).toMatchObject({
      kind: 'rejected',
      hint: { retryable: true, afterUs: 5 * S },
    });
    world.advance(5 * S);
    world.submit(taskSpec(3));
    expect(world.permits.has(3)).toBe(true);
  });

  test('cools down when more than half of five answers of a minute failed, but not the only one of a model', () => {
    const failures = (nodes: number): number => {
      const rates = Array.from({ length: nodes }, () => ({ rate: 1 }));
      const world = policyWorld('model-of-litellm', rates, { attempts: 1 });
      for (let id = 1; id <= 50; id++) {
        if (world.submit(taskSpec(id)) !== undefined) return id - 1;
        world.end(id, failed('server-error'));
      }
      return 50;
    };
    expect(failures(2)).toBe(10);
    expect(failures(1)).toBe(50);
  });

  test('least-busy takes the one with fewest requests, latency-based the one that answered fastest', () => {
    const busy = policyWorld(
      'model-of-litellm',
      [
        { rate: 1, slots: 9 },
        { rate: 1, slots: 9 },
      ],
      {
        strategy: 'least-busy',
      },
    );
    submitAll(busy, 'aaa');
    expect([1, 2, 3].map((id) => busy.permits.get(id))).toEqual(['n0', 'n1', 'n0']);
    const latency = policyWorld('model-of-litellm', [{ rate: 1 }, { rate: 1 }], {
      strategy: 'latency-based',
    });
    for (let id = 1; id <= 6; id++) {
      latency.submit(taskSpec(id));
      latency.advance(latency.permits.get(id) === 'n0' ? 9 * S : S);
      latency.end(id);
    }
    expect([3, 4, 5, 6].map((id) => latency.tried.get(id)?.[0])).toEqual(['n1', 'n1', 'n1', 'n1']);
  });
});

describe('model-of-llm-d', () => {
  test('holds requests back while every server has five waiting', () => {
    const world = policyWorld('model-of-llm-d', [{ rate: 1 }, { rate: 1 }]);
    submitAll(world, 'a'.repeat(20));
    expect(world.permits.size).toBe(12);
    expect(world.runningOn('n0').length).toBe(6);
  });

  test('takes flows of a band in turn by count, the highest band first', () => {
    const world = policyWorld('model-of-llm-d', [{ rate: 1 }], { queueDepth: 1 });
    submitAll(world, 'xx');
    submitAll(world, 'aaaab');
    submitAll(world, 'c', 'critical');
    expect(tenantsServed(world)).toBe('xxcabaaa');
  });

  test('as one queue per band it serves by arrival, or by deadline', () => {
    const arrival = policyWorld('model-of-llm-d', [{ rate: 1 }], {
      queueDepth: 1,
      fairness: 'global-strict',
    });
    submitAll(arrival, 'xxaab');
    expect(tenantsServed(arrival)).toBe('xxaab');
    const deadline = policyWorld('model-of-llm-d', [{ rate: 1 }], { queueDepth: 1, ordering: 'edf' });
    for (const [index, at] of [50, 50, 40, 30].entries())
      deadline.submit(taskSpec(index + 1, { deadlineAt: at * S }));
    expect([...deadline.permits.keys()]).toEqual([1, 2]);
    deadline.end(1);
    expect([...deadline.permits.keys()]).toEqual([2, 4]);
  });

  test('leaves servers whose cache is full, and holds back when all are', () => {
    const world = policyWorld('model-of-llm-d', []);
    for (const id of ['n0', 'n1'])
      world.apply({ kind: 'node-registered', node: nodeSpec(id, { slots: 0, batching: true }) });
    world.apply({ kind: 'node-reading', nodeId: 'n0', reading: { cacheUse: 0.85 } });
    submitAll(world, 'aaa');
    expect(world.runningOn('n1')).toEqual([1, 2, 3]);
    world.apply({ kind: 'node-reading', nodeId: 'n1', reading: { cacheUse: 0.9 } });
    submitAll(world, 'a');
    expect(world.permits.has(4)).toBe(false);
    world.apply({ kind: 'node-reading', nodeId: 'n1', reading: { cacheUse: 0.1 } });
    expect(world.permits.get(4)).toBe('n1');
  });
});

describe('model-of-kubernetes-apf', () => {
  const EIGHT = Array.from({ length: 8 }, () => ({ rate: 1 }));

  test('serves a mouse between the requests of an elephant', () => {
    const world = policyWorld('model-of-kubernetes-apf', [{ rate: 1 }]);
    submitAll(world, 'eeeeeeeeeeeeeeeeeeee');
    submitAll(world, 'm');
    let ended = 0;
    for (; !world.permits.has(21); ended++) {
      world.advance(S / 100);
      world.end([...world.permits.keys()][0] as number);
    }
    expect(ended).toBeLessThan(8);
  });

  test('refuses when the queues of a flow are full, and others wait on', () => {
    const world = policyWorld('model-of-kubernetes-apf', [{ rate: 1 }], {
      queues: 4,
      handSize: 1,
      queueLengthMax: 3,
    });
    submitAll(world, 'aaaaa');
    expect(world.outcomes.get(5)).toMatchObject({ kind: 'rejected', reason: 'queue-full' });
    submitAll(world, 'b');
    expect(world.outcomes.has(6)).toBe(false);
  });

  test('removes who waited a quarter of its time', () => {
    const world = policyWorld('model-of-kubernetes-apf', [{ rate: 1 }]);
    submitAll(world, 'aa');
    world.advance(14 * S);
    expect(world.outcomes.has(2)).toBe(false);
    world.advance(2 * S);
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
  });

  test('lends idle seats at the next division, and takes them back at the one after they are asked for', () => {
    const world = policyWorld('model-of-kubernetes-apf', EIGHT);
    const low = (): number =>
      [...world.permits.keys()].filter((id) => world.specs.get(id)?.className === 'low').length;
    submitAll(world, 'aaaaaaaa', 'low');
    const nominal = low();
    expect(nominal).toBeLessThan(4);
    world.advance(10 * S);
    const borrowed = low();
    expect(borrowed).toBeGreaterThan(nominal);
    submitAll(world, 'bbbbbbbb', 'critical');
    world.advance(10 * S);
    for (const id of [...world.permits.keys()]) if (world.specs.get(id)?.className === 'low') world.end(id);
    expect(low()).toBeLessThan(borrowed);
  });
});
