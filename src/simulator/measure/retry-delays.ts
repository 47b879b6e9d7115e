/**
 * How long it takes until a request that a node lost is under way elsewhere, as its user feels it.
 *
 * Lost is an attempt that ended in failure, and one that ended without an answer (by the policy, by the client who hung
 * up) on a node that could not be reached. It was lost when it failed, or else when it was on its way and the node could
 * no longer be reached: from then on nobody worked for the user, whether somebody had noticed or not. The delay ends
 * with the start of an attempt, of the same try or a later one, on a node that can be reached. Several losses in a row are one
 * delay, from the first of them. Who gives up, or is served by the lost attempt after all, has none.
 */
import type { MonoUs, Ratio } from '../../base/units.ts';
import type { AttemptEnd } from '../observer.ts';
import type { SimNode } from '../sim-node.ts';
import { Distribution } from './distribution.ts';
import { TimedValue } from './log-histogram.ts';
import type { Quantiles } from './report.ts';

export class RetryDelays {
  readonly #delays = new Distribution();
  readonly #delay = new TimedValue();
  /** By the user's number, of users who are under way. */
  readonly #lostAt: Map<number, MonoUs> = new Map();
  #lost = 0;

  started(user: number, node: SimNode, now: MonoUs): void {
    if (this.#lostAt.size === 0 || !node.isReachable) return;
    const lostAt = this.#lostAt.get(user);
    if (lostAt === undefined) return;
    this.#lostAt.delete(user);
    this.#delay.set(now - lostAt);
    this.#delays.add(this.#delay);
  }

  attemptEnded(user: number, attempt: EndedAttempt, now: MonoUs): void {
    const { end, node, sentAt } = attempt;
    if (end.kind === 'ok' || end.kind === 'declined' || end.kind === 'lost') return;
    if (end.kind !== 'failed' && node.isReachable) return;
    if (this.#lostAt.has(user)) return;
    this.#lost += 1;
    this.#lostAt.set(user, node.isReachable ? now : Math.max(sentAt, node.unreachableSince));
  }

  userEnded(user: number): void {
    if (this.#lostAt.size > 0) this.#lostAt.delete(user);
  }

  /** Nothing where nothing was lost. */
  report(): { readonly retryDelayMs?: Quantiles; readonly retriedRatio?: Ratio } {
    if (this.#lost === 0) return {};
    return { retryDelayMs: this.#delays.quantilesMs(), retriedRatio: this.#delays.count / this.#lost };
  }
}

export interface EndedAttempt {
  readonly end: AttemptEnd;
  readonly node: SimNode;
  readonly sentAt: MonoUs;
}
