/**
 * Azure LLM inference traces (AzurePublicDataset, 2023 and 2024): `TIMESTAMP,ContextTokens,GeneratedTokens`, the instant
 * as a date and a time of day in UTC, of at most 7 decimals.
 */
import { type DurationUs, US_PER_S } from '../../../base/units.ts';
import { type LineFault, readLines, wholeNumber } from './read-lines.ts';
import type { TraceReading, TraceRow } from './trace.ts';

const HEADER = 'TIMESTAMP,ContextTokens,GeneratedTokens';
const INSTANT = /^(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:\+00:00)?$/;
const S_PER_DAY = 86_400;

export function readAzureTrace(text: string, file: string): TraceReading<TraceRow> {
  return readLines(text, file, { header: HEADER, parse: parseRow, tiesAllowed: true });
}

function parseRow(line: string): TraceRow | LineFault {
  const [instant = '', context = '', generated = '', ...more] = line.split(',');
  if (more.length > 0) return { rule: 'must have 3 fields', value: line };
  const atUs = instantUs(instant);
  const promptTokens = wholeNumber(context);
  const outputTokens = wholeNumber(generated);
  if (atUs === undefined) return { rule: 'TIMESTAMP must be as 2023-11-16 18:17:03.9799600', value: instant };
  if (promptTokens === undefined)
    return { rule: 'ContextTokens must be a whole number of at least 0', value: context };
  if (outputTokens === undefined)
    return { rule: 'GeneratedTokens must be a whole number of at least 0', value: generated };
  return { atUs, promptTokens, outputTokens };
}

function instantUs(text: string): DurationUs | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number);
  const isInRange =
    month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour < 24 && minute < 60 && second < 61;
  if (!isInRange) return undefined;
  const seconds = daysSince1970(year, month, day) * S_PER_DAY + hour * 3_600 + minute * 60;
  return seconds * US_PER_S + Math.round(second * US_PER_S);
}

/** Of the Gregorian calendar. Years are counted from March on, so that the day of leap years is their last. */
function daysSince1970(year: number, month: number, day: number): number {
  const fromMarch = month > 2 ? year : year - 1;
  const leapDays = Math.floor(fromMarch / 4) - Math.floor(fromMarch / 100) + Math.floor(fromMarch / 400);
  const daysBefore = Math.floor((153 * ((month + 9) % 12) + 2) / 5);
  return 365 * fromMarch + leapDays + daysBefore + day - 719_469;
}
