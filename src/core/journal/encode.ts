/** Writes the lines of a journal; see format.ts. A class, since every event of the gateway passes it. */
import type { MonoUs, NodeId, TaskId } from '../../base/units.ts';
import { asksNothing } from '../placement/eligibility.ts';
import type { Needs } from '../request/needs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { RequestShape, TaskSpec, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import { ByteWriter } from './byte-writer.ts';
import { DECISION_KINDS, type DecisionKind } from './decision.ts';
import { ACCOUNT_NAMES, JOURNAL_NAMES_MAX, type JournalHead, type JournalSample } from './format.ts';

/** Texts of decisions that are quoted once: reasons and states are few, hints are not. */
const QUOTED_MAX = 1_024;
const QUOTED_CHARS_MAX = 32;

export class JournalEncoder {
  readonly #out = new ByteWriter();
  #lines = 0;
  #at: MonoUs = 0;
  readonly #names = new Map<string, number>();
  readonly #quoted = new Map<string, string>();
  readonly #kinds: ReadonlyMap<DecisionKind, number> = new Map(
    DECISION_KINDS.map((kind, index) => [kind, index]),
  );

  /** What was written since it was last taken. */
  take(): Uint8Array {
    this.#lines = 0;
    return this.#out.take();
  }

  get bytes(): number {
    return this.#out.length;
  }

  get lines(): number {
    return this.#lines;
  }

  /** Begins a segment: names and instants are told anew. */
  head(head: JournalHead): void {
    this.#names.clear();
    this.#at = head.at;
    this.#json(head);
    this.#end('\n');
  }

  event(event: SchedulerEvent, at: MonoUs): void {
    switch (event.kind) {
      case 'submit':
        return this.#submit(event.task, at);
      case 'cancel':
        return this.#task('["c",', event.taskId, at);
      case 'attempt-sent':
        return this.#task('["t",', event.taskId, at);
      case 'attempt-first-byte':
        return this.#task('["b",', event.taskId, at);
      case 'attempt-ended':
        this.#begin('["r",', at);
        this.#next(event.taskId);
        this.#result(event.result);
        return this.#end(']\n');
      case 'tick':
        this.#begin('["k",', at);
        return this.#end(']\n');
      default:
        this.#begin('["e",', at);
        this.#out.ascii(',');
        this.#json(event);
        return this.#end(']\n');
    }
  }

  learn(model: string, shape: RequestShape, usage: Usage): void {
    const name = this.#name(model);
    const out = this.#out;
    out.ascii('["l",');
    this.#put(name);
    out.ascii(',[');
    out.number(shape.promptBytes);
    this.#next(shape.outputTokensMax);
    this.#next(shape.images);
    this.#next(shape.steps);
    this.#next(shape.pixelsPerImage);
    this.#next(shape.statedWorkUs);
    out.ascii(shape.hasNoOutput === true ? ',1],' : ',0],');
    this.#usage(usage);
    this.#end(']\n');
  }

  fingerprint(taskId: TaskId, salted: string): void {
    this.#out.ascii('["f",');
    this.#out.number(taskId);
    this.#out.ascii(',');
    this.#json(salted);
    this.#end(']\n');
  }

  decision(kind: DecisionKind, taskId: TaskId, nodeId: NodeId, what: string): void {
    const name = nodeId === '' ? 0 : this.#name(nodeId);
    this.#out.ascii('["d",');
    this.#out.number(this.#kinds.get(kind) as number);
    this.#next(taskId);
    if (nodeId !== '' || what !== '') {
      this.#out.ascii(',');
      this.#put(name);
      this.#out.ascii(',');
      this.#quote(what);
    }
    this.#end(']\n');
  }

  sample({ at, events, decisions, hash, accounts }: JournalSample): void {
    const counts = ACCOUNT_NAMES.map((name) => accounts[name]).join(',');
    this.#begin('["h",', at);
    this.#out.ascii(`,${events},${decisions},"${hash}",[${counts}]`);
    this.#end(']\n');
  }

  close(at: MonoUs): void {
    this.#begin('["q",', at);
    this.#end(']\n');
  }

  #submit(task: TaskSpec, at: MonoUs): void {
    const className = this.#name(task.className);
    const tenant = this.#name(task.tenant);
    const model = this.#name(task.model);
    const out = this.#out;
    this.#begin('["s",', at);
    this.#next(task.id);
    out.ascii(',');
    this.#put(className);
    out.ascii(',');
    this.#put(tenant);
    out.ascii(',');
    this.#put(model);
    out.ascii(',');
    this.#needs(task.needs);
    this.#next(task.workUs);
    this.#next(task.firstByteWorkUs);
    this.#next(task.bytes);
    out.ascii(',');
    this.#instant(task.deadlineAt, at);
    this.#next((task.deadlineWished ? 1 : 0) + (task.stream ? 2 : 0));
    this.#next(task.tokens ?? 0);
    this.#next(task.promptTokens ?? 0);
    this.#next(task.retryCount ?? 0);
    if (task.alternatives !== undefined || task.prefix !== undefined) this.#rest(task);
    this.#end(']\n');
  }

  #rest({ alternatives, prefix }: TaskSpec): void {
    this.#out.ascii(',');
    if (alternatives === undefined) this.#out.ascii('0');
    else this.#json(alternatives);
    if (prefix === undefined) return this.#out.ascii(',0');
    this.#out.ascii(',[');
    this.#out.number(prefix.workUsPerBlock);
    this.#out.ascii(`,[${prefix.blocks.join(',')}]]`);
  }

  #task(code: string, taskId: TaskId, at: MonoUs): void {
    this.#begin(code, at);
    this.#next(taskId);
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

  #result(result: AttemptResult): void {
    const out = this.#out;
    if (result.kind === 'declined') return out.ascii(',1');
    if (result.kind === 'aborted' && result.passed === undefined) return out.ascii(',2');
    if (result.kind !== 'ok') {
      out.ascii(',');
      return this.#json(result);
    }
    const { usage, silenceUs } = result;
    if (usage === undefined && silenceUs === undefined) return out.ascii(',0');
    out.ascii(',[');
    if (usage === undefined) out.ascii('null');
    else this.#usage(usage);
    out.ascii(',');
    if (silenceUs === undefined) out.ascii('null]');
    else {
      out.number(silenceUs);
      out.ascii(']');
    }
  }

  #usage({ promptTokens, outputTokens }: Usage): void {
    this.#out.ascii('[');
    if (promptTokens === undefined) this.#out.ascii('null');
    else this.#out.number(promptTokens);
    if (outputTokens === undefined) return this.#out.ascii(',null]');
    this.#next(outputTokens);
    this.#out.ascii(']');
  }

  /** Most requests state a length and nothing else. */
  #needs(needs: Needs): void {
    if (asksNothing(needs)) return this.#out.ascii('0');
    const { contextTokens, capabilities, lora, pixels, embeddingSize, zone } = needs;
    const isLength =
      capabilities.length === 0 && lora === '' && pixels === 0 && embeddingSize === 0 && zone === '';
    if (isLength) this.#out.number(contextTokens);
    else this.#json(needs);
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

/** JSON that keeps infinities and what is no number: `{"$number": "Infinity"}`. */
function exactJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'number' && !Number.isFinite(part) ? { $number: String(part) } : part,
  );
}
