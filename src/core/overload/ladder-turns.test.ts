/** Many models: what one turn of samples looks at, and that nobody is forgotten. */
import { describe, expect, test } from 'vitest';
import { LoadedFleet } from '../../../test/support/loaded-fleet.ts';
import { S } from '../../../test/support/specs.ts';

const MODELS = Array.from({ length: 100 }, (_, i) => ({ model: `m${i}` }));

/** One node has all models; each has a task of a second's work waiting, so the queue is long for all. */
function crowded(): LoadedFleet {
  const fleet = new LoadedFleet({ gates: { 'flow-wait': 'off' } }).node('a', { models: MODELS });
  for (const { model } of MODELS) fleet.submit({ model, deadlineAt: 600 * S });
  return fleet;
}

const raised = (fleet: LoadedFleet): number => fleet.view.models.filter(({ stage }) => stage > 0).length;

describe('a hundred models', () => {
  test('are looked at sixteen in a turn, each in its turn', () => {
    const fleet = crowded();
    const seen: number[] = [];
    for (let turn = 1; turn <= 7; turn++) {
      fleet.run.runUntil((turn * S) / 2);
      seen.push(fleet.view.models.filter(({ queue }) => queue.depth > 0).length);
    }
    expect(seen).toEqual([16, 32, 48, 64, 80, 96, 100]);
  });

  test('are raised by the same queue, though each is looked at in every seventh turn only', () => {
    const fleet = crowded();
    fleet.run.runUntil(40 * S);
    expect(raised(fleet)).toBe(100);
  });

  test('are looked at when a request of theirs comes, if that was not just done', () => {
    const fleet = crowded();
    fleet.run.runUntil(S / 2);
    const depthOf = (model: string): number => fleet.model(model).queue.depth;
    expect(depthOf('m50')).toBe(0);
    fleet.run.runUntil(S / 2 + 1);
    fleet.submit({ model: 'm50', deadlineAt: 600 * S });
    expect(depthOf('m50')).toBe(99);
    fleet.submit({ model: 'm50', deadlineAt: 600 * S });
    expect(depthOf('m50'), 'not twice within half a second').toBe(99);
  });

  test('go down by themselves when the load is over, and no more samples are asked for', () => {
    const fleet = crowded();
    fleet.run.runUntil(40 * S);
    fleet.run.runUntil(300 * S);
    expect(raised(fleet)).toBe(0);
    expect(fleet.run.scheduler.nextWakeAt()).toBe(Number.POSITIVE_INFINITY);
    fleet.submit({ model: 'm3' });
    expect(fleet.run.scheduler.nextWakeAt()).toBe(300 * S + S / 2);
  });
});
