/**
 * Writes the lines of a journal; see format.ts. What happens is taken down in rows, and their lines are made together. A class,
 * since every event of the gateway passes it.
 */
import type { MonoUs, NodeId, TaskId } from '../../base/units.ts';
import type { RequestShape, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import { ByteWriter } from './byte-writer.ts';
import { DECISION_KINDS, type DecisionKind } from './decision.ts';
import { ACCOUNT_NAMES, JOURNAL_NAMES_MAX, type JournalHead, type JournalSample } from './format.ts';
import { exactJson, FLAG, FORM, JournalRows, ROW, TOLD } from './journal-rows.ts';

/** Texts of decisions that are quoted once: reasons and states are few, hints are not. */
const QUOTED_MAX = 1_024;
const QUOTED_CHARS_MAX = 32;

/** Cells of a row behind its kind. */
const SUBMIT_CELLS = 11;
const SHAPE_CELLS = 7;
const COUNT_CELLS = 3;

export interface JournalText {
  readonly text: Uint8Array;
  readonly lines: number;
}

export class JournalEncoder {
  readonly #rows = new JournalRows();
  readonly #out = new ByteWriter();
  #lines = 0;
  #at: MonoUs = 0;
  /** Where the next number and the next text are read. */
  #cell = 0;
  #text = 0;
  readonly #names = new Map<string, number>();
  readonly #quoted = new Map<string, string>();
  readonly #kinds: ReadonlyMap<DecisionKind, number> = new Map(
    DECISION_KINDS.map((kind, index) => [kind, index]),
  );

  /** What happened since it was last taken. */
  take(): JournalText {
    this.#write();
    const lines = this.#lines;
    this.#lines = 0;
    return { text: this.#out.take(), lines };
  }

  /** Of the lines that are made already; what waits in rows is bounded. */
  get bytes(): number {
    return this.#out.length;
  }

  /** Begins a segment: names and instants are told anew. */
  head(head: JournalHead): void {
    this.#write();
    this.#names.clear();
    this.#at = head.at;
    this.#json(head);
    this.#end('\n');
  }

  event(event: SchedulerEvent, at: MonoUs): void {
    this.#room().event(event, at);
  }

  learn(model: string, shape: RequestShape, usage: Usage): void {
    this.#room().learn(model, shape, usage);
  }

  fingerprint(taskId: TaskId, salted: string): void {
    this.#room().fingerprint(taskId, salted);
  }

  decision(kind: DecisionKind, taskId: TaskId, nodeId: NodeId, what: string): void {
    this.#room().decision(this.#kinds.get(kind) as number, taskId, nodeId, what);
  }

  sample({ at, events, decisions, hash, accounts }: JournalSample): void {
    this.#write();
    const counts = ACCOUNT_NAMES.map((name) => accounts[name]).join(',');
    this.#begin('["h",', at);
    this.#out.ascii(`,${events},${decisions},"${hash}",[${counts}]`);
    this.#end(']\n');
  }

  close(at: MonoUs): void {
    this.#write();
    this.#begin('["q",', at);
    this.#end(']\n');
  }

  #room(): JournalRows {
    if (this.#rows.isFull) this.#write();
    return this.#rows;
  }

  /** Makes the lines of all rows. */
  #write(): void {
    const rows = this.#rows;
    const end = rows.cellCount;
    this.#cell = 0;
    this.#text = 0;
    while (this.#cell < end) this.#row(this.#take());
    rows.clear();
  }

  #row(kind: number): void {
    switch (kind) {
      case ROW.submit:
        return this.#submit();
      case ROW.cancel:
        return this.#task('["c",');
      case ROW.sent:
        return this.#task('["t",');
      case ROW.firstByte:
        return this.#task('["b",');
      case ROW.ended:
        return this.#ended();
      case ROW.tick:
        this.#begin('["k",', this.#take());
        return this.#end(']\n');
      case ROW.other:
        this.#begin('["e",', this.#take());
        this.#out.ascii(',');
        this.#out.text(this.#takeText());
        return this.#end(']\n');
      case ROW.learn:
        return this.#learn();
      case ROW.fingerprint:
        this.#out.ascii('["f",');
        this.#out.number(this.#take());
        this.#out.ascii(',');
        this.#json(this.#takeText());
        return this.#end(']\n');
      default:
        return this.#decision();
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
    const { cells } = this.#rows;
    const from = this.#cell;
    this.#cell += SUBMIT_CELLS;
    const at = cells[from] as number;
    const flags = cells[from + 6] as number;
    this.#begin('["s",', at);
    this.#next(cells[from + 1] as number);
    out.ascii(',');
    this.#put(className);
    out.ascii(',');
    this.#put(tenant);
    out.ascii(',');
    this.#put(model);
    out.ascii(',');
    if ((flags & FLAG.needs) === 0) out.number(cells[from + 10] as number);
    else out.text(this.#takeText());
    for (let cell = from + 2; cell < from + 5; cell++) this.#next(cells[cell] as number);
    out.ascii(',');
    this.#instant(cells[from + 5] as number, at);
    this.#next(flags & (FLAG.deadlineWished | FLAG.stream));
    for (let cell = from + 7; cell < from + 10; cell++) this.#next(cells[cell] as number);
    if (flags >= FLAG.alternatives) this.#rest(flags);
    this.#end(']\n');
  }

  #rest(flags: number): void {
    const out = this.#out;
    out.ascii(',');
    out.text((flags & FLAG.alternatives) === 0 ? '0' : this.#takeText());
    out.ascii(',');
    out.ascii((flags & FLAG.prefix) === 0 ? '0' : this.#takeText());
  }

  #task(code: string): void {
    this.#begin(code, this.#take());
    this.#next(this.#take());
    this.#end(']\n');
  }

  #ended(): void {
    const out = this.#out;
    this.#begin('["r",', this.#take());
    this.#next(this.#take());
    const form = this.#take();
    const told = this.#rows.cells[this.#cell] as number;
    out.ascii(',');
    if (form === FORM.other) out.text(this.#takeText());
    else if (form !== FORM.ok || told === 0) out.number(form);
    if (told === 0) this.#cell += COUNT_CELLS + 1;
    else {
      out.ascii('[');
      this.#counts();
      out.ascii(',');
      const silenceUs = this.#take();
      if ((told & TOLD.silence) === 0) out.ascii('null');
      else out.number(silenceUs);
      out.ascii(']');
    }
    this.#end(']\n');
  }

  #learn(): void {
    const name = this.#name(this.#takeText());
    const out = this.#out;
    out.ascii('["l",');
    this.#put(name);
    out.ascii(',[');
    out.number(this.#take());
    for (let field = 1; field < SHAPE_CELLS; field++) this.#next(this.#take());
    out.ascii('],');
    this.#counts();
    this.#end(']\n');
  }

  /** A usage, as far as it was told. */
  #counts(): void {
    const out = this.#out;
    const told = this.#take();
    const promptTokens = this.#take();
    const outputTokens = this.#take();
    if ((told & TOLD.usage) === 0) return out.ascii('null');
    out.ascii('[');
    if ((told & TOLD.promptTokens) === 0) out.ascii('null');
    else out.number(promptTokens);
    out.ascii(',');
    if ((told & TOLD.outputTokens) === 0) out.ascii('null');
    else out.number(outputTokens);
    out.ascii(']');
  }

  #decision(): void {
    const nodeId = this.#takeText();
    const what = this.#takeText();
    const out = this.#out;
    const name = nodeId === '' ? 0 : this.#name(nodeId);
    out.ascii('["d",');
    out.number(this.#take());
    this.#next(this.#take());
    if (nodeId !== '' || what !== '') {
      out.ascii(',');
      this.#put(name);
      out.ascii(',');
      this.#quote(what);
    }
    this.#end(']\n');
  }

  /** Instants are told as the time since the one before. */
  #begin(code: string, at: MonoUs): void {
    this.#out.ascii(code);
    this.#out.number(at - this.#at);
    this.#at = at;
  }

  #end(text: string): void {
    this.#out.ascii(text);
    this.#lines += 1;
  }

  #next(value: number): void {
    this.#out.ascii(',');
    this.#out.number(value);
  }

  /** Relative to another instant where that is exact, else as a text. */
  #instant(at: MonoUs, base: MonoUs): void {
    if (Number.isSafeInteger(at) && Number.isSafeInteger(base)) this.#out.number(at - base);
    else this.#out.ascii(`"${at}"`);
  }

  /** The name's number, told in a line before its first use; the name itself beyond the bound. */
  #name(name: string): number | string {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    if (this.#names.size >= JOURNAL_NAMES_MAX) return name;
    const number = this.#names.size + 1;
    this.#names.set(name, number);
    this.#out.ascii(`["n",${number},`);
    this.#json(name);
    this.#end(']\n');
    return number;
  }

  #put(name: number | string): void {
    if (typeof name === 'number') this.#out.number(name);
    else this.#json(name);
  }

  #quote(text: string): void {
    const known = this.#quoted.get(text);
    if (known !== undefined) return this.#out.ascii(known);
    const quoted = JSON.stringify(text);
    const isShort = text.length <= QUOTED_CHARS_MAX && this.#quoted.size < QUOTED_MAX;
    if (isShort && /^[ -~]*$/.test(quoted)) this.#quoted.set(text, quoted);
    this.#out.text(quoted);
  }

  #json(value: unknown): void {
    this.#out.text(exactJson(value));
  }
}
