/**
 * What one task has reserved of its limits, from its submission to its end, over all of its attempts.
 *
 * What it pays for in the end:
 *
 *   never sent, or no byte of an answer passed on    nothing: the request and its tokens come back
 *   answered whole                                   the request, and the tokens that the node counted
 *   cut after a part of the answer was passed on     the request, its prompt, and the tokens passed on
 *   judged wrong by the node (4xx)                   the request, no tokens
 *
 * What nobody counted is paid as it was estimated. An attempt that failed before anything was passed on changes
 * nothing, so retries are never counted twice.
 */
import { assertNever, invariant } from '../../base/assert.ts';
import type { MonoUs, Tokens } from '../../base/units.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { Usage } from '../request/task.ts';
import type { Hold } from './limiter.ts';

/** A class, since every task under a limit has one. */
export class Reservation {
  readonly #holds: readonly Hold[];
  readonly #since: MonoUs;
  readonly #tokens: Tokens;
  readonly #promptTokens: Tokens;
  #requestsDue: 0 | 1 = 0;
  #tokensDue: Tokens = 0;
  #isOver = false;

  constructor(
    holds: readonly Hold[],
    tokens: { readonly all: Tokens; readonly prompt: Tokens },
    now: MonoUs,
  ) {
    this.#holds = holds;
    this.#tokens = tokens.all;
    this.#promptTokens = tokens.prompt;
    this.#since = now;
  }

  /** What the end of an attempt says about what was used. */
  note(result: AttemptResult): void {
    switch (result.kind) {
      case 'ok':
        return this.#owe(result.usage === undefined ? this.#tokens : this.#countedIn(result.usage));
      case 'declined':
        return this.#owe(0);
      case 'aborted':
      case 'failed':
        if (result.passed !== undefined) this.#owe(this.#passedIn(result.passed));
        return;
      default:
        return assertNever(result);
    }
  }

  /** Ends it, once. */
  end(now: MonoUs): void {
    invariant(!this.#isOver, 'A reservation ends once');
    this.#isOver = true;
    const due = {
      requests: this.#requestsDue,
      tokens: this.#tokensDue,
      reserved: this.#tokens,
      heldUs: now - this.#since,
    };
    for (const hold of this.#holds) hold.end(due, now);
  }

  #owe(tokens: Tokens): void {
    this.#requestsDue = 1;
    this.#tokensDue = tokens;
  }

  /** A node that counts its prompt and no output made none: an embedding. */
  #countedIn({ promptTokens, outputTokens }: Usage): Tokens {
    if (promptTokens === undefined && outputTokens === undefined) return this.#tokens;
    if (promptTokens === undefined) return this.#promptTokens + (outputTokens ?? 0);
    return promptTokens + (outputTokens ?? 0);
  }

  #passedIn({ promptTokens, outputTokens }: Usage): Tokens {
    const prompt = promptTokens ?? this.#promptTokens;
    return prompt + (outputTokens ?? Math.max(0, this.#tokens - this.#promptTokens));
  }
}
