/**
 * What happened since it was last written: numbers in one column, texts in another, in the order in which they came. Taking
 * something down is a few stores. Making its line at once, between two steps of a request, would cost several times what it costs
 * to make some hundred lines in a row, whose code and tables then lie in the processor's caches.
 *
 * A row begins with its kind; what belongs to it is in the table below. What is rare is taken down as its JSON, at once: the
 * object may be another one's later.
 */
import type { MonoUs, NodeId, TaskId } from '../../base/units.ts';
import { asksNothing } from '../placement/eligibility.ts';
import type { Needs } from '../request/needs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { RequestShape, TaskSpec, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';

export const ROW = {
  /** at, task, work, work to the first byte, bytes, deadline, flags, tokens, of the prompt, retries, length; class, tenant, model, texts of the flags */
  submit: 0,
  /** at, task */
  cancel: 1,
  sent: 2,
  firstByte: 3,
  /** at, task, form, what it tells of, both counts, silence; of the form `other` its JSON */
  ended: 4,
  /** at */
  tick: 5,
  /** at; JSON */
  other: 6,
  /** shape, what the usage tells of, both counts; model */
  learn: 7,
  /** task; fingerprint */
  fingerprint: 8,
  /** kind, task; node, what */
  decision: 9,
} as const;

/** Flags of a submitted task: the first two as its line has them, the others of texts that it left. */
export const FLAG = { deadlineWished: 1, stream: 2, needs: 4, alternatives: 8, prefix: 16 } as const;

/** Forms of an attempt's end. */
export const FORM = { ok: 0, declined: 1, aborted: 2, other: 3 } as const;

/** What an end or a usage tells of: 0 is no count. */
export const TOLD = { usage: 1, promptTokens: 2, outputTokens: 4, silence: 8 } as const;

/** Some 150 requests: their lines are made in less than a millisecond. */
const CELLS_MAX = 8_192;
const TEXTS_MAX = 4_096;
/** More than the largest row has. */
const ROW_CELLS_MAX = 16;
const ROW_TEXTS_MAX = 8;

/** A class, since every event of the gateway passes it. */
export class JournalRows {
  readonly cells: Float64Array = new Float64Array(CELLS_MAX);
  readonly texts: string[] = new Array<string>(TEXTS_MAX).fill('');
  #cellCount = 0;
  #textCount = 0;

  get cellCount(): number {
    return this.#cellCount;
  }

  /** Whether another row might not find room. */
  get isFull(): boolean {
    return this.#cellCount > CELLS_MAX - ROW_CELLS_MAX || this.#textCount > TEXTS_MAX - ROW_TEXTS_MAX;
  }

  clear(): void {
    this.#cellCount = 0;
    this.#textCount = 0;
  }

  event(event: SchedulerEvent, at: MonoUs): void {
    switch (event.kind) {
      case 'submit':
        return this.#submit(event.task, at);
      case 'cancel':
        return this.#three(ROW.cancel, at, event.taskId);
      case 'attempt-sent':
        return this.#three(ROW.sent, at, event.taskId);
      case 'attempt-first-byte':
        return this.#three(ROW.firstByte, at, event.taskId);
      case 'attempt-ended':
        this.#three(ROW.ended, at, event.taskId);
        return this.#result(event.result);
      case 'tick':
        this.#cell(ROW.tick);
        return this.#cell(at);
      default:
        this.#cell(ROW.other);
        this.#cell(at);
        return this.#text(exactJson(event));
    }
  }

  learn(model: string, shape: RequestShape, usage: Usage): void {
    this.#text(model);
    const { cells } = this;
    let to = this.#cellCount;
    cells[to++] = ROW.learn;
    cells[to++] = shape.promptBytes;
    cells[to++] = shape.outputTokensMax;
    cells[to++] = shape.images;
    cells[to++] = shape.steps;
    cells[to++] = shape.pixelsPerImage;
    cells[to++] = shape.statedWorkUs;
    cells[to++] = shape.hasNoOutput === true ? 1 : 0;
    this.#cellCount = to;
    this.#counts(usage, 0);
  }

  fingerprint(taskId: TaskId, salted: string): void {
    this.#text(salted);
    this.#cell(ROW.fingerprint);
    this.#cell(taskId);
  }

  decision(kind: number, taskId: TaskId, nodeId: NodeId, what: string): void {
    this.#text(nodeId);
    this.#text(what);
    this.#three(ROW.decision, kind, taskId);
  }

  #submit(task: TaskSpec, at: MonoUs): void {
    this.#text(task.className);
    this.#text(task.tenant);
    this.#text(task.model);
    const flags = this.#flags(task);
    const { cells } = this;
    let to = this.#cellCount;
    cells[to++] = ROW.submit;
    cells[to++] = at;
    cells[to++] = task.id;
    cells[to++] = task.workUs;
    cells[to++] = task.firstByteWorkUs;
    cells[to++] = task.bytes;
    cells[to++] = task.deadlineAt;
    cells[to++] = flags;
    cells[to++] = task.tokens ?? 0;
    cells[to++] = task.promptTokens ?? 0;
    cells[to++] = task.retryCount ?? 0;
    cells[to++] = asksNothing(task.needs) ? 0 : task.needs.contextTokens;
    this.#cellCount = to;
  }

  /** Most requests state a length and nothing else; of others a text is left for each flag. */
  #flags({ deadlineWished, stream, needs, alternatives, prefix }: TaskSpec): number {
    let flags = (deadlineWished ? FLAG.deadlineWished : 0) + (stream ? FLAG.stream : 0);
    if (!statesLength(needs)) {
      flags += FLAG.needs;
      this.#text(exactJson(needs));
    }
    if (alternatives !== undefined) {
      flags += FLAG.alternatives;
      this.#text(exactJson(alternatives));
    }
    if (prefix !== undefined) {
      flags += FLAG.prefix;
      this.#text(`[${exactJson(prefix.workUsPerBlock)},[${prefix.blocks.join(',')}]]`);
    }
    return flags;
  }

  #result(result: AttemptResult): void {
    if (result.kind === 'ok') {
      this.#cell(FORM.ok);
      const { usage, silenceUs } = result;
      this.#counts(usage, silenceUs === undefined ? 0 : TOLD.silence);
      return this.#cell(silenceUs ?? 0);
    }
    if (result.kind === 'declined') this.#cell(FORM.declined);
    else if (result.kind === 'aborted' && result.passed === undefined) this.#cell(FORM.aborted);
    else {
      this.#cell(FORM.other);
      this.#text(exactJson(result));
    }
    this.#counts(undefined, 0);
    this.#cell(0);
  }

  #counts(usage: Usage | undefined, told: number): void {
    const prompt = usage?.promptTokens;
    const output = usage?.outputTokens;
    this.#three(
      told +
        (usage === undefined ? 0 : TOLD.usage) +
        (prompt === undefined ? 0 : TOLD.promptTokens) +
        (output === undefined ? 0 : TOLD.outputTokens),
      prompt ?? 0,
      output ?? 0,
    );
  }

  #three(first: number, second: number, third: number): void {
    const { cells } = this;
    const to = this.#cellCount;
    cells[to] = first;
    cells[to + 1] = second;
    cells[to + 2] = third;
    this.#cellCount = to + 3;
  }

  #cell(value: number): void {
    this.cells[this.#cellCount++] = value;
  }

  #text(text: string): void {
    this.texts[this.#textCount++] = text;
  }
}

function statesLength({ capabilities, lora, pixels, embeddingSize, zone }: Needs): boolean {
  return capabilities.length === 0 && lora === '' && pixels === 0 && embeddingSize === 0 && zone === '';
}

/** JSON that keeps infinities and what is no number: `{"$number": "Infinity"}`. */
export function exactJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'number' && !Number.isFinite(part) ? { $number: String(part) } : part,
  );
}
