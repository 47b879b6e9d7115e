import { expect, test } from 'vitest';
import type { Gateway } from '../../runtime/contract.ts';
import { createWaitingNotes } from './waiting-notes.ts';

interface World {
  nowUs: number;
  state: 'queued' | 'running';
  etaMs: number | null;
  looks: number;
  note: (publicId: string) => string;
}

function world(): World {
  const world: World = { nowUs: 5_000_000, state: 'queued', etaMs: 120.4, looks: 0, note: () => '' };
  const gateway = {
    now: () => world.nowUs,
    request: (id: string) => {
      world.looks += 1;
      const live = { state: world.state, position: 3, etaMs: world.etaMs };
      return id === 'known' ? { live } : undefined;
    },
  };
  world.note = createWaitingNotes(gateway as unknown as Gateway);
  return world;
}

test('createWaitingNotes tells the position and the estimate of a request that waits, and of no other', () => {
  const one = world();
  expect(one.note('known')).toBe('waiting position=3 eta-ms=120');
  one.etaMs = null;
  expect(one.note('known')).toBe('waiting position=3');
  expect(one.note('unknown')).toBe('waiting');
  one.state = 'running';
  expect(one.note('known')).toBe('waiting');
});

test('createWaitingNotes looks at most 20 requests up in a second', () => {
  const one = world();
  const notes = Array.from({ length: 25 }, () => one.note('known'));
  expect(notes.slice(0, 20)).toEqual(Array(20).fill('waiting position=3 eta-ms=120'));
  expect(notes.slice(20)).toEqual(Array(5).fill('waiting'));
  expect(one.looks).toBe(20);
  one.nowUs += 999_999;
  expect(one.note('known')).toBe('waiting');
  one.nowUs += 1;
  expect(one.note('known')).toBe('waiting position=3 eta-ms=120');
});
