import { describe, expect, test } from 'vitest';
import { DECISIONS_MAX, DecisionRing, PLACEMENTS_MAX } from './decision-ring.ts';

const NO_EVENT = { kind: 'tick' } as const;

describe('DecisionRing', () => {
  test('keeps the last decisions and tells which are gone', () => {
    const ring = new DecisionRing();
    expect(ring.page(0, 10)).toEqual({ decisions: [], oldest: 0, newest: 0 });
    ring.event(NO_EVENT, 5);
    for (let id = 1; id <= DECISIONS_MAX + 3; id++) ring.admitted(id);
    const { decisions, oldest, newest } = ring.page(0, 2);
    expect([oldest, newest]).toEqual([4, DECISIONS_MAX + 3]);
    expect(decisions.map(({ seq, taskId, at }) => [seq, taskId, at])).toEqual([
      [4, 4, 5],
      [5, 5, 5],
    ]);
    expect(ring.page(newest - 1, 10).decisions.map((row) => row.taskId)).toEqual([newest]);
    expect(ring.of(3, 10)).toEqual([]);
    expect(ring.of(4, 10)).toHaveLength(1);
  });

  test('tells a placement with its nodes until the ring of placements came round', () => {
    const ring = new DecisionRing();
    const ranking = {
      nodes: [{ spec: { id: 'a' } }, { spec: { id: 'b' } }, null],
      doneUs: Float64Array.of(1_000, 2_000, 0),
      size: 2,
      refusals: Int32Array.of(3, 0, 1, 0),
    } as unknown as Parameters<DecisionRing['placed']>[2];
    const place = (taskId: number): void => {
      ring.event(NO_EVENT, taskId);
      ring.placed(taskId, 'a', ranking);
      ring.assign(taskId, 'a', 1);
      ring.settle();
    };
    place(1);
    expect(ring.of(1, 10)).toMatchObject([
      {
        kind: 'placed',
        nodeId: 'a',
        number: 1,
        placement: {
          nodes: [
            { nodeId: 'a', doneUs: 1_000 },
            { nodeId: 'b', doneUs: 2_000 },
          ],
          refusals: { unfit: 3, 'no-room': 1 },
        },
      },
    ]);
    for (let id = 2; id <= PLACEMENTS_MAX; id++) place(id);
    expect(ring.of(1, 10)[0]).toHaveProperty('placement');
    place(PLACEMENTS_MAX + 1);
    expect(ring.of(1, 10)[0]).not.toHaveProperty('placement');
    expect(ring.of(1, 10)[0]?.kind).toBe('placed');
  });

  test('tells a wait after the admission, and no wait for what a later event placed', () => {
    const ring = new DecisionRing();
    const counts = { nodes: [], doneUs: new Float64Array(3), size: 0, refusals: Int32Array.of(0, 0, 2, 0) };
    ring.event(NO_EVENT, 1);
    ring.queued(7, counts as unknown as Parameters<DecisionRing['queued']>[1]);
    ring.admitted(7);
    ring.settle();
    ring.event(NO_EVENT, 2);
    ring.settle();
    expect(ring.of(7, 10).map(({ kind }) => kind)).toEqual(['admitted', 'queued']);
    expect(ring.of(7, 10)[1]?.placement).toEqual({ nodes: [], refusals: { 'no-room': 2 } });
  });
});
