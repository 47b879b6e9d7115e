/** The names that have limits: how many there may be, and what happens when one more comes. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { taskSpec } from '../../../test/support/specs.ts';
import { resultArbitrary } from '../../../test/support/fuzz.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import { saneResult } from '../scheduler/sane.ts';
import { Limits, Reservation, UNNAMED_LIMITERS_MAX } from './index.ts';

const S = 1_000_000;
const MINUTE = 60 * S;

function limitsOf(overrides: SchedulerOverrides): Limits {
  const limits = new Limits();
  limits.configure(defaultSchedulerConfig(overrides), 0);
  return limits;
}

/** Whether one request of the tenant is let through, and at once over. */
function passes(limits: Limits, tenant: string, now: number): boolean {
  const reservation = limits.reserve(taskSpec(1, { tenant }), 'normal', now);
  if (!(reservation instanceof Reservation)) return false;
  reservation.note({ kind: 'ok' });
  reservation.end(now);
  return true;
}

describe('tenants without a name', () => {
  const each = { tenantLimits: { requestsPerMinute: 1 } };

  function crowded(): Limits {
    const limits = limitsOf(each);
    for (let i = 0; i < UNNAMED_LIMITERS_MAX; i++) expect(passes(limits, `t${i}`, 0)).toBe(true);
    return limits;
  }

  test('are bounded: newcomers share one limit while nobody can be forgotten without a gain', () => {
    const limits = crowded();
    expect(limits.held().names).toBe(UNNAMED_LIMITERS_MAX);
    expect([passes(limits, 'new', S), passes(limits, 'newer', S)]).toEqual([true, false]);
    expect(limits.held().names).toBe(UNNAMED_LIMITERS_MAX + 1);
    expect(passes(limits, 't0', S), 'and nobody got anything back').toBe(false);
  });

  test('give their place to a newcomer once their buckets are full again, the longest unseen first', () => {
    const limits = crowded();
    expect(passes(limits, 't0', MINUTE), 'seen anew').toBe(true);
    expect([passes(limits, 'new', MINUTE), passes(limits, 'newer', MINUTE)]).toEqual([true, true]);
    expect(limits.held().names).toBe(UNNAMED_LIMITERS_MAX);
    expect(passes(limits, 't0', MINUTE), 'who was seen is remembered').toBe(false);
  });

  test('keep their place while a task of theirs is held, however long', () => {
    const limits = limitsOf(each);
    const reservation = limits.reserve(taskSpec(1, { tenant: 'held' }), 'normal', 0) as Reservation;
    for (let i = 1; i < UNNAMED_LIMITERS_MAX; i++) passes(limits, `t${i}`, 0);
    expect([passes(limits, 'a', 9 * MINUTE), passes(limits, 'b', 9 * MINUTE)]).toEqual([true, false]);
    reservation.end(9 * MINUTE);
    expect(passes(limits, 'b', 9 * MINUTE)).toBe(true);
  });

  test('are forgotten when nothing limits them any more', () => {
    const limits = crowded();
    limits.configure(defaultSchedulerConfig(), 0);
    expect(limits.held().names).toBe(0);
    expect(limits.isActive).toBe(false);
  });
});

describe('Limits', () => {
  test('are not in force without any configuration, and cost no look', () => {
    expect(limitsOf({}).isActive).toBe(false);
    expect(limitsOf({ tenantWeights: [{ id: 't', weight: 1 }] }).isActive).toBe(false);
    expect(limitsOf({ tenantLimits: { concurrency: 1 } }).isActive).toBe(true);
  });
});

const RULES: readonly SchedulerOverrides[] = [
  {},
  { tenantLimits: { requestsPerMinute: 5, tokensPerMinute: 900, concurrency: 3 } },
  {
    tenantWeights: [{ id: 'a', weight: 1 }],
    tenantLimitsOwn: [{ id: 'a', limits: { tokensPerMinute: 2_000, tokensBurst: 500 } }],
    models: [{ id: 'm', aliases: [], profile: { kind: 'generic', meanMs: 1 }, limits: { concurrency: 2 } }],
  },
  {
    tenantLimits: { tokensPerMinute: 1_000, tokensBurst: 700 },
    tenantWeights: [{ id: 'b', weight: 1 }],
    tenantLimitsOwn: [{ id: 'b', limits: {} }],
    classes: defaultSchedulerConfig().classes.map((row) => ({ ...row, limits: { requestsPerMinute: 7 } })),
  },
];

const act = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constant('reserve'),
      tenant: fc.constantFrom('a', 'b', 'c'),
      className: fc.constantFrom('normal', 'low'),
      tokens: fc.nat(800),
    }),
    weight: 8,
  },
  {
    arbitrary: fc.record({ kind: fc.constant('end'), pick: fc.nat(), result: resultArbitrary(true) }),
    weight: 6,
  },
  { arbitrary: fc.record({ kind: fc.constant('wait'), us: fc.nat(20 * S) }), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constant('configure'), rules: fc.nat(RULES.length - 1) }), weight: 1 },
);

describe('Limits, whatever happens,', () => {
  test('hold no more than what is under way, keep their bounds, and hold nothing at idle', () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 150, size: 'max' }), (acts) => {
        const limits = limitsOf(RULES[1] as SchedulerOverrides);
        const open: Reservation[] = [];
        let now = 0;
        for (const step of acts) {
          if (step.kind === 'wait') now += step.us;
          else if (step.kind === 'configure')
            limits.configure(defaultSchedulerConfig(RULES[step.rules] as SchedulerOverrides), now);
          else if (step.kind === 'reserve') {
            const { tenant, className, tokens } = step;
            const spec = taskSpec(1, { tenant, tokens, promptTokens: Math.floor(tokens / 3) });
            const reservation = limits.reserve(spec, className, now);
            if (reservation instanceof Reservation) open.push(reservation);
          } else if (open.length > 0) {
            const [reservation] = open.splice(step.pick % open.length, 1) as [Reservation];
            reservation.note(saneResult(step.result));
            reservation.end(now);
          }
          for (const { tasks, requests, tokens } of limits.rows(now)) {
            expect(tasks).toBeLessThanOrEqual(open.length);
            for (const view of [requests, tokens]) {
              if (view === undefined) continue;
              expect(view.remaining).toBeLessThanOrEqual(view.limit);
              expect(view.remaining === view.limit).toBe(view.resetUs === 0);
            }
          }
        }
        for (const reservation of open) reservation.end(now);
        expect(limits.held()).toMatchObject({ tasks: 0, tokens: 0 });
      }),
      { numRuns: drawsOf(120) },
    );
  });
});
