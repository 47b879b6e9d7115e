import { describe, expect, test } from 'vitest';
import { createSlots, type SlotLease, type Slots } from './slots.ts';

const never = new AbortController().signal;

async function granted(slots: Slots): Promise<SlotLease> {
  const answer = await slots.acquire(never);
  if (answer.kind !== 'granted') throw new Error(`Expected a slot, got ${answer.kind}`);
  return answer.lease;
}

describe('createSlots', () => {
  test('grants each slot once and defers the next request until a release', async () => {
    const slots = createSlots(2, 4);
    const first = await granted(slots);
    const second = await granted(slots);
    expect(new Set([first.slot, second.slot])).toEqual(new Set([0, 1]));
    const third = slots.acquire(never);
    expect([slots.processing, slots.deferred]).toEqual([2, 1]);
    first.release();
    expect(await third).toMatchObject({ kind: 'granted', lease: { slot: first.slot } });
    expect([slots.processing, slots.deferred]).toEqual([2, 0]);
  });

  test('refuses beyond the bound of its queue', async () => {
    const slots = createSlots(1, 1);
    await granted(slots);
    void slots.acquire(never);
    expect(await slots.acquire(never)).toEqual({ kind: 'queue-full' });
  });

  test('forgets a request whose client left while it waited', async () => {
    const slots = createSlots(1, 1);
    const lease = await granted(slots);
    const client = new AbortController();
    const waiting = slots.acquire(client.signal);
    client.abort();
    expect(await waiting).toEqual({ kind: 'client-left' });
    expect(slots.deferred).toBe(0);
    lease.release();
    expect(slots.processing).toBe(0);
  });

  test('takes a slot back once, however often it is released', async () => {
    const slots = createSlots(1, 4);
    const lease = await granted(slots);
    lease.release();
    lease.release();
    await granted(slots);
    void slots.acquire(never);
    expect([slots.processing, slots.deferred]).toEqual([1, 1]);
  });
});
