/**
 * What trace files come to: requests by instant and size, or windows of a rate. Time is the trace's own, from its first line on.
 * A file is read as a whole or not at all: everything that is wrong with it is told at once, by line.
 */
import type { DurationUs, Tokens } from '../../../base/units.ts';
import type { Demand } from '../../machines/machine.ts';

/** Longest trace that is held in memory. */
export const TRACE_ROWS_MAX = 5_000_000;
/** What else is wrong with a file is not told. */
export const TRACE_ISSUES_MAX = 20;

export interface TraceRow {
  /** Since the first row. Never less than that of the row before. */
  readonly atUs: DurationUs;
  readonly promptTokens: Tokens;
  readonly outputTokens: Tokens;
  /** Ids of the prompt's blocks of 512 tokens, from its beginning; absent when the trace has none. */
  readonly blocks?: readonly number[];
}

/** A stretch of time in which gaps follow one law. */
export interface TraceWindow {
  /** Since the first window. Always more than that of the one before. */
  readonly atUs: DurationUs;
  /** Requests per second; 0 where there were none. */
  readonly perSecond: number;
  /** Shape 1 of either is exponential. */
  readonly law: { readonly kind: 'gamma' | 'weibull'; readonly shape: number };
}

export interface TraceIssue {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** What stands there, shortened. */
  readonly value: string;
  readonly rule: string;
}

export type TraceReading<Entry> =
  | { readonly kind: 'read'; readonly entries: readonly Entry[] }
  | { readonly kind: 'invalid'; readonly issues: readonly TraceIssue[] };

/** What a row asks for. Repeated stretches get blocks of their own: a cache must not take the second time for what it has seen. */
export function demandOf({ promptTokens, outputTokens, blocks }: TraceRow, blockOffset: number): Demand {
  const demand = {
    kind: 'text',
    promptTokens: Math.max(1, promptTokens),
    outputTokens: Math.max(1, outputTokens),
  } as const;
  if (blocks === undefined) return demand;
  return { ...demand, blocks: blockOffset === 0 ? blocks : blocks.map((id) => id + blockOffset) };
}

/** A trace file that is not one. */
export class TraceError extends Error {
  override readonly name = 'TraceError';
  readonly code = 'trace-invalid';
  readonly issues: readonly TraceIssue[];

  constructor(issues: readonly TraceIssue[]) {
    super(issues.map(({ file, line, value, rule }) => `${file}:${line}: ${rule}, got ${value}`).join('\n'));
    this.issues = issues;
  }
}
