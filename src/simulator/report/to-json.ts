/**
 * The document of `simulate --json`: for each policy the report, every number as it is for one seed and as
 * `{mean, low, high}` for several. What never happened (an infinite recovery) is null.
 */
import { combinedHash, summarize } from '../parallel/statistics.ts';
import type { Verdict } from './judge.ts';
import type { SignalsReport } from '../measure/signal-log.ts';
import type { PolicyRuns, SimulationResults, VariantRuns } from './results.ts';

/** Digits that are told: more than any interval is narrow. */
const DIGITS = 7;

export function resultsToJson(results: SimulationResults, verdicts: readonly Verdict[]): unknown {
  const [first] = results.variants;
  const isVaried = results.variants.some(({ name }) => name !== '');
  return {
    scenario: results.name,
    about: results.about,
    seeds: results.seeds,
    firstSeed: results.seed,
    ...(first === undefined ? { policies: {} } : variantOf(first)),
    ...(isVaried
      ? {
          variants: Object.fromEntries(results.variants.map((variant) => [variant.name, variantOf(variant)])),
        }
      : {}),
    bars: verdicts.map(({ bar, variant, value, kind }) => ({
      ...bar,
      variant,
      value: value === undefined ? null : roundedNumber(value),
      held: kind === 'not-run' ? null : kind === 'held',
    })),
  };
}

function variantOf(variant: VariantRuns): Readonly<Record<string, unknown>> {
  const { compare } = variant;
  return { policies: policiesOf(variant), ...(compare === undefined ? {} : { compare: rounded(compare) }) };
}

function policiesOf(variant: VariantRuns): Readonly<Record<string, unknown>> {
  return Object.fromEntries(variant.policies.map((runs) => [runs.name, reportOf(runs)]));
}

function reportOf({ reports, signals }: PolicyRuns): unknown {
  const [only] = reports;
  const found = signals === undefined ? {} : { signals: rounded(signals.map(wireSignals)) };
  if (reports.length === 1) return { ...(rounded(only) as object), ...found };
  const decisionHashes = reports.map(({ decisionHash }) => decisionHash);
  return {
    ...(rounded(summarize(reports)) as object),
    decisionHash: combinedHash(decisionHashes),
    decisionHashes,
    ...found,
  };
}

/** Instants as seconds from the beginning of the run. */
function wireSignals({ samples, raised, unrecorded, blind }: SignalsReport): unknown {
  return {
    samples,
    raised: raised.map(({ at, until, ...finding }) => ({ ...finding, atS: at / 1e6, untilS: until / 1e6 })),
    unrecorded,
    blind,
  };
}

function rounded(value: unknown): unknown {
  if (typeof value === 'number') return roundedNumber(value);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(rounded);
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, rounded(part)]));
}

function roundedNumber(value: number): number | null {
  if (!Number.isFinite(value)) return null;
  return Number.isInteger(value) ? value : Number(value.toPrecision(DIGITS));
}
