import { describe, expect, it } from 'vitest';
import type { LoadTick } from './load.ts';
import { bar, createView, type ViewFrame } from './view.ts';

const TICK: LoadTick = {
  users: 100,
  ended: { served: 40, refused: 5, failed: 0, cancelled: 1 },
  attempts: 120,
  refusedAttempts: 20,
  outstanding: 12,
  untypedErrors: 0,
  embeddingServed: 3,
};

function frame(elapsedMs: number): ViewFrame {
  return {
    title: 'spillway',
    phase: 'calm',
    elapsedMs,
    totalMs: 10_000,
    tick: TICK,
    before: { ...TICK, users: 50, attempts: 60, refusedAttempts: 10, ended: { ...TICK.ended, served: 30 } },
    betweenMs: 500,
    queue: { depth: 7, workMs: 90, running: 2, byClass: { critical: { depth: 7, workMs: 90 } } },
    nodes: [{ id: 't4-1', state: 'active', hardware: 'T4', inflight: 1, drainMs: 500, rates: [] }],
    rssBytes: 123_000_000,
  };
}

function screen(isTerminal: boolean): { written: string[]; view: ReturnType<typeof createView> } {
  const written: string[] = [];
  return {
    written,
    view: createView({ isTerminal, columns: 100, write: (text) => void written.push(text) }),
  };
}

describe('view', () => {
  it('says that it is emulated, with rates, queues, drain times and memory', () => {
    const { written, view } = screen(true);
    view.show(frame(1_000));
    const text = written.join('');
    for (const part of ['EMULATED', '100/s', '20/s', 'critical', '7 waiting', 't4-1', '500 ms', '123 MB']) {
      expect(text).toContain(part);
    }
  });

  it('draws the next frame over the one before', () => {
    const { written, view } = screen(true);
    view.show(frame(1_000));
    view.show(frame(1_500));
    const lines = (written[0]?.split('\n').length ?? 0) - 1;
    expect(written[1]?.startsWith(`\u001b[${lines}A\u001b[J`)).toBe(true);
  });

  it('writes a plain line every few seconds where there is no terminal', () => {
    const { written, view } = screen(false);
    for (let at = 0; at <= 10_000; at += 500) view.show(frame(at));
    expect(written).toHaveLength(3);
    expect(written[0]).toContain('emulated');
    expect(written.join('')).not.toContain('\u001b');
  });
});

it('bar is empty at 0, full at 1 and beyond, and never wider', () => {
  expect(bar(0, 4)).toBe('····');
  expect(bar(0.5, 4)).toBe('██··');
  expect(bar(3, 4)).toBe('████');
  expect(bar(0.28, 4)).toHaveLength(4);
});
