/**
 * What happened since it was last written: numbers in one column, texts in another, in the order in which they came. Taking
 * something down is a few stores. Making its line at once, between two steps of a request, would cost several times what it costs
 * to make some hundred lines in a row: that code and its tables are larger than what the processor's caches keep of them meanwhile.
 *
 * A row begins with the letter of its line. What is rare is taken down as its JSON, at once: the object may be another one's later.
 */
import type { MonoUs, TaskId } from '../../base/units.ts';
import { type Needs, NO_NEEDS } from '../request/needs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { RequestShape, TaskSpec, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import type { Decision } from './decision.ts';
import { FLAG, FORM, LETTER, TOLD } from './format.ts';
import { exactJson } from './line.ts';

/** Some 80 requests: their lines are made in a quarter of a millisecond. */
const CELLS_MAX = 4_096;
/** No more names than these are told at once. */
export const TEXTS_MAX = 1_024;
/** More than the largest row has. */
const ROW_CELLS_MAX = 16;
const ROW_TEXTS_MAX = 4;

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

  /** A step of a request; false for any other event, which is taken down as `other`. */
  step(event: SchedulerEvent, at: MonoUs): boolean {
    switch (event.kind) {
      case 'submit':
        this.#submit(event.task, at);
        return true;
      case 'cancel':
        this.#three(LETTER.cancel, at, event.taskId);
        return true;
      case 'attempt-sent':
        this.#three(LETTER.sent, at, event.taskId);
        return true;
      case 'attempt-first-byte':
        this.#three(LETTER.firstByte, at, event.taskId);
        return true;
      case 'attempt-ended':
        this.#three(LETTER.ended, at, event.taskId);
        this.#result(event.result);
        return true;
      default:
        return false;
    }
  }

  other(event: SchedulerEvent, at: MonoUs): void {
    const isTick = event.kind === 'tick';
    this.#cell(isTick ? LETTER.tick : LETTER.other);
    this.#cell(at);
    if (!isTick) this.#text(exactJson(event));
  }

  learn(model: string, shape: RequestShape, usage: Usage): void {
    this.#text(model);
    const { cells } = this;
    const to = this.#cellCount;
    cells[to] = LETTER.learn;
    cells[to + 1] = shape.promptBytes;
    cells[to + 2] = shape.outputTokensMax;
    cells[to + 3] = shape.images;
    cells[to + 4] = shape.steps;
    cells[to + 5] = shape.pixelsPerImage;
    cells[to + 6] = shape.statedWorkUs;
    cells[to + 7] = shape.hasNoOutput === true ? 1 : 0;
    this.#cellCount = to + 8;
    this.#usage(usage, 0);
  }

  fingerprint(taskId: TaskId, salted: string): void {
    this.#text(salted);
    this.#cell(LETTER.fingerprint);
    this.#cell(taskId);
  }

  decision({ code, taskId, nodeId, what, number }: Decision): void {
    this.#text(nodeId);
    this.#text(what);
    this.#three(LETTER.decision, code, taskId);
    this.#cell(number);
  }

  #submit(task: TaskSpec, at: MonoUs): void {
    this.#text(task.className);
    this.#text(task.tenant);
    this.#text(task.model);
    const flags = flagsOf(task);
    const { cells } = this;
    const to = this.#cellCount;
    cells[to] = LETTER.submit;
    cells[to + 1] = at;
    cells[to + 2] = task.id;
    cells[to + 3] = flags;
    cells[to + 4] = task.deadlineAt;
    cells[to + 5] = task.needs.contextTokens;
    cells[to + 6] = task.workUs;
    cells[to + 7] = task.firstByteWorkUs;
    cells[to + 8] = task.bytes;
    cells[to + 9] = task.tokens ?? 0;
    cells[to + 10] = task.promptTokens ?? 0;
    cells[to + 11] = task.retryCount ?? 0;
    this.#cellCount = to + 12;
    if (flags >= FLAG.needs) this.#text(restOf(task));
  }

  #result(result: AttemptResult): void {
    if (result.kind === 'ok') {
      const { usage, silenceUs } = result;
      this.#cell(FORM.ok);
      this.#usage(usage, silenceUs === undefined ? 0 : TOLD.silence);
      if (silenceUs !== undefined) this.#cell(silenceUs);
    } else if (result.kind === 'declined') this.#cell(FORM.declined);
    else if (result.kind === 'aborted' && result.passed === undefined) this.#cell(FORM.aborted);
    else {
      this.#cell(FORM.other);
      this.#text(exactJson(result));
    }
  }

  #usage(usage: Usage | undefined, told: number): void {
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

/** Most requests state a length and nothing else. */
function flagsOf({ deadlineWished, stream, needs, alternatives, prefix }: TaskSpec): number {
  return (
    (deadlineWished ? FLAG.deadlineWished : 0) +
    (stream ? FLAG.stream : 0) +
    (statesLength(needs) ? 0 : FLAG.needs) +
    (alternatives === undefined ? 0 : FLAG.alternatives) +
    (prefix === undefined ? 0 : FLAG.prefix)
  );
}

function statesLength(needs: Needs): boolean {
  if (needs === NO_NEEDS) return true;
  const { capabilities, lora, pixels, embeddingSize, zone } = needs;
  return capabilities.length === 0 && lora === '' && pixels === 0 && embeddingSize === 0 && zone === '';
}

/** 0 for what there is none of. */
function restOf({ needs, alternatives, prefix }: TaskSpec): string {
  return exactJson([
    statesLength(needs) ? 0 : needs,
    alternatives ?? 0,
    prefix === undefined ? 0 : [prefix.workUsPerBlock, prefix.blocks],
  ]);
}
