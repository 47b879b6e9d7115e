import { describe, expect, it } from 'vitest';
import { createTextEngine, type TextEngineOptions } from './text-engine.ts';
import { createVirtualClock } from './virtual-clock.ts';

function rig(options: Partial<TextEngineOptions> = {}) {
  const clock = createVirtualClock();
  const engine = createTextEngine(clock, {
    sequencesMax: 4,
    cacheTokensMax: 1_000,
    queueMax: 10,
    stepMs: (batch) => 10 + batch.sequences + batch.newPromptTokens * 0.1,
    ...options,
  });
  const seen: { name: string; at: number; count: number; ended: boolean }[] = [];
  const submit = (name: string, promptTokens: number, outputTokens: number) =>
    engine.submit({
      promptTokens,
      outputTokens,
      tokens: (count, ended) => seen.push({ name, at: clock.now(), count, ended }),
    });
  return { clock, engine, seen, submit };
}

describe('textEngine', () => {
  it('emits one token per sequence and step, the prompt paid in the first', () => {
    const { clock, seen, submit } = rig();
    submit('a', 100, 2);
    clock.advance(100);
    expect(seen).toEqual([
      { name: 'a', at: 21, count: 1, ended: false },
      { name: 'a', at: 32, count: 1, ended: true },
    ]);
  });

  it('lets a new sequence join at the next step and slows all by the batch', () => {
    const { clock, seen, submit } = rig();
    submit('a', 0, 3);
    clock.advance(5);
    submit('b', 0, 1);
    clock.advance(100);
    expect(seen.map((one) => [one.name, one.at])).toEqual([
      ['a', 11],
      ['a', 23],
      ['b', 23],
      ['a', 34],
    ]);
  });

  it('makes a sequence wait while all slots are taken', () => {
    const { clock, engine, submit } = rig({ sequencesMax: 1 });
    submit('a', 0, 2);
    submit('b', 0, 1);
    expect([engine.running, engine.waiting]).toEqual([1, 1]);
    clock.advance(22);
    expect([engine.running, engine.waiting]).toEqual([1, 0]);
  });

  it('makes a sequence wait while its context does not fit the cache', () => {
    const { clock, engine, submit } = rig({ cacheTokensMax: 100 });
    submit('a', 80, 1);
    submit('b', 50, 1);
    clock.advance(1);
    expect(engine.waiting).toBe(1);
    clock.advance(200);
    expect([engine.running, engine.waiting, engine.cacheUse]).toEqual([0, 0, 0]);
  });

  it('frees a cancelled sequence and leaves the others untouched', () => {
    const { clock, engine, seen, submit } = rig();
    const ticket = submit('a', 10, 100);
    submit('b', 0, 2);
    clock.advance(15);
    expect(ticket?.cancel()).toBe(1);
    clock.advance(100);
    expect(seen.filter((one) => one.name === 'b' && one.ended).length).toBe(1);
    expect([engine.running, engine.cacheUse]).toEqual([0, 0]);
    expect(ticket?.cancel()).toBe(-1);
  });

  it('lets the next sequence start when the only running one is cancelled', () => {
    const { clock, seen, submit } = rig({ sequencesMax: 1 });
    const ticket = submit('a', 0, 100);
    submit('b', 0, 1);
    clock.advance(1);
    ticket?.cancel();
    clock.advance(100);
    expect(seen.map((one) => one.name)).toEqual(['b']);
  });

  it('delivers several tokens at once when steps are shorter than the grain of timers', () => {
    const { clock, seen, submit } = rig({ stepMs: () => 0.25 });
    submit('a', 0, 8);
    clock.advance(10);
    expect(seen.reduce((sum, one) => sum + one.count, 0)).toBe(8);
    expect(seen.length).toBeLessThan(8);
  });

  it('refuses a sequence beyond the bound of its queue', () => {
    const { submit } = rig({ sequencesMax: 1, queueMax: 1 });
    submit('a', 0, 1);
    submit('b', 0, 1);
    expect(submit('c', 0, 1)).toBeUndefined();
  });
});
