import { expect, test } from 'vitest';
import { ROW_IDLE_US } from './row-table.ts';
import { PACED_TENANTS_MAX, TenantPaces } from './tenant-pace.ts';

const served = (tenant: string) => ({
  flow: { tenant, weight: 1 },
  workUs: 100,
  submittedAt: 0,
  deadlineAt: 1,
});

test(`TenantPaces has rows of ${PACED_TENANTS_MAX} tenants, and gives away only those without an answer for long`, () => {
  const paces = new TenantPaces();
  for (let nth = 0; nth < PACED_TENANTS_MAX; nth++) paces.add(3, served(`t${nth}`), nth);
  paces.add(3, served('late'), ROW_IDLE_US - 1);
  expect(paces.sample()).toHaveLength(PACED_TENANTS_MAX);
  expect(paces.sample().map(({ tenant }) => tenant)).not.toContain('late');

  paces.add(3, served('t0'), ROW_IDLE_US + 0);
  paces.add(5, served('late'), ROW_IDLE_US + 1);
  const names = paces.sample().map(({ tenant }) => tenant);
  expect(names).toHaveLength(PACED_TENANTS_MAX);
  expect(names).toContain('late');
  expect(names).toContain('t0');
  expect(names).not.toContain('t1');
});

test('a sample of TenantPaces does not change with what is served later', () => {
  const paces = new TenantPaces();
  paces.add(3, served('a'), 1);
  const [row] = paces.sample();
  paces.add(3, served('a'), 2);
  expect(row).toMatchObject({ served: 1, servedWorkUs: 100, lastAt: 1 });
  expect(row?.steps[3]).toBe(1);
});
