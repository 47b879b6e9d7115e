/** The common part of all trace readers: line by line, entries or issues, in order of time. */
import type { DurationUs } from '../../../base/units.ts';
import { TRACE_ISSUES_MAX, TRACE_ROWS_MAX, type TraceIssue, type TraceReading } from './trace.ts';

const VALUE_LENGTH_MAX = 60;

/** What is wrong with a line, and with which part of it. */
export interface LineFault {
  readonly rule: string;
  readonly value: string;
}

export interface LineFormat<Entry extends { readonly atUs: DurationUs }> {
  /** The first line when it must be this. */
  readonly header?: string;
  /** `atUs` since any origin. */
  readonly parse: (line: string) => Entry | LineFault;
  /** Whether two entries may have the same instant. */
  readonly tiesAllowed: boolean;
}

/** Blank lines are passed over. */
export function readLines<Entry extends { readonly atUs: DurationUs }>(
  text: string,
  file: string,
  format: LineFormat<Entry>,
): TraceReading<Entry> {
  const entries: Entry[] = [];
  const issues: TraceIssue[] = [];
  const fault = (line: number, { rule, value }: LineFault): void => {
    if (issues.length < TRACE_ISSUES_MAX) issues.push({ file, line, value: shortened(value), rule });
  };
  let originUs: DurationUs | undefined;
  let beforeUs: DurationUs = Number.NEGATIVE_INFINITY;
  for (const { line, content } of linesOf(text)) {
    if (line === 1 && format.header !== undefined) {
      if (content !== format.header)
        fault(1, { rule: `must be the header ${format.header}`, value: content });
      continue;
    }
    const entry = content === '' ? undefined : format.parse(content);
    if (entry === undefined) continue;
    if (entries.length === TRACE_ROWS_MAX) {
      fault(line, { rule: `must be one of at most ${TRACE_ROWS_MAX} rows`, value: content });
      break;
    }
    if ('rule' in entry) fault(line, entry);
    else {
      originUs ??= entry.atUs;
      const isLater = format.tiesAllowed ? entry.atUs >= beforeUs : entry.atUs > beforeUs;
      if (!isLater) fault(line, { rule: 'must not be before the line above', value: content });
      beforeUs = entry.atUs;
      entries.push({ ...entry, atUs: entry.atUs - originUs });
    }
  }
  if (entries.length === 0 && issues.length === 0) fault(1, { rule: 'must have rows', value: text });
  return issues.length > 0 ? { kind: 'invalid', issues } : { kind: 'read', entries };
}

function* linesOf(text: string): Generator<{ readonly line: number; readonly content: string }> {
  let line = 1;
  for (let start = 0; start < text.length; line += 1) {
    const end = text.indexOf('\n', start);
    const stop = end === -1 ? text.length : end;
    yield { line, content: text.slice(start, stop).trim() };
    start = stop + 1;
  }
}

function shortened(value: string): string {
  return value.length > VALUE_LENGTH_MAX ? `${value.slice(0, VALUE_LENGTH_MAX)}…` : value;
}

/** A number of tokens as a field says it; undefined when it is none. */
export function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}
