/**
 * Mooncake traces (kvcache-ai/Mooncake, FAST'25): one JSON object a line with `timestamp` in milliseconds, `input_length`,
 * `output_length` in tokens, and `hash_ids`, the ids of the prompt's blocks of 512 tokens: equal ids are equal prefixes.
 */
import { US_PER_MS } from '../../../base/units.ts';
import { type LineFault, readLines, wholeNumber } from './read-lines.ts';
import type { TraceReading, TraceRow } from './trace.ts';

export function readMooncakeTrace(text: string, file: string): TraceReading<TraceRow> {
  return readLines(text, file, { parse: parseRow, tiesAllowed: true });
}

function parseRow(line: string): TraceRow | LineFault {
  const row = parseObject(line);
  if (row === undefined) return { rule: 'must be a JSON object', value: line };
  const atMs = wholeNumber(row['timestamp']);
  const promptTokens = wholeNumber(row['input_length']);
  const outputTokens = wholeNumber(row['output_length']);
  const blocks = blocksOf(row['hash_ids']);
  if (atMs === undefined) return wrong('timestamp', row, 'whole milliseconds of at least 0');
  if (promptTokens === undefined) return wrong('input_length', row, 'a whole number of at least 0');
  if (outputTokens === undefined) return wrong('output_length', row, 'a whole number of at least 0');
  if (blocks === undefined) return wrong('hash_ids', row, 'a list of whole numbers of at least 0');
  return { atUs: atMs * US_PER_MS, promptTokens, outputTokens, blocks };
}

function wrong(field: string, row: Readonly<Record<string, unknown>>, what: string): LineFault {
  return { rule: `${field} must be ${what}`, value: JSON.stringify(row[field]) ?? '' };
}

function parseObject(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}

function blocksOf(value: unknown): readonly number[] | undefined {
  const isList = Array.isArray(value) && value.every((id) => wholeNumber(id) !== undefined);
  return isList ? (value as readonly number[]) : undefined;
}
