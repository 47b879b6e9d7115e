/** What happened per second, from the counts of two pictures. */
import type { Accounts, Picture } from '../wire.ts';

/** Shorter spans make the figures jump. */
const SPAN_MS_MIN = 2_000;

export interface Rates {
  readonly arrived: number;
  readonly served: number;
  readonly refused: number;
  readonly failed: number;
}

export interface RateMeter {
  readonly rates: Rates;
  add(picture: Picture): void;
}

type Sample = Pick<Picture, 'at' | 'accounts'>;

export function createRateMeter(): RateMeter {
  let before: Sample | undefined;
  let rates: Rates = { arrived: 0, served: 0, refused: 0, failed: 0 };
  return {
    get rates() {
      return rates;
    },
    add({ at, accounts }) {
      const isRestarted = before !== undefined && accounts.arrived < before.accounts.arrived;
      if (before === undefined || isRestarted || at < before.at) {
        before = { at, accounts };
        return;
      }
      const seconds = (at - before.at) / 1_000;
      if (seconds * 1_000 < SPAN_MS_MIN) return;
      const change = (count: (accounts: Accounts) => number): number =>
        (count(accounts) - count((before as Sample).accounts)) / seconds;
      rates = {
        arrived: change((of) => of.arrived),
        served: change((of) => of.served + of.degraded),
        refused: change((of) => of.rejected + of.evicted),
        failed: change((of) => of.failed),
      };
      before = { at, accounts };
    },
  };
}
