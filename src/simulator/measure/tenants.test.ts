import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { TENANTS_MAX, TENANTS_SHOWN_MAX, Tenants } from './tenants.ts';

const WINDOW = { from: 10 * S, until: 110 * S };

describe('Tenants', () => {
  test('shows those with most work and sums up the rest, those beyond its table included', () => {
    const tenants = new Tenants(WINDOW, []);
    for (let i = 0; i < TENANTS_MAX + 500; i++) {
      const tenant = tenants.of(`t${i}`);
      tenant.offered += 1;
      tenant.workUs += i * S;
    }
    const report = tenants.report();
    expect(Object.keys(report)).toHaveLength(TENANTS_SHOWN_MAX + 1);
    expect(Object.keys(report)[0]).toBe(`t${TENANTS_MAX - 1}`);
    expect(report['other']?.offered).toBe(TENANTS_MAX + 500 - TENANTS_SHOWN_MAX);
    const work = Object.values(report).reduce((sum, { workSeconds }) => sum + workSeconds, 0);
    expect(work).toBeCloseTo(((TENANTS_MAX + 499) * (TENANTS_MAX + 500)) / 2, 3);
  });

  test('counts work by the part of its time that lies within the window', () => {
    const tenants = new Tenants(WINDOW, []);
    const tenant = tenants.of('one');
    const servedBy = (since: number, now: number): number => {
      const before = tenant.servedUs;
      tenants.served(tenant, 8 * S, { since: since * S, now: now * S });
      return (tenant.servedUs - before) / S;
    };
    expect(servedBy(20, 30)).toBe(8);
    expect(servedBy(5, 15), 'begun before it').toBe(4);
    expect(servedBy(105, 125), 'ends after it').toBe(2);
    expect(servedBy(0, 200), 'longer than it').toBe(4);
    expect(servedBy(1, 9), 'before it').toBe(0);
    expect(servedBy(50, 50), 'at once').toBe(8);
    expect(tenants.report()['one']?.servedSeconds).toBe(26);
  });

  test('judges fairness by weight, among those whose backlog lasted through the window', () => {
    const tenants = new Tenants(WINDOW, [{ id: 'double', weight: 2 }]);
    const [one, double, light] = ['one', 'double', 'light'].map((id) => tenants.of(id));
    if (one === undefined || double === undefined || light === undefined) throw new Error('No tenants');
    for (const tenant of [one, double, light]) tenants.waits(tenant, 5 * S);
    // A gap of a second is within a hundredth, one of two is not.
    tenants.leaves(one, 50 * S);
    tenants.waits(one, 51 * S);
    tenants.leaves(light, 60 * S);
    tenants.waits(light, 62 * S);
    one.servedUs = 100 * S;
    double.servedUs = 200 * S;
    light.servedUs = S;
    expect(tenants.jain(200 * S)).toBe(1);
    double.servedUs = 600 * S;
    expect(tenants.jain(200 * S)).toBeCloseTo(0.8, 9);
    tenants.leaves(one, 90 * S);
    expect(tenants.jain(200 * S), 'one of two is left').toBeUndefined();
  });
});
