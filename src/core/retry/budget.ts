/**
 * Retries are paid for by completed work (Finagle's shape: a ratio and a small reserve), so that a failing fleet is
 * not asked to do everything twice. Preemptions have a budget of the same shape: see preemptions.ts.
 */
import type { DurationUs, MonoUs, Ratio, RefUs } from '../../base/units.ts';
import type { RetryConfig } from '../config/types.ts';

export type BudgetConfig = Pick<RetryConfig, 'budgetRatio' | 'budgetReserve'>;

const RESERVE_WINDOW_US: DurationUs = 10_000_000;
/** Deposits are capped, so that a long calm does not pay for a storm: two minutes of one reference accelerator. */
const BALANCE_US_MAX: RefUs = 120_000_000;

export class RetryBudget {
  readonly #balanceUsMax: RefUs;
  #balanceUs: RefUs = 0;
  #windowStart: MonoUs = 0;
  #reserveUsed = 0;

  constructor(balanceUsMax: RefUs = BALANCE_US_MAX) {
    this.#balanceUsMax = balanceUsMax;
  }

  deposit(completedUs: RefUs, config: BudgetConfig): void {
    this.#balanceUs = Math.min(this.#balanceUsMax, this.#balanceUs + completedUs * config.budgetRatio);
  }

  /** What is left of the deposits or of the reserve, whichever is more: 1 is full, at 0 retries are refused. */
  leftRatio(now: MonoUs, config: BudgetConfig): Ratio {
    const isUsed = now - this.#windowStart < RESERVE_WINDOW_US;
    const reserve = config.budgetReserve;
    const reserveLeft = reserve === 0 ? 0 : 1 - (isUsed ? Math.min(reserve, this.#reserveUsed) : 0) / reserve;
    return Math.max(this.#balanceUs / this.#balanceUsMax, reserveLeft);
  }

  /** Takes the price of one retry from the balance, or one of the reserve; false when both are spent. */
  withdraw(workUs: RefUs, now: MonoUs, config: BudgetConfig): boolean {
    if (this.#balanceUs >= workUs) {
      this.#balanceUs -= workUs;
      return true;
    }
    if (now - this.#windowStart >= RESERVE_WINDOW_US) {
      this.#windowStart = now;
      this.#reserveUsed = 0;
    }
    if (this.#reserveUsed >= config.budgetReserve) return false;
    this.#reserveUsed += 1;
    return true;
  }
}
