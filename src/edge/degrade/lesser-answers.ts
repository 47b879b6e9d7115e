/** What one request may get instead of its answer, from its consent and the configuration. */
import type { MonoUs } from '../../base/units.ts';
import type { PlannedAnswer } from '../../core/degrade/index.ts';
import type { CachedAnswer } from '../cache/answer-cache.ts';
import { type DefaultAnswer, defaultAnswer } from './default-answer.ts';

export interface ReadyAnswer extends DefaultAnswer {
  /** When a remembered answer was given; absent for one that was never given. */
  readonly storedAt?: MonoUs;
}

export interface LesserParts {
  /** In the order of the submitted alternatives. */
  readonly planned: readonly PlannedAnswer[];
  readonly remembered: CachedAnswer | undefined;
  readonly defaultText: string | undefined;
  readonly model: string;
  readonly isChat: boolean;
  readonly stream: boolean;
}

export class LesserAnswers {
  readonly planned: readonly PlannedAnswer[];
  readonly remembered: CachedAnswer | undefined;
  readonly #parts: LesserParts;

  constructor(parts: LesserParts) {
    this.planned = parts.planned;
    this.remembered = parts.remembered;
    this.#parts = parts;
  }

  /** The answer that needs no node; undefined for one that does. */
  answerOf({ alternative }: PlannedAnswer, id: string): ReadyAnswer | undefined {
    const { remembered, defaultText, model, isChat, stream } = this.#parts;
    if (alternative.how === 'cache') return remembered;
    if (alternative.how !== 'default' || defaultText === undefined) return undefined;
    return defaultAnswer({ id: `spillway-${id}`, model, text: defaultText, isChat, stream });
  }
}
