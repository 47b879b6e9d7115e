import { describe, expect, it } from 'vitest';
import { createImageEngine } from './image-engine.ts';
import { createVirtualClock } from './virtual-clock.ts';

function rig(options: { lateMs?: number; queueMax?: number } = {}) {
  const clock = createVirtualClock({ lateMs: options.lateMs ?? 0 });
  const engine = createImageEngine(clock, { queueMax: options.queueMax ?? 100 });
  const ends: { name: string; at: number; queuedMs: number }[] = [];
  const submit = (name: string, serviceMs: number) =>
    engine.submit({
      serviceMs,
      finished: (times) => ends.push({ name, at: clock.now(), queuedMs: times.queuedMs }),
    });
  return { clock, engine, ends, submit };
}

describe('imageEngine', () => {
  it('runs one task at a time in order of arrival', () => {
    const { clock, ends, submit } = rig();
    submit('a', 100);
    submit('b', 50);
    clock.advance(200);
    expect(ends).toEqual([
      { name: 'a', at: 100, queuedMs: 0 },
      { name: 'b', at: 150, queuedMs: 100 },
    ]);
  });

  it('starts a waiting task at the exact end of the one before, however late the timer fired', () => {
    const { clock, ends, submit } = rig({ lateMs: 4 });
    for (const name of ['a', 'b', 'c', 'd', 'e']) submit(name, 100);
    clock.advance(600);
    expect(ends.map((end) => end.at)).toEqual([104, 204, 304, 404, 504]);
  });

  it('dates the next arrival back by the lateness of its own report', () => {
    const { clock, engine, ends, submit } = rig({ lateMs: 4 });
    submit('a', 100);
    clock.advance(105);
    submit('b', 100);
    clock.advance(200);
    expect(ends.map((end) => end.at)).toEqual([104, 205]);
    expect(engine.busyMs()).toBe(200);
  });

  it('does not date back further than to the end of the task before', () => {
    const { clock, ends, submit } = rig({ lateMs: 50 });
    submit('a', 100);
    clock.advance(150);
    submit('b', 100);
    clock.advance(300);
    expect(ends.map((end) => end.at)).toEqual([150, 275]);
  });

  it('frees the slot at once when the running task is cancelled', () => {
    const { clock, engine, ends, submit } = rig();
    const ticket = submit('a', 100);
    submit('b', 50);
    clock.advance(30);
    expect(ticket?.cancel()).toBe(30);
    clock.advance(50);
    expect(ends).toEqual([{ name: 'b', at: 80, queuedMs: 30 }]);
    expect(engine.busyMs()).toBe(80);
    expect(ticket?.cancel()).toBe(-1);
  });

  it('forgets a waiting task that is cancelled', () => {
    const { clock, engine, ends, submit } = rig();
    submit('a', 100);
    const ticket = submit('b', 50);
    submit('c', 10);
    ticket?.cancel();
    expect(engine.waiting).toBe(1);
    clock.advance(200);
    expect(ends.map((end) => end.name)).toEqual(['a', 'c']);
    expect([engine.waiting, engine.running]).toEqual([0, 0]);
  });

  it('refuses a task beyond the bound of its queue', () => {
    const { submit, engine } = rig({ queueMax: 2 });
    expect([submit('a', 1), submit('b', 1), submit('c', 1)].every((ticket) => ticket !== undefined)).toBe(
      true,
    );
    expect(submit('d', 1)).toBeUndefined();
    expect(engine.waiting).toBe(2);
  });

  it('keeps its queue short while thousands pass through it', () => {
    const { clock, engine, ends, submit } = rig({ queueMax: 5_000 });
    for (let index = 0; index < 3_000; index += 1) submit(String(index), 1);
    clock.advance(3_001);
    expect(ends.length).toBe(3_000);
    expect(ends.every((end, index) => end.name === String(index))).toBe(true);
    expect(engine.busyMs()).toBe(3_000);
  });

  it('ends nothing after it was dropped', () => {
    const { clock, engine, ends, submit } = rig();
    submit('a', 100);
    submit('b', 100);
    engine.drop();
    clock.advance(500);
    expect(ends).toEqual([]);
    expect([engine.waiting, engine.running]).toEqual([0, 0]);
  });
});
