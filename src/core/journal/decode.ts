/** Reads the lines of a journal; see format.ts. What cannot be read is a value that says why, never a guess. */
import type { MonoUs, TaskId } from '../../base/units.ts';
import type { Alternative } from '../degrade/alternative.ts';
import { type Needs, NO_NEEDS } from '../request/needs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { RequestShape, TaskSpec, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import type { Accounts } from '../scheduler/views.ts';
import { type Decision, DECISION_NAMES } from './decision.ts';
import {
  ACCOUNT_NAMES,
  FLAG,
  FORM,
  JOURNAL_FORMAT,
  type JournalHead,
  type JournalSample,
  LETTER,
  TOLD,
} from './format.ts';
import { LineReader, reviveNumber, Unreadable } from './line.ts';

export type JournalEntry =
  | { readonly kind: 'head'; readonly head: JournalHead }
  | { readonly kind: 'event'; readonly event: SchedulerEvent; readonly at: MonoUs }
  | { readonly kind: 'learn'; readonly model: string; readonly shape: RequestShape; readonly usage: Usage }
  | { readonly kind: 'fingerprint'; readonly taskId: TaskId; readonly salted: string }
  | { readonly kind: 'decision'; readonly decision: Decision }
  | { readonly kind: 'sample'; readonly sample: JournalSample }
  | { readonly kind: 'end'; readonly at: MonoUs }
  /** A line that only this reader needs. */
  | { readonly kind: 'name' }
  | { readonly kind: 'unreadable'; readonly why: string };

/** Asks for a task's fingerprint where the scheduler does. */
type Fingerprints = (taskId: TaskId) => string;

export class JournalDecoder {
  readonly #names = new Map<number, string>();
  readonly #fingerprints: Fingerprints;
  #line = new LineReader('');
  #at: MonoUs = 0;
  #taskId: TaskId = 0;

  constructor(fingerprints: Fingerprints) {
    this.#fingerprints = fingerprints;
  }

  decode(line: string): JournalEntry {
    try {
      if (line.startsWith('{')) return this.#head(line);
      this.#line = new LineReader(line);
      const entry = this.#entry(line.charCodeAt(0));
      this.#line.end();
      return entry;
    } catch (thrown) {
      return unreadable(thrown instanceof Unreadable ? thrown.message : 'it is no line of a journal');
    }
  }

  #head(line: string): JournalEntry {
    const head = JSON.parse(line, reviveNumber) as JournalHead;
    if (head.journal !== 'spillway') return unreadable('it does not begin as a journal does');
    if (head.format !== JOURNAL_FORMAT)
      return unreadable(
        `its format is ${head.format}, and this program reads ${JOURNAL_FORMAT} alone: replay it with the version that wrote it`,
      );
    this.#names.clear();
    this.#at = head.at;
    this.#taskId = 0;
    return { kind: 'head', head };
  }

  #entry(letter: number): JournalEntry {
    const line = this.#line;
    switch (letter) {
      case LETTER.name:
        this.#names.set(line.number(), text(line.json()));
        return { kind: 'name' };
      case LETTER.learn:
        return {
          kind: 'learn',
          model: this.#name(),
          shape: this.#shape(),
          usage: this.#usage(line.number()),
        };
      case LETTER.fingerprint:
        return { kind: 'fingerprint', taskId: this.#task(), salted: text(line.json()) };
      case LETTER.decision:
        return { kind: 'decision', decision: this.#decision() };
      case LETTER.sample:
        return { kind: 'sample', sample: sampleOf(this.#advance(), line.json()) };
      case LETTER.close:
        return { kind: 'end', at: this.#advance() };
      default:
        return { kind: 'event', at: this.#advance(), event: this.#event(letter) };
    }
  }

  #advance(): MonoUs {
    this.#at = this.#line.since(this.#at);
    return this.#at;
  }

  #task(): TaskId {
    this.#taskId = this.#line.since(this.#taskId);
    return this.#taskId;
  }

  #event(letter: number): SchedulerEvent {
    switch (letter) {
      case LETTER.submit:
        return { kind: 'submit', task: this.#submitted() };
      case LETTER.cancel:
        return { kind: 'cancel', taskId: this.#task() };
      case LETTER.sent:
        return { kind: 'attempt-sent', taskId: this.#task() };
      case LETTER.firstByte:
        return { kind: 'attempt-first-byte', taskId: this.#task() };
      case LETTER.ended:
        return { kind: 'attempt-ended', taskId: this.#task(), result: this.#result() };
      case LETTER.tick:
        return { kind: 'tick' };
      case LETTER.other:
        return this.#line.json() as SchedulerEvent;
      default:
        throw new Unreadable(`no line begins with ${JSON.stringify(String.fromCharCode(letter))}`);
    }
  }

  #submitted(): TaskSpec {
    const line = this.#line;
    const id = this.#task();
    const className = this.#name();
    const tenant = this.#name();
    const model = this.#name();
    const flags = line.number();
    const deadlineAt = line.since(this.#at);
    const contextTokens = line.number();
    const fingerprints = this.#fingerprints;
    const told = {
      id,
      className,
      tenant,
      model,
      workUs: line.number(),
      firstByteWorkUs: line.number(),
      bytes: line.number(),
      deadlineAt,
      deadlineWished: (flags & FLAG.deadlineWished) !== 0,
      stream: (flags & FLAG.stream) !== 0,
      tokens: line.number(),
      promptTokens: line.number(),
      retryCount: line.number(),
    };
    return {
      ...told,
      needs: contextTokens === 0 ? NO_NEEDS : { ...NO_NEEDS, contextTokens },
      ...(flags < FLAG.needs ? {} : restOf(line.json(), flags)),
      get fingerprint(): string {
        return fingerprints(id);
      },
    };
  }

  #result(): AttemptResult {
    const line = this.#line;
    switch (line.number()) {
      case FORM.ok: {
        const told = line.number();
        return {
          kind: 'ok',
          ...((told & TOLD.usage) === 0 ? {} : { usage: this.#usage(told) }),
          ...((told & TOLD.silence) === 0 ? {} : { silenceUs: line.number() }),
        };
      }
      case FORM.declined:
        return { kind: 'declined' };
      case FORM.aborted:
        return { kind: 'aborted' };
      default:
        return line.json() as AttemptResult;
    }
  }

  #usage(told: number): Usage {
    const line = this.#line;
    return {
      ...((told & TOLD.promptTokens) === 0 ? {} : { promptTokens: line.number() }),
      ...((told & TOLD.outputTokens) === 0 ? {} : { outputTokens: line.number() }),
    };
  }

  #shape(): RequestShape {
    const line = this.#line;
    const told = {
      promptBytes: line.number(),
      outputTokensMax: line.number(),
      images: line.number(),
      steps: line.number(),
      pixelsPerImage: line.number(),
      statedWorkUs: line.number(),
    };
    return line.number() === 1 ? { ...told, hasNoOutput: true } : told;
  }

  #decision(): Decision {
    const line = this.#line;
    const code = line.number();
    if (DECISION_NAMES[code] === undefined) throw new Unreadable(`there is no decision ${code}`);
    return {
      code,
      taskId: this.#task(),
      nodeId: this.#name(),
      what: this.#name(),
      number: line.since(0),
    };
  }

  /** 0 is no name. */
  #name(): string {
    const number = this.#line.number();
    const name = number === 0 ? '' : this.#names.get(number);
    if (name === undefined) throw new Unreadable(`the name ${number} was not told`);
    return name;
  }
}

function unreadable(why: string): JournalEntry {
  return { kind: 'unreadable', why };
}

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  throw new Unreadable(`expected a text, not ${JSON.stringify(value)}`);
}

/** What the line of a task ends with. */
function restOf(value: unknown, flags: number): Partial<TaskSpec> {
  const [needs, alternatives, prefix] = value as [Needs, readonly Alternative[], [number, readonly number[]]];
  return {
    ...((flags & FLAG.needs) === 0 ? {} : { needs }),
    ...((flags & FLAG.alternatives) === 0 ? {} : { alternatives }),
    ...((flags & FLAG.prefix) === 0 ? {} : { prefix: { workUsPerBlock: prefix[0], blocks: prefix[1] } }),
  };
}

function sampleOf(at: MonoUs, value: unknown): JournalSample {
  const [events, decisions, hash, counts] = value as [number, number, string, readonly number[]];
  const accounts = Object.fromEntries(
    ACCOUNT_NAMES.map((name, index) => [name, counts[index]]),
  ) as unknown as Accounts;
  return { at, events, decisions, hash, accounts };
}
