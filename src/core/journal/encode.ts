/**
 * Writes the lines of a journal; see format.ts. What happens is taken down in rows, and their lines and the hash of the
 * decisions are made together. A class, since every event of the gateway passes it.
 */
import type { MonoUs, TaskId } from '../../base/units.ts';
import type { RequestShape, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import { type Decision, DecisionDigest, textWord } from './decision.ts';
import {
  ACCOUNT_NAMES,
  FLAG,
  FORM,
  JOURNAL_NAMES_MAX,
  type JournalHead,
  type JournalSample,
  LETTER,
  TOLD,
} from './format.ts';
import { JournalRows, TEXTS_MAX } from './journal-rows.ts';
import { exactJson, LineWriter } from './line.ts';

/** Numbers of a row that are told as they are. */
const SUBMIT_PLAIN = 7;
const SHAPE_FIELDS = 7;

export interface JournalText {
  readonly text: Uint8Array;
  readonly lines: number;
}

export class JournalEncoder {
  readonly #rows = new JournalRows();
  readonly #out = new LineWriter();
  readonly #digest = new DecisionDigest();
  readonly #names = new Map<string, number>();
  /** Of each name by its number, for the digest; the first is no name. */
  readonly #words: number[] = [textWord('')];
  #at: MonoUs = 0;
  #taskId: TaskId = 0;
  /** Where the next number and the next text are read. */
  #cell = 0;
  #text = 0;

  /** What happened since it was last taken. */
  take(): JournalText {
    this.#write();
    return this.#out.take();
  }

  /** Of the lines that are made already; what waits in rows is bounded. */
  get bytes(): number {
    return this.#out.length;
  }

  /** Of all decisions so far. */
  digest(): string {
    this.#write();
    return this.#digest.digest();
  }

  /** Begins a segment: names, instants and tasks are told anew. */
  head(head: JournalHead): void {
    this.#write();
    this.#names.clear();
    this.#at = head.at;
    this.#taskId = 0;
    this.#endWith(exactJson(head));
  }

  /** A step of a request; false, and nothing of it is told, for any other event, which is told as `other`. */
  step(event: SchedulerEvent, at: MonoUs): boolean {
    return this.#room().step(event, at);
  }

  other(event: SchedulerEvent, at: MonoUs): void {
    this.#room().other(event, at);
  }

  learn(model: string, shape: RequestShape, usage: Usage): void {
    this.#room().learn(model, shape, usage);
  }

  fingerprint(taskId: TaskId, salted: string): void {
    this.#room().fingerprint(taskId, salted);
  }

  /** What the last event led to. */
  decision(decision: Decision): void {
    this.#room().decision(decision);
  }

  sample({ at, events, decisions, accounts }: Omit<JournalSample, 'hash'>): void {
    const hash = this.digest();
    this.#begin(LETTER.sample, at);
    this.#endWith(exactJson([events, decisions, hash, ACCOUNT_NAMES.map((name) => accounts[name])]));
  }

  close(at: MonoUs): void {
    this.#write();
    this.#begin(LETTER.close, at);
    this.#out.end();
  }

  #room(): JournalRows {
    if (this.#rows.isFull) this.#write();
    return this.#rows;
  }

  /** Makes the lines of all rows. */
  #write(): void {
    const end = this.#rows.cellCount;
    // Not within a line, whose numbers would be of two tellings.
    if (this.#names.size > JOURNAL_NAMES_MAX - TEXTS_MAX) this.#names.clear();
    this.#cell = 0;
    this.#text = 0;
    while (this.#cell < end) this.#row(this.#take());
    this.#rows.clear();
  }

  #row(letter: number): void {
    switch (letter) {
      case LETTER.submit:
        return this.#submit();
      case LETTER.ended:
        return this.#ended();
      case LETTER.tick:
        this.#begin(letter, this.#take());
        return this.#out.end();
      case LETTER.other:
        this.#begin(letter, this.#take());
        return this.#endWith(this.#takeText());
      case LETTER.learn:
        return this.#learn();
      case LETTER.fingerprint:
        this.#out.begin(letter);
        this.#task(this.#take());
        return this.#endWith(exactJson(this.#takeText()));
      case LETTER.decision:
        return this.#decision();
      default:
        this.#begin(letter, this.#take());
        this.#task(this.#take());
        return this.#out.end();
    }
  }

  #take(): number {
    return this.#rows.cells[this.#cell++] as number;
  }

  #takeText(): string {
    return this.#rows.texts[this.#text++] as string;
  }

  #submit(): void {
    const className = this.#name(this.#takeText());
    const tenant = this.#name(this.#takeText());
    const model = this.#name(this.#takeText());
    const out = this.#out;
    const at = this.#take();
    this.#begin(LETTER.submit, at);
    this.#task(this.#take());
    out.number(className);
    out.number(tenant);
    out.number(model);
    const flags = this.#take();
    out.number(flags);
    out.since(this.#take(), at);
    this.#plain(SUBMIT_PLAIN);
    if (flags < FLAG.needs) out.end();
    else this.#endWith(this.#takeText());
  }

  #ended(): void {
    this.#begin(LETTER.ended, this.#take());
    this.#task(this.#take());
    const form = this.#take();
    this.#out.number(form);
    if (form === FORM.other) return this.#endWith(this.#takeText());
    if (form === FORM.ok && (this.#usage() & TOLD.silence) !== 0) this.#plain(1);
    this.#out.end();
  }

  #learn(): void {
    const model = this.#name(this.#takeText());
    this.#out.begin(LETTER.learn);
    this.#out.number(model);
    this.#plain(SHAPE_FIELDS);
    this.#usage();
    this.#out.end();
  }

  /** What is told of it, and how much. */
  #usage(): number {
    const told = this.#take();
    const promptTokens = this.#take();
    const outputTokens = this.#take();
    this.#out.number(told);
    if ((told & TOLD.promptTokens) !== 0) this.#out.number(promptTokens);
    if ((told & TOLD.outputTokens) !== 0) this.#out.number(outputTokens);
    return told;
  }

  #decision(): void {
    const nodeId = this.#takeText();
    const what = this.#takeText();
    const code = this.#take();
    const taskId = this.#take();
    const number = this.#take();
    const node = nodeId === '' ? 0 : this.#name(nodeId);
    const words = what === '' ? 0 : this.#name(what);
    const out = this.#out;
    out.begin(LETTER.decision);
    out.number(code);
    this.#task(taskId);
    out.number(node);
    out.number(words);
    out.since(number, 0);
    out.end();
    this.#digest.at = this.#at;
    this.#digest.add({ code, taskId, number }, this.#words[node] as number, this.#words[words] as number);
  }

  #begin(letter: number, at: MonoUs): void {
    this.#out.begin(letter);
    this.#out.since(at, this.#at);
    this.#at = at;
  }

  #task(taskId: TaskId): void {
    this.#out.since(taskId, this.#taskId);
    this.#taskId = taskId;
  }

  #plain(count: number): void {
    const from = this.#cell;
    this.#cell = from + count;
    this.#out.numbers(this.#rows.cells, from, this.#cell);
  }

  #endWith(json: string): void {
    this.#out.json(json);
    this.#out.end();
  }

  /** The name's number, told in a line before its first use. */
  #name(name: string): number {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const number = this.#names.size + 1;
    this.#names.set(name, number);
    this.#words[number] = textWord(name);
    this.#out.begin(LETTER.name);
    this.#out.number(number);
    this.#endWith(exactJson(name));
    return number;
  }
}
