import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_RUM } from '../../core/config/index.ts';
import type { RumConfig } from '../../core/config/types.ts';
import { type BeaconResult, NO_METRICS } from '../../ports/metrics-sink.ts';
import { BeaconDesk } from './beacon-desk.ts';
import { BeaconTokens } from './beacon-token.ts';
import { UserSide } from './user-side.ts';

const S = 1_000_000;

interface World {
  readonly desk: BeaconDesk;
  readonly userSide: UserSide;
  readonly clock: { now: number };
  token(id: string, tenant?: string): string;
  take(beacon: object): BeaconResult;
}

function world(change: Partial<RumConfig> = {}, usedMax?: number): World {
  const clock = { now: 100 * S };
  const config = { ...DEFAULT_RUM, enabled: true, ...change };
  const userSide = new UserSide(NO_METRICS);
  const options = { config: () => config, now: () => clock.now, userSide, metrics: NO_METRICS };
  const desk = new BeaconDesk(usedMax === undefined ? options : { ...options, usedMax });
  return {
    desk,
    userSide,
    clock,
    token: (publicId, tenant = 'acme') =>
      desk.tokenFor({ publicId, tenant, className: 'normal', receivedAt: clock.now }),
    take: (beacon) => desk.take(Buffer.from(JSON.stringify(beacon))),
  };
}

const SEEN = { outcome: 'ok', firstByteMs: 120, completionMs: 900 };

describe('a beacon', () => {
  test('is taken once, and tells what its user saw', () => {
    const { token, take, userSide, clock } = world();
    const beacon = { ...SEEN, id: 'a.1', token: token('a.1'), traceId: 'a'.repeat(32), session: 's-1' };
    expect(take(beacon)).toBe('accepted');
    expect(take(beacon)).toBe('reused');
    const [row] = userSide.view(clock.now);
    expect(row).toMatchObject({ class: 'normal', outcomes: { ok: 1 }, users: { completion: { count: 1 } } });
    expect(row?.users.completion.p50Ms).toBeGreaterThanOrEqual(900);
  });

  test('needs a token of ours, whatever of it was changed', () => {
    const { token, take } = world();
    const good = token('a.1');
    expect(take({ ...SEEN, id: 'a.1', token: token('a.1').replace('normal', 'critical') })).toBe('forged');
    const foreign = new BeaconTokens().issue(
      { publicId: 'a.1', className: 'normal', tenant: 'acme', receivedAt: 100 * S },
      100 * S,
      600_000,
    );
    expect(take({ ...SEEN, id: 'a.1', token: foreign })).toBe('forged');
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.constantFrom('a', 'Z', '0', '~', '.'), (at, by) => {
        fc.pre(good[at] !== by);
        const changed = good.slice(0, at) + by + good.slice(at + 1);
        // The last character of the code has bits that mean nothing.
        fc.pre(at < good.length - 1);
        expect(take({ ...SEEN, id: 'a.1', token: changed })).toBe('forged');
      }),
    );
  });

  test('does not count for another request, or after its time', () => {
    const { token, take, clock } = world({ tokenMs: 60_000 });
    expect(take({ ...SEEN, id: 'a.2', token: token('a.1') })).toBe('other-request');
    const late = token('a.1');
    clock.now += 61 * S;
    expect(take({ ...SEEN, id: 'a.1', token: late })).toBe('expired');
  });

  test('is used up as long as its token lives, and no longer', () => {
    const { token, take, clock } = world({ tokenMs: 60_000 }, 2);
    for (const id of ['a.1', 'a.2']) expect(take({ ...SEEN, id, token: token(id) })).toBe('accepted');
    // Full: refused, and not accepted twice.
    expect(take({ ...SEEN, id: 'a.3', token: token('a.3') })).toBe('rate-limited');
    expect(take({ ...SEEN, id: 'a.1', token: token('a.1') })).toBe('reused');
    clock.now += 61 * S;
    expect(take({ ...SEEN, id: 'a.4', token: token('a.4') })).toBe('accepted');
  });

  test.each([
    ['longer than the request is known', { completionMs: 3_600_000 }],
    ['a first byte after the last', { firstByteMs: 901 }],
    ['a success without an end', { completionMs: null }],
  ])('is refused with times that cannot be true: %s', (_what, change) => {
    const { token, take } = world();
    expect(take({ ...SEEN, id: 'a.1', token: token('a.1'), ...change })).toBe('implausible');
  });

  test.each([
    ['a negative time', { firstByteMs: -1 }],
    ['a time in words', { completionMs: '900' }],
    ['an outcome of its own', { outcome: 'great' }],
    ['a session with spaces', { session: 'a b' }],
    ['a long session', { session: 'x'.repeat(65) }],
    ['a trace that is none', { traceId: 'xyz' }],
    ['no id', { id: undefined }],
  ])('is not read with %s', (_what, change) => {
    const { token, take } = world();
    expect(take({ ...SEEN, id: 'a.1', token: token('a.1'), ...change })).toBe('unreadable');
  });

  test('that is anything at all never throws', () => {
    const { desk } = world();
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        expect(['unreadable', 'forged']).toContain(desk.take(Buffer.from(text)));
      }),
    );
  });
});

describe('the rates', () => {
  test('hold for one tenant and for all, each second anew', () => {
    const { token, take, clock, desk } = world({ ratePerS: 5, tenantRatePerS: 3 });
    let id = 0;
    const send = (tenant: string): BeaconResult => {
      id += 1;
      return take({ ...SEEN, id: `a.${id}`, token: token(`a.${id}`, tenant) });
    };
    expect(Array.from({ length: 5 }, () => send('acme')).filter((one) => one === 'accepted')).toHaveLength(3);
    expect(Array.from({ length: 5 }, () => send('bolt')).filter((one) => one === 'accepted')).toHaveLength(2);
    clock.now += S;
    expect(send('acme')).toBe('accepted');
    expect(desk.counts).toEqual({ accepted: 6, 'rate-limited': 5 });
  });

  test('are not used up by those without a token', () => {
    const { token, take } = world({ ratePerS: 1 });
    for (let i = 0; i < 100; i++) take({ ...SEEN, id: 'a.1', token: 'forged' });
    expect(take({ ...SEEN, id: 'a.1', token: token('a.1') })).toBe('accepted');
  });
});

describe('a token', () => {
  test('is not given where beacons are not taken, and does not name the tenant', () => {
    expect(world({ enabled: false }).token('a.1')).toBe('');
    expect(world().token('a.1', 'tenant-of-somebody')).not.toContain('tenant');
  });
});
