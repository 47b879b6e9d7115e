import { describe, expect, test } from 'vitest';
import { type MetricsSink, NO_METRICS } from '../../ports/metrics-sink.ts';
import type { Beacon } from './beacon.ts';
import { EARLY_MAX, ENDS_MAX, Pairs } from './pairs.ts';
import { POORLY_MAX } from './poorly-served.ts';
import { REPEAT_BYTES_MAX, REPEAT_PLACES, REPEAT_US_MAX, RepeatWatch } from './repeat-watch.ts';
import { CLASSES_MAX, type OverRequest, UserSide } from './user-side.ts';

const MS = 1_000;

function over(change: Partial<OverRequest> = {}): OverRequest {
  return {
    publicId: 'a.1',
    className: 'normal',
    receivedAt: 0,
    bytes: 100,
    checksum: 7,
    retryCount: 0,
    outcome: 'served',
    nodeFirstByteAt: 10 * MS,
    endedAt: 50 * MS,
    clientFirstByteAt: 11 * MS,
    clientHasAllAt: 2_000 * MS,
    leftWhile: '',
    hasToken: true,
    traceId: '',
    ...change,
  };
}

function beacon(change: Partial<Beacon> = {}): Beacon {
  return { token: '', id: 'a.1', outcome: 'ok', completionMs: 3_000, traceId: '', session: '', ...change };
}

function recorded(): { metrics: MetricsSink; calls: string[] } {
  const calls: string[] = [];
  const metrics = {
    ...NO_METRICS,
    clientLeft: (phase: string) => void calls.push(phase),
    clientRetried: (_name: string, how: string) => void calls.push(how),
  };
  return { metrics, calls };
}

describe('UserSide', () => {
  test('shows server, connection and user side by side', () => {
    const side = new UserSide(NO_METRICS);
    side.over(over(), 0);
    side.told('normal', beacon({ firstByteMs: 400 }), 0);
    const [row] = side.view(0);
    const p50 = [row?.server, row?.socket, row?.users].map((one) => [
      one?.firstByte.p50Ms ?? 0,
      one?.completion.p50Ms ?? 0,
    ]);
    for (const [i, [first, whole]] of [
      [10, 50],
      [11, 2_000],
      [400, 3_000],
    ].entries()) {
      expect(p50[i]?.[0]).toBeGreaterThanOrEqual(first as number);
      expect(p50[i]?.[0]).toBeLessThan((first as number) * 1.06);
      expect(p50[i]?.[1]).toBeGreaterThanOrEqual(whole as number);
      expect(p50[i]?.[1]).toBeLessThan((whole as number) * 1.06);
    }
  });

  test('counts who left while waiting for what, and counts no time that never came', () => {
    const { metrics, calls } = recorded();
    const side = new UserSide(metrics);
    const gone = { outcome: 'cancelled', nodeFirstByteAt: -1, clientFirstByteAt: -1, clientHasAllAt: -1 };
    side.over(over({ ...gone, leftWhile: 'queued' }), 0);
    side.over(over({ leftWhile: 'sending', clientHasAllAt: -1 }), 0);
    const [row] = side.view(0);
    expect(row?.left).toMatchObject({ queued: 1, sending: 1, streaming: 0 });
    expect(row?.server.completion.count).toBe(1);
    expect(row?.socket.completion.count).toBe(0);
    expect(calls).toEqual(['queued', 'sending']);
  });

  test('counts clients that try again, by their word and by their body', () => {
    const { metrics, calls } = recorded();
    const side = new UserSide(metrics);
    const request = over();
    side.begun(request, 0);
    side.over(over({ outcome: 'queue-full' }), 0);
    side.begun({ ...request, retryCount: 1 }, 1);
    side.begun({ ...request, checksum: 8 }, 1);
    expect(calls).toEqual(['announced', 'repeated']);
    expect(side.view(1)[0]).toMatchObject({ retriesAnnounced: 1, bodiesRepeated: 1 });
  });

  test('holds its bound on classes', () => {
    const side = new UserSide(NO_METRICS);
    for (let i = 0; i < CLASSES_MAX + 5; i++) side.told(`class-${i}`, beacon(), 0);
    expect(side.view(0)).toHaveLength(CLASSES_MAX);
  });

  test('keeps the last users who were served poorly, with the trace of their request, and no more', () => {
    const side = new UserSide(NO_METRICS);
    for (let i = 0; i < 30; i++) side.told('normal', beacon({ id: `ok.${i}`, completionMs: 100 + i }), 0);
    expect(side.poorlyServed().map((one) => one.beacon.id)).not.toContain('ok.0');
    side.over(over({ publicId: 'slow', traceId: 'abc' }), 0);
    side.told('normal', beacon({ id: 'slow', completionMs: 9_000 }), 0);
    side.told('normal', beacon({ id: 'bad', outcome: 'failed' }), 0);
    expect(side.poorlyServed().slice(0, 2)).toMatchObject([
      { beacon: { id: 'bad' }, server: undefined },
      { beacon: { id: 'slow' }, server: { traceId: 'abc', isBad: false } },
    ]);
    for (let i = 0; i < POORLY_MAX + 3; i++)
      side.told('normal', beacon({ id: `bad.${i}`, outcome: 'failed' }), 0);
    const ids = side.poorlyServed().map((one) => one.beacon.id);
    expect(ids).toHaveLength(POORLY_MAX);
    expect([ids[0], ids.at(-1)]).toEqual([`bad.${POORLY_MAX + 2}`, 'bad.3']);
  });

  test('tells of requests that both sides tell of, in either order', () => {
    const side = new UserSide(NO_METRICS);
    expect(side.sample(0)).toBeUndefined();
    side.over(over({ publicId: 'a.1' }), 0);
    side.told('normal', beacon({ id: 'a.1' }), 0);
    side.told('normal', { token: '', id: 'a.2', outcome: 'abandoned', traceId: '', session: '' }, 0);
    side.over(over({ publicId: 'a.2', outcome: 'cancelled' }), 0);
    side.over(over({ publicId: 'a.3', outcome: 'node-failed' }), 0);
    side.told('normal', beacon({ id: 'a.3', outcome: 'failed' }), 0);
    // Nobody tells of this one.
    side.over(over({ publicId: 'a.4', outcome: 'node-failed' }), 0);
    const sample = side.sample(0);
    expect(sample).toMatchObject({ told: 3, toldBad: 2, serverBad: 1 });
    expect(sample?.clientP95Ms).toBeGreaterThanOrEqual(3_000);
    expect(sample?.serverP95Ms).toBeLessThan(60);
  });
});

describe('Pairs', () => {
  test('forget the oldest end, and the oldest beacon, at their bounds', () => {
    const one = { completionUs: 1, isBad: false, traceId: '' };
    const pairs = new Pairs();
    for (let i = 0; i <= ENDS_MAX; i++) pairs.serverTold(`e.${i}`, one, 0);
    pairs.clientTold('e.0', one, 0);
    expect(pairs.sample(0)).toBeUndefined();
    pairs.clientTold('e.1', one, 0);
    expect(pairs.sample(0)?.told).toBe(1);
    for (let i = 0; i <= EARLY_MAX; i++) pairs.clientTold(`b.${i}`, one, 0);
    pairs.serverTold('b.0', one, 0);
    expect(pairs.sample(0)?.told).toBe(1);
    pairs.serverTold(`b.${EARLY_MAX}`, one, 0);
    expect(pairs.sample(0)?.told).toBe(2);
  });
});

describe('RepeatWatch', () => {
  const body = (checksum: number, bytes = 1): { bytes: number; checksum: number } => ({ bytes, checksum });

  test('forgets in time, and does not look at large bodies', () => {
    const watch = new RepeatWatch();
    watch.endedBadly(body(1), 0);
    expect(watch.isRepeat(body(1), 1)).toBe(true);
    expect(watch.isRepeat(body(1 + REPEAT_PLACES), 1)).toBe(false);
    expect(watch.isRepeat(body(1), REPEAT_US_MAX + 1)).toBe(false);
    watch.endedBadly(body(2, REPEAT_BYTES_MAX + 1), 0);
    expect(watch.isRepeat(body(2), 0)).toBe(false);
  });

  test('has so many places and no more: who comes later takes one over', () => {
    const watch = new RepeatWatch();
    for (let i = 0; i < 2 * REPEAT_PLACES; i++) watch.endedBadly(body(i), 0);
    const known = Array.from({ length: 2 * REPEAT_PLACES }, (_, i) => watch.isRepeat(body(i), 0));
    expect(known.filter(Boolean)).toHaveLength(REPEAT_PLACES);
    expect(known.lastIndexOf(false)).toBe(REPEAT_PLACES - 1);
  });

  test('works a checksum out only when there is something to compare it with', () => {
    const watch = new RepeatWatch();
    const unread = {
      bytes: 1,
      get checksum(): number {
        throw new Error('Worked out for nothing');
      },
    };
    expect(watch.isRepeat(unread, 0)).toBe(false);
  });
});
