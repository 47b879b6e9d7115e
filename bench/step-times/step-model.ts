/** The simulator's model of a step, fitted to measurements: a text engine's step and what prompts add to it. */
import {
  LONG_PROMPT_TOKENS,
  promptMs,
  type PromptModel,
  type TextModel,
} from '../../src/hardware/service-time.ts';
import { fitRelative, predict, type Sample } from './least-squares.ts';
import type { Measurement } from './table.ts';

export type DecodeModel = Pick<TextModel, 'stepMs' | 'perSequenceMs' | 'perContextTokenMs'>;

/** One row per point: the mean of its repetitions, so that a point that was measured more often counts the same. */
export function pointsOf(rows: readonly Measurement[]): readonly Measurement[] {
  const points = new Map<string, Measurement[]>();
  for (const row of rows) {
    const key = `${row.promptTokens} ${row.batch} ${row.outputTokens}`;
    points.set(key, [...(points.get(key) ?? []), row]);
  }
  return [...points.values()].map((same) => ({
    ...(same[0] as Measurement),
    promptMs: mean(same.map((row) => row.promptMs)),
    tokenMs: mean(same.map((row) => row.tokenMs)),
  }));
}

export function fitDecode(points: readonly Measurement[]): DecodeModel {
  const samples = points.map((row): Sample => ({ features: decodeFeatures(row), measured: row.tokenMs }));
  const [stepMs = 0, perSequenceMs = 0, perContextTokenMs = 0] = fitRelative(samples);
  return { stepMs, perSequenceMs, perContextTokenMs };
}

/** Time per output token of a whole request: that of the step half-way through its output. */
export function tokenMs(model: DecodeModel, row: Measurement): number {
  return predict([model.stepMs, model.perSequenceMs, model.perContextTokenMs], decodeFeatures(row));
}

function decodeFeatures({ batch, promptTokens, outputTokens }: Measurement): readonly number[] {
  return [1, batch, batch * (promptTokens + outputTokens / 2)];
}

/** How many of the smallest prompts may count as the floor. */
const FLOOR_SIZES_MAX = 3;

/** The floor is the mean of the smallest prompts, as many of them as make the error over all points least. */
export function fitPrompt(points: readonly Measurement[]): PromptModel {
  const sizes = [...new Set(points.map(tokensOf))].sort((a, b) => a - b);
  // Above the floor there must be a size below the bend, or the two slopes cannot be told apart.
  const floors = sizes.slice(0, FLOOR_SIZES_MAX).filter((_, at) => (sizes[at + 1] ?? 0) < LONG_PROMPT_TOKENS);
  const models = [0, ...floors].map((upTo) => fitAbove(points, upTo));
  const errors = models.map((model) => meanError(points, (row) => promptMs(model, tokensOf(row)), promptOf));
  return models[errors.indexOf(Math.min(...errors))] as PromptModel;
}

function fitAbove(points: readonly Measurement[], upTo: number): PromptModel {
  const flat = points.filter((row) => tokensOf(row) <= upTo);
  const samples = points
    .filter((row) => tokensOf(row) > upTo)
    .map((row): Sample => {
      const tokens = tokensOf(row);
      return { features: [1, tokens, Math.max(0, tokens - LONG_PROMPT_TOKENS)], measured: row.promptMs };
    });
  const [fixedMs = 0, perTokenMs = 0, perLongTokenMs = 0] = fitRelative(samples);
  return { floorMs: flat.length === 0 ? 0 : mean(flat.map(promptOf)), fixedMs, perTokenMs, perLongTokenMs };
}

export function tokensOf({ batch, promptTokens }: Measurement): number {
  return batch * promptTokens;
}

function promptOf(row: Measurement): number {
  return row.promptMs;
}

/** Mean of the absolute relative errors. */
export function meanError(
  rows: readonly Measurement[],
  predicted: (row: Measurement) => number,
  measured: (row: Measurement) => number,
): number {
  return mean(rows.map((row) => Math.abs(predicted(row) / measured(row) - 1)));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
