/** Writes the lines of a journal; see format.ts. A class, since every event of the gateway passes it. */
import type { MonoUs, NodeId, TaskId } from '../../base/units.ts';
import type { Needs } from '../request/needs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { RequestShape, TaskPrefix, TaskSpec, Usage } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import { asksNothing } from '../placement/eligibility.ts';
import { DECISION_KINDS, type DecisionKind } from './decision.ts';
import { ACCOUNT_NAMES, JOURNAL_NAMES_MAX, type JournalHead, type JournalSample } from './format.ts';

export class JournalEncoder {
  #text = '';
  #lines = 0;
  readonly #names = new Map<string, number>();
  readonly #quoted = new Map<string, string>();

  /** What was written since it was last taken. */
  take(): string {
    const text = this.#text;
    this.#text = '';
    this.#lines = 0;
    return text;
  }

  get chars(): number {
    return this.#text.length;
  }

  get lines(): number {
    return this.#lines;
  }

  /** Begins a segment: names are told anew. */
  head(head: JournalHead): void {
    this.#names.clear();
    this.#write(exactJson(head));
  }

  event(event: SchedulerEvent, at: MonoUs): void {
    switch (event.kind) {
      case 'submit':
        return this.#submit(event.task, at);
      case 'cancel':
        return this.#write(`["c",${at},${event.taskId}]`);
      case 'attempt-sent':
        return this.#write(`["t",${at},${event.taskId}]`);
      case 'attempt-first-byte':
        return this.#write(`["b",${at},${event.taskId}]`);
      case 'attempt-ended':
        return this.#write(`["r",${at},${event.taskId},${resultText(event.result)}]`);
      case 'tick':
        return this.#write(`["k",${at}]`);
      default:
        return this.#write(`["e",${at},${exactJson(event)}]`);
    }
  }

  learn(model: string, shape: RequestShape, usage: Usage): void {
    const { promptBytes, outputTokensMax, images, steps, pixelsPerImage, statedWorkUs } = shape;
    const sizes = [promptBytes, outputTokensMax, images, steps, pixelsPerImage, statedWorkUs].map(numberText);
    const output = shape.hasNoOutput === true ? 1 : 0;
    this.#write(`["l",${this.#name(model)},[${sizes.join(',')},${output}],${usageText(usage)}]`);
  }

  fingerprint(taskId: TaskId, salted: string): void {
    this.#write(`["f",${taskId},${this.#quote(salted)}]`);
  }

  decision(kind: DecisionKind, taskId: TaskId, nodeId: NodeId, what: string): void {
    const code = DECISION_KINDS.indexOf(kind);
    if (what === '' && nodeId === '') this.#write(`["d",${code},${taskId}]`);
    else
      this.#write(`["d",${code},${taskId},${nodeId === '' ? '0' : this.#name(nodeId)},${this.#quote(what)}]`);
  }

  sample({ at, events, decisions, hash, accounts }: JournalSample): void {
    const counts = ACCOUNT_NAMES.map((name) => accounts[name]).join(',');
    this.#write(`["h",${at},${events},${decisions},"${hash}",[${counts}]]`);
  }

  end(at: MonoUs): void {
    this.#write(`["q",${at}]`);
  }

  #submit(task: TaskSpec, at: MonoUs): void {
    const { className, tenant, model, bytes, deadlineAt, alternatives, prefix } = task;
    const names = `${this.#name(className)},${this.#name(tenant)},${this.#name(model)}`;
    const work = `${numberText(task.workUs)},${numberText(task.firstByteWorkUs)}`;
    const flags = (task.deadlineWished ? 1 : 0) + (task.stream ? 2 : 0);
    const counts = `${numberText(task.tokens ?? 0)},${numberText(task.promptTokens ?? 0)},${numberText(task.retryCount ?? 0)}`;
    const size = `${work},${numberText(bytes)},${numberText(deadlineAt)},${flags},${counts}`;
    const more =
      alternatives === undefined && prefix === undefined
        ? ''
        : `,${alternatives === undefined ? '0' : exactJson(alternatives)},${prefixText(prefix)}`;
    this.#write(`["s",${at},${task.id},${names},${needsText(task.needs)},${size}${more}]`);
  }

  /** The name's number; before its first use a line that tells it. */
  #name(name: string): string {
    const known = this.#names.get(name);
    if (known !== undefined) return String(known);
    if (this.#names.size >= JOURNAL_NAMES_MAX) return JSON.stringify(name);
    const number = this.#names.size + 1;
    this.#names.set(name, number);
    this.#write(`["n",${number},${JSON.stringify(name)}]`);
    return String(number);
  }

  /** Few texts come again and again. */
  #quote(text: string): string {
    const known = this.#quoted.get(text);
    if (known !== undefined) return known;
    const quoted = JSON.stringify(text);
    if (this.#quoted.size < QUOTED_MAX && text.length <= QUOTED_CHARS_MAX) this.#quoted.set(text, quoted);
    return quoted;
  }

  #write(line: string): void {
    this.#text += line;
    this.#text += '\n';
    this.#lines += 1;
  }
}

const QUOTED_MAX = 1_024;
const QUOTED_CHARS_MAX = 32;

/** Numbers that JSON has no word for are told as text, so that what comes back is what was there. */
function numberText(value: number): string {
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

function resultText(result: AttemptResult): string {
  if (result.kind === 'declined') return '1';
  if (result.kind === 'aborted' && result.passed === undefined) return '2';
  if (result.kind !== 'ok') return exactJson(result);
  const { usage, silenceUs } = result;
  if (usage === undefined && silenceUs === undefined) return '0';
  return `[${usage === undefined ? 'null' : usageText(usage)},${silenceUs === undefined ? 'null' : numberText(silenceUs)}]`;
}

function usageText({ promptTokens, outputTokens }: Usage): string {
  const prompt = promptTokens === undefined ? 'null' : numberText(promptTokens);
  return `[${prompt},${outputTokens === undefined ? 'null' : numberText(outputTokens)}]`;
}

/** Most requests state a length and nothing else. */
function needsText(needs: Needs): string {
  if (asksNothing(needs)) return '0';
  const { contextTokens, capabilities, lora, pixels, embeddingSize, zone } = needs;
  const isLength =
    capabilities.length === 0 && lora === '' && pixels === 0 && embeddingSize === 0 && zone === '';
  return isLength ? numberText(contextTokens) : exactJson(needs);
}

function prefixText(prefix: TaskPrefix | undefined): string {
  return prefix === undefined ? '0' : `[${numberText(prefix.workUsPerBlock)},[${prefix.blocks.join(',')}]]`;
}

/** JSON that keeps infinities and what is no number: `{"$number": "Infinity"}`. */
export function exactJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'number' && !Number.isFinite(part) ? { $number: String(part) } : part,
  );
}
