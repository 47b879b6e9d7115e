import { expect, test } from 'vitest';
import { DEFAULT_RETRY } from '../config/defaults.ts';
import { RetryBudget } from './budget.ts';

const S = 1_000_000;
const CONFIG = { ...DEFAULT_RETRY, budgetRatio: 0.1, budgetReserve: 2 };

test('RetryBudget pays for a tenth of the completed work and no more', () => {
  const budget = new RetryBudget();
  budget.deposit(30 * S, CONFIG);
  const paid = [1, 2, 3].map(() => budget.withdraw(S, 0, CONFIG));
  expect(paid).toEqual([true, true, true]);
  budget.withdraw(S, 0, CONFIG);
  budget.withdraw(S, 0, CONFIG);
  expect(budget.withdraw(S, 0, CONFIG), 'balance and reserve are spent').toBe(false);
});

test('RetryBudget always allows its reserve, anew every ten seconds', () => {
  const budget = new RetryBudget();
  expect([1, 2, 3].map(() => budget.withdraw(S, 0, CONFIG))).toEqual([true, true, false]);
  expect([1, 2, 3].map(() => budget.withdraw(S, 10 * S, CONFIG))).toEqual([true, true, false]);
});

test('RetryBudget does not save up a long calm for a storm', () => {
  const budget = new RetryBudget();
  for (let i = 0; i < 10_000; i++) budget.deposit(1_000 * S, CONFIG);
  let retries = 0;
  while (budget.withdraw(S, 0, CONFIG)) retries += 1;
  expect(retries).toBeLessThanOrEqual(122);
});
