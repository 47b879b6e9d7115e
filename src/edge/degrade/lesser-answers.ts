/** What one request may get instead of its answer, from its consent and the configuration, and what it gets now. */
import type { Bytes, ModelId, MonoUs } from '../../base/units.ts';
import { alternativeLabel, needsWork, type PlannedAnswer } from '../../core/degrade/index.ts';
import type { CachedAnswer } from '../cache/answer-cache.ts';
import { type DefaultAnswer, defaultAnswer } from './default-answer.ts';
import { flagLength, flagObject, flagStream } from './flag.ts';

export interface ReadyAnswer extends DefaultAnswer {
  /** When a remembered answer was given; absent for one that was never given. */
  readonly storedAt?: MonoUs;
}

export interface LesserParts {
  /** In the order of the submitted alternatives. */
  readonly planned: readonly PlannedAnswer[];
  readonly remembered: CachedAnswer | undefined;
  readonly defaultText: string | undefined;
  readonly model: ModelId;
  readonly isChat: boolean;
  readonly stream: boolean;
}

export class LesserAnswers {
  readonly planned: readonly PlannedAnswer[];
  readonly remembered: CachedAnswer | undefined;
  readonly #parts: LesserParts;
  #current: PlannedAnswer | undefined;

  constructor(parts: LesserParts) {
    this.planned = parts.planned;
    this.remembered = parts.remembered;
    this.#parts = parts;
  }

  /** What stands in for the answer now; undefined while the whole one is worked on. */
  get current(): PlannedAnswer | undefined {
    return this.#current;
  }

  /** From now on this one of the alternatives stands in. */
  standIn(alternative: number): void {
    this.#current = this.planned[alternative];
  }

  /** As the one that stands in is named to clients; '' when none does. */
  get label(): string {
    return this.#current === undefined ? '' : alternativeLabel(this.#current.alternative);
  }

  /** The one that is worked with now. */
  get model(): ModelId {
    const alternative = this.#current?.alternative;
    return alternative !== undefined && needsWork(alternative) ? alternative.model : this.#parts.model;
  }

  /** The answer that stands in, if it needs no node. */
  ready(id: string): ReadyAnswer | undefined {
    const how = this.#current?.alternative.how;
    const { remembered, defaultText, model, isChat, stream } = this.#parts;
    if (how === 'cache') return remembered;
    if (how !== 'default' || defaultText === undefined) return undefined;
    return defaultAnswer({ id: `spillway-${id}`, model, text: defaultText, isChat, stream });
  }

  /** The first bytes of a lesser answer with their mark; of a whole one as they are. */
  marked(part: Buffer): Buffer {
    if (this.#current === undefined) return part;
    return this.#parts.stream ? flagStream(part, this.label) : flagObject(part, this.label);
  }

  /** What the mark adds to an object. */
  get markBytes(): Bytes {
    return this.#current === undefined ? 0 : flagLength(this.label);
  }
}
