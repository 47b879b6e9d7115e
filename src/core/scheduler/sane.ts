/**
 * Numbers from outside, brought into the range in which sums stay exact integers, before anything is counted with
 * them: one NaN would stay in a counter for ever, one infinite retry-after would close a node for ever. Configured
 * limits are checked elsewhere; this is the last door. What is sane already is passed on as it is, without a copy.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import { type Alternative, needsWork } from '../degrade/alternative.ts';
import type { FailureMemory } from '../health/failure-score.ts';
import type { ModelMemory } from '../health/model-breakers.ts';
import type { AttemptResult } from '../request/outcome.ts';
import { STRIKE_US, type Strike } from '../retry/poison.ts';
import { PREFIX_BLOCKS_MAX, type TaskPrefix, type TaskSpec, type Usage } from '../request/task.ts';
import type { NodeMemory, NodeSpec } from './events.ts';

/** Eleven days of the reference accelerator: a thousand such tasks still add up exactly. */
const WORK_US_MAX = 1e12;
const BYTES_MAX = 2 ** 40;
/** A year: later than any deadline that means something. */
const AHEAD_US_MAX: DurationUs = 3.2e13;
/** More than any model's context; a count above it is a fault of the node that reports it. */
const TOKENS_MAX = 100_000_000;
const SLOTS_MAX = 100_000;
const EJECTIONS_MAX = 64;
/** No client repeats itself more often; beyond this the number says nothing more. */
const RETRY_COUNT_MAX = 100;
/** More than any node keeps; what is kept here is bounded elsewhere. */
const PREFIX_BLOCKS_STATED_MAX = 1e9;
/** Remembered of one node: as many breakers as it may offer models twice over, and its bodies. */
const BREAKERS_MAX = 2_000;
const STRIKES_MAX = 64;
/** Outcomes that a failure score keeps. */
const OUTCOMES_MAX = 20;

export function saneTask(spec: TaskSpec, now: MonoUs): TaskSpec {
  const workUs = within(spec.workUs, 1, WORK_US_MAX);
  const firstByteWorkUs = within(spec.firstByteWorkUs, 1, workUs);
  const bytes = within(spec.bytes, 0, BYTES_MAX);
  const deadlineAt = within(spec.deadlineAt, Math.min(now, 0), now + AHEAD_US_MAX);
  const tokens = within(spec.tokens ?? 0, 0, TOKENS_MAX);
  const promptTokens = within(spec.promptTokens ?? 0, 0, tokens);
  const retryCount = within(spec.retryCount ?? 0, 0, RETRY_COUNT_MAX);
  const isSane =
    retryCount === (spec.retryCount ?? 0) &&
    workUs === spec.workUs &&
    tokens === (spec.tokens ?? 0) &&
    promptTokens === (spec.promptTokens ?? 0) &&
    firstByteWorkUs === spec.firstByteWorkUs &&
    bytes === spec.bytes &&
    deadlineAt === spec.deadlineAt &&
    (spec.prefix === undefined || isSanePrefix(spec.prefix)) &&
    (spec.alternatives === undefined || spec.alternatives.every(isSaneAlternative));
  if (isSane) return spec;
  // By name, since it may be worked out when it is asked for, and then it is no member that is spread.
  const { fingerprint } = spec;
  const alternatives = spec.alternatives?.map(saneAlternative);
  const prefix = spec.prefix === undefined ? undefined : sanePrefix(spec.prefix);
  return {
    ...spec,
    fingerprint,
    workUs,
    firstByteWorkUs,
    bytes,
    deadlineAt,
    retryCount,
    alternatives,
    tokens,
    promptTokens,
    prefix,
  };
}

function isSanePrefix({ blocks, workUsPerBlock }: TaskPrefix): boolean {
  return blocks.length <= PREFIX_BLOCKS_MAX && workUsPerBlock === within(workUsPerBlock, 0, WORK_US_MAX);
}

function sanePrefix({ blocks, workUsPerBlock }: TaskPrefix): TaskPrefix {
  return {
    blocks: blocks.slice(0, PREFIX_BLOCKS_MAX),
    workUsPerBlock: within(workUsPerBlock, 0, WORK_US_MAX),
  };
}

function isSaneAlternative(alternative: Alternative): boolean {
  if (!needsWork(alternative)) return true;
  const { workUs, firstByteWorkUs, tokens = 0, promptTokens = 0 } = alternative;
  return (
    workUs === within(workUs, 1, WORK_US_MAX) &&
    firstByteWorkUs === within(firstByteWorkUs, 1, workUs) &&
    tokens === within(tokens, 0, TOKENS_MAX) &&
    promptTokens === within(promptTokens, 0, tokens)
  );
}

function saneAlternative(alternative: Alternative): Alternative {
  if (!needsWork(alternative)) return alternative;
  const workUs = within(alternative.workUs, 1, WORK_US_MAX);
  const tokens = within(alternative.tokens ?? 0, 0, TOKENS_MAX);
  return {
    ...alternative,
    workUs,
    firstByteWorkUs: within(alternative.firstByteWorkUs, 1, workUs),
    tokens,
    promptTokens: within(alternative.promptTokens ?? 0, 0, tokens),
  };
}

export function saneNode(spec: NodeSpec): NodeSpec {
  const slots = within(spec.slots, 0, SLOTS_MAX);
  const prefixBlocks = within(spec.prefixBlocks ?? 0, 0, PREFIX_BLOCKS_STATED_MAX);
  const isSane = slots === spec.slots && prefixBlocks === (spec.prefixBlocks ?? 0);
  return isSane ? spec : { ...spec, slots, prefixBlocks };
}

/** A remembered ejection is a lease too: it never lasts longer than a fresh one could. */
export function saneMemory(memory: NodeMemory, ejectedUsMax: DurationUs): NodeMemory {
  const { failures, breakers, strikes } = memory;
  return {
    ...memory,
    ...(failures === undefined ? {} : { failures: saneFailures(failures) }),
    ...(breakers === undefined ? {} : { breakers: saneBreakers(breakers, ejectedUsMax) }),
    ...(strikes === undefined ? {} : { strikes: saneStrikes(strikes) }),
    ejectedForUs: within(memory.ejectedForUs, 0, ejectedUsMax),
    ejections: within(memory.ejections, 0, EJECTIONS_MAX),
    rates: memory.rates.filter(
      ({ rate, observations }) => Number.isFinite(rate) && rate > 0 && Number.isInteger(observations),
    ),
  };
}

function saneBreakers(rows: readonly ModelMemory[], openUsMax: DurationUs): readonly ModelMemory[] {
  return rows.slice(0, BREAKERS_MAX).map((row) => ({
    ...row,
    openForUs: within(row.openForUs, 0, openUsMax),
    opens: within(row.opens, 0, EJECTIONS_MAX),
    ...(row.failures === undefined ? {} : { failures: saneFailures(row.failures) }),
  }));
}

function saneStrikes(rows: readonly Strike[]): readonly Strike[] {
  return rows.slice(0, STRIKES_MAX).map((row) => ({ ...row, forUs: within(row.forUs, 0, STRIKE_US) }));
}

function saneFailures({ score, window, count }: FailureMemory): FailureMemory {
  return {
    score: Number.isFinite(score) ? Math.max(0, score) : 0,
    window: within(window, 0, Number.MAX_SAFE_INTEGER),
    count: within(count, 0, OUTCOMES_MAX),
  };
}

export function saneResult(result: AttemptResult): AttemptResult {
  if ('passed' in result && result.passed !== undefined && !isSaneUsage(result.passed))
    return saneResult({ ...result, passed: {} });
  if (result.kind === 'failed') {
    const { nodeRetryAfterUs = 0 } = result;
    return Number.isFinite(nodeRetryAfterUs) ? result : { ...result, nodeRetryAfterUs: 0 };
  }
  if (result.kind !== 'ok') return result;
  const { usage, silenceUs = 0 } = result;
  const isSane = silenceUs >= 0 && silenceUs <= AHEAD_US_MAX && (usage === undefined || isSaneUsage(usage));
  return isSane ? result : { kind: 'ok' };
}

function isSaneUsage({ promptTokens = 0, outputTokens = 0 }: Usage): boolean {
  return isTokens(promptTokens) && isTokens(outputTokens);
}

function isTokens(count: number): boolean {
  return Number.isInteger(count) && count >= 0 && count <= TOKENS_MAX;
}

/** The nearest integer in range; the least for what is no number. */
function within(value: number, min: number, max: number): number {
  if (!(value > min)) return min;
  return value >= max ? max : Math.round(value);
}
