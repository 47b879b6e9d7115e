/** Reads the lines of a journal; see format.ts. What cannot be read is a value that says why, never a guess. */
import type { MonoUs, TaskId } from '../../base/units.ts';
import type { Alternative } from '../degrade/alternative.ts';
import { type Needs, NO_NEEDS } from '../request/needs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { RequestShape, TaskPrefix, TaskSpec, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import type { Accounts } from '../scheduler/views.ts';
import { type Decision, DECISION_KINDS } from './decision.ts';
import { ACCOUNT_NAMES, JOURNAL_FORMAT, type JournalHead, type JournalSample } from './format.ts';

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

type Fields = readonly unknown[];

/** Asks for a task's fingerprint where the scheduler does. */
type Fingerprints = (taskId: TaskId) => string;

export class JournalDecoder {
  readonly #names = new Map<number, string>();
  readonly #fingerprints: Fingerprints;
  #at: MonoUs = 0;

  constructor(fingerprints: Fingerprints) {
    this.#fingerprints = fingerprints;
  }

  decode(line: string): JournalEntry {
    let value: unknown;
    try {
      value = JSON.parse(line, reviveNumber);
    } catch {
      return unreadable('it is no JSON');
    }
    try {
      return Array.isArray(value) ? this.#fields(value) : this.#head(value);
    } catch (thrown) {
      return unreadable(thrown instanceof Unreadable ? thrown.message : 'a field is missing');
    }
  }

  #head(value: unknown): JournalEntry {
    const head = value as JournalHead;
    if (head?.journal !== 'spillway') return unreadable('it does not begin as a journal does');
    if (head.format !== JOURNAL_FORMAT)
      return unreadable(`its format is ${head.format}, and this program reads ${JOURNAL_FORMAT}`);
    this.#names.clear();
    this.#at = head.at;
    return { kind: 'head', head };
  }

  #fields(fields: Fields): JournalEntry {
    const [code, first, second] = fields;
    switch (code) {
      case 'n':
        this.#names.set(number(first), text(second));
        return { kind: 'name' };
      case 'l':
        return { kind: 'learn', model: this.#name(first), shape: shapeOf(second), usage: usageOf(fields[3]) };
      case 'f':
        return { kind: 'fingerprint', taskId: number(first), salted: text(second) };
      case 'd':
        return { kind: 'decision', decision: this.#decision(fields) };
      case 'h':
        return { kind: 'sample', sample: sampleOf(fields, this.#advance(first)) };
      case 'q':
        return { kind: 'end', at: this.#advance(first) };
      default:
        this.#advance(first);
        return { kind: 'event', event: this.#event(fields), at: this.#at };
    }
  }

  /** The instant of the line: the one before and the time since. */
  #advance(sinceUs: unknown): MonoUs {
    this.#at += number(sinceUs);
    return this.#at;
  }

  #event(fields: Fields): SchedulerEvent {
    const [code, , subject] = fields;
    switch (code) {
      case 's':
        return { kind: 'submit', task: this.#task(fields) };
      case 'c':
        return { kind: 'cancel', taskId: number(subject) };
      case 't':
        return { kind: 'attempt-sent', taskId: number(subject) };
      case 'b':
        return { kind: 'attempt-first-byte', taskId: number(subject) };
      case 'r':
        return { kind: 'attempt-ended', taskId: number(subject), result: resultOf(fields[3]) };
      case 'k':
        return { kind: 'tick' };
      case 'e':
        return subject as SchedulerEvent;
      default:
        throw new Unreadable(`no line begins with ${JSON.stringify(code)}`);
    }
  }

  #task(fields: Fields): TaskSpec {
    const id = number(fields[2]);
    const flags = number(fields[11]);
    const alternatives = fields[15];
    const fingerprints = this.#fingerprints;
    return {
      id,
      className: this.#name(fields[3]),
      tenant: this.#name(fields[4]),
      model: this.#name(fields[5]),
      needs: needsOf(fields[6]),
      workUs: number(fields[7]),
      firstByteWorkUs: number(fields[8]),
      bytes: number(fields[9]),
      deadlineAt: typeof fields[10] === 'string' ? Number(fields[10]) : this.#at + number(fields[10]),
      deadlineWished: (flags & 1) !== 0,
      stream: (flags & 2) !== 0,
      tokens: number(fields[12]),
      promptTokens: number(fields[13]),
      retryCount: number(fields[14]),
      ...(Array.isArray(alternatives) ? { alternatives: alternatives as readonly Alternative[] } : {}),
      ...(Array.isArray(fields[16]) ? { prefix: prefixOf(fields[16]) } : {}),
      get fingerprint(): string {
        return fingerprints(id);
      },
    };
  }

  #decision([, code, taskId, nodeId, what]: Fields): Decision {
    const kind = DECISION_KINDS[number(code)];
    if (kind === undefined) throw new Unreadable(`there is no decision ${String(code)}`);
    return {
      kind,
      taskId: number(taskId),
      nodeId: nodeId === undefined || nodeId === 0 ? '' : this.#name(nodeId),
      what: what === undefined ? '' : text(what),
    };
  }

  #name(field: unknown): string {
    if (typeof field === 'string') return field;
    const name = this.#names.get(number(field));
    if (name === undefined) throw new Unreadable(`the name ${String(field)} was not told`);
    return name;
  }
}

class Unreadable extends Error {}

function unreadable(why: string): JournalEntry {
  return { kind: 'unreadable', why };
}

function reviveNumber(_key: string, value: unknown): unknown {
  return typeof value === 'object' && value !== null && '$number' in value ? Number(value.$number) : value;
}

/** A number, also one that JSON has no word for. */
function number(field: unknown): number {
  if (typeof field === 'number') return field;
  if (field === 'Infinity' || field === '-Infinity' || field === 'NaN') return Number(field);
  throw new Unreadable(`expected a number, not ${JSON.stringify(field)}`);
}

function text(field: unknown): string {
  if (typeof field === 'string') return field;
  throw new Unreadable(`expected a text, not ${JSON.stringify(field)}`);
}

function needsOf(field: unknown): Needs {
  if (field === 0) return NO_NEEDS;
  return typeof field === 'object' && field !== null
    ? (field as Needs)
    : { ...NO_NEEDS, contextTokens: number(field) };
}

function prefixOf([workUsPerBlock, blocks]: Fields): TaskPrefix {
  return { workUsPerBlock: number(workUsPerBlock), blocks: blocks as readonly number[] };
}

function resultOf(field: unknown): AttemptResult {
  if (field === 0) return { kind: 'ok' };
  if (field === 1) return { kind: 'declined' };
  if (field === 2) return { kind: 'aborted' };
  if (!Array.isArray(field)) return field as AttemptResult;
  const [usage, silence] = field as Fields;
  return {
    kind: 'ok',
    ...(usage === null ? {} : { usage: usageOf(usage) }),
    ...(silence === null ? {} : { silenceUs: number(silence) }),
  };
}

function usageOf(field: unknown): Usage {
  const [prompt, output] = field as Fields;
  return {
    ...(prompt === null ? {} : { promptTokens: number(prompt) }),
    ...(output === null ? {} : { outputTokens: number(output) }),
  };
}

function shapeOf(field: unknown): RequestShape {
  const fields = field as Fields;
  return {
    promptBytes: number(fields[0]),
    outputTokensMax: number(fields[1]),
    images: number(fields[2]),
    steps: number(fields[3]),
    pixelsPerImage: number(fields[4]),
    statedWorkUs: number(fields[5]),
    ...(fields[6] === 1 ? { hasNoOutput: true as const } : {}),
  };
}

function sampleOf([, , events, decisions, hash, counts]: Fields, at: MonoUs): JournalSample {
  const accounts = Object.fromEntries(
    ACCOUNT_NAMES.map((name, index) => [name, number((counts as Fields)[index])]),
  ) as unknown as Accounts;
  return { at, events: number(events), decisions: number(decisions), hash: text(hash), accounts };
}
