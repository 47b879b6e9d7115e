/**
 * Which model the next request asks for. Requests for a model come in runs: with probability `keep` the model stays, else
 * it is drawn by shares, and may be the same again. The shares stay what they are, and two neighbours differ with
 * probability `(1 - keep)(1 - sum of squared shares)`, from which `keep` follows. A trace that changes more often than
 * independent draws would is beyond such a chain: then each is drawn anew.
 */
import type { StreamSpec } from '../scenario/types.ts';
import type { Draws } from './draws.ts';
import { Shares } from './shares.ts';

export class ModelChain {
  readonly #count: number;
  readonly #keep: number;
  readonly #shares: Shares;

  constructor({ models, modelSwitch }: Pick<StreamSpec, 'models' | 'modelSwitch'>) {
    const shares = models.map(({ share }) => share);
    const total = shares.reduce((sum, share) => sum + share, 0);
    const differing = 1 - shares.reduce((sum, share) => sum + (share / total) ** 2, 0);
    this.#count = models.length;
    this.#shares = new Shares(shares);
    this.#keep = modelSwitch === undefined || differing <= 0 ? 0 : Math.max(0, 1 - modelSwitch / differing);
  }

  /** Position of the next model; `before` is that of the one before it, -1 for none. */
  next(before: number, draws: Draws): number {
    if (this.#count === 1) return 0;
    if (this.#keep > 0 && before >= 0 && draws.ratio() < this.#keep) return before;
    return this.#shares.pick(draws.ratio());
  }
}
