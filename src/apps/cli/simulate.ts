/** `spillway simulate SCENARIO`: what would have happened, by policy; ends with 1 when a bar was missed. */
import { catalogueNames } from '../../hardware/catalogue.ts';
import { withComparisons } from '../../simulator/compare/report.ts';
import type { PolicyEntry } from '../../simulator/policies/frame/entry.ts';
import { POLICIES } from '../../simulator/policies/registry.ts';
import { judgeBars, type Verdict } from '../../simulator/report/judge.ts';
import type { SimulationResults, VariantRuns } from '../../simulator/report/results.ts';
import { reportRows } from '../../simulator/report/rows.ts';
import { resultsToJson } from '../../simulator/report/to-json.ts';
import { verdictCells } from '../../simulator/report/verdict-text.ts';
import { type PlannedVariant, readScenario, type ScenarioPlan } from '../simulate/read-scenario.ts';
import { runPlan } from '../simulate/run-plan.ts';
import { compareText } from './compare-text.ts';
import { CliError, DONE, FAILED, USAGE } from './exit.ts';
import { signalsTexts } from './signals-text.ts';
import { say, sayJson, table, terminalWidth, warn } from './output.ts';
import { createProgress } from './progress.ts';
import { refuseIssues } from './read-or-refuse.ts';

export interface SimulateOptions {
  readonly policy?: readonly string[];
  readonly seeds?: number;
  readonly seed?: number;
  readonly trace?: string;
  readonly variant?: readonly string[];
  readonly set?: readonly string[];
  readonly json?: boolean;
  readonly report?: string;
  readonly compare?: boolean;
  readonly signals?: boolean;
  readonly list?: boolean;
  readonly workers?: number;
}

export async function simulate(file: string | undefined, options: SimulateOptions): Promise<number> {
  if (options.list === true) return list();
  if (file === undefined) throw new CliError('Could not simulate: expected a scenario, or --list', USAGE);
  const json = options.json === true;
  const plan = planOf(file, options);
  warnOfTraces(plan);
  const progress = createProgress(process.stderr);
  const { workers, compare: keepsUsers, signals: watchesSignals } = options;
  const ran = await runPlan(plan, { workers, keepsUsers, watchesSignals, onProgress: progress.update });
  progress.end();
  const results = keepsUsers === true ? withComparisons(ran) : ran;
  const verdicts = judgeBars(plan.bars, results);
  if (options.report !== undefined) await writeReports(options.report, results, verdicts);
  if (json) sayJson(resultsToJson(results, verdicts));
  else say(resultsText(results, verdicts));
  return verdicts.some(({ kind }) => kind === 'missed') ? FAILED : DONE;
}

async function writeReports(
  folder: string,
  results: SimulationResults,
  verdicts: readonly Verdict[],
): Promise<void> {
  (await import('../simulate/write-report.ts')).writeReport(folder, results, verdicts);
  if (results.variants.some(({ compare }) => compare !== undefined))
    (await import('../simulate/write-compare.ts')).writeCompare(folder, results);
}

function list(): number {
  const policies = Object.values(POLICIES).flatMap(({ name, about, options }) => [
    [name, about],
    ...Object.entries(options).map(([option, law]) => ['', optionText(option, law)]),
  ]);
  const hardware = catalogueNames().map((name) => [name]);
  say(`${table(['policy', 'what it does'], policies)}\n\n${table(['hardware'], hardware)}`);
  return DONE;
}

function optionText(name: string, law: PolicyEntry['options'][string]): string {
  const values = 'words' in law ? law.words.join(', ') : `${law.min} to ${law.max}`;
  return `option ${name}: ${law.about} (${values}; default ${law.default})`;
}

function planOf(file: string, options: SimulateOptions): ScenarioPlan {
  const read = readScenario({
    file,
    sets: options.set ?? [],
    variants: options.variant ?? [],
    policies: options.policy ?? [],
    traceFile: options.trace ?? '',
  });
  if (read.kind === 'issues') return refuseIssues(read.issues, { json: options.json === true });
  const { plan } = read;
  if (options.compare === true && plan.variants.some(({ scenario }) => scenario.policies.length < 2))
    throw new CliError('Could not compare: expected at least two policies', USAGE);
  const seeds = options.seed === undefined ? (options.seeds ?? plan.seeds) : 1;
  const sampled = options.report === undefined ? plan.variants : plan.variants.map(withSamples);
  return { ...plan, seed: options.seed ?? plan.seed, seeds, variants: sampled };
}

/** Points of a plot over the span, where the scenario does not say. */
const SAMPLES = 300;

function withSamples(variant: PlannedVariant): PlannedVariant {
  const { scenario } = variant;
  if (scenario.sampleUs > 0) return variant;
  return { ...variant, scenario: { ...scenario, sampleUs: Math.ceil(scenario.spanUs / SAMPLES) } };
}

/** A variant without its trace is left out, and says so; a simulation of nothing is wrong usage. */
function warnOfTraces({ variants }: ScenarioPlan): void {
  const lacking = variants.filter(({ lacksTrace }) => lacksTrace.length > 0);
  for (const { name, lacksTrace } of lacking)
    warn(
      `SKIPPED ${name === '' ? 'the scenario' : name}: streams.${lacksTrace.join(', streams.')} follow a trace; give it with --trace FILE`,
    );
  if (lacking.length === variants.length)
    throw new CliError('Could not simulate anything without a trace', USAGE);
}

function resultsText(results: SimulationResults, verdicts: readonly Verdict[]): string {
  const { name, about, seeds, seed } = results;
  const seedsText = seeds === 1 ? `seed ${seed}` : `${seeds} seeds from ${seed}, mean ± 95 % interval`;
  const blocks = [
    `${name} (${seedsText})${about === '' ? '' : `\n${about.trim()}`}`,
    ...results.variants.flatMap((variant) => [
      variantText(variant),
      ...signalsTexts(variant, seed),
      ...(variant.compare === undefined ? [] : [compareText(variant.compare, { seed })]),
    ]),
  ];
  if (verdicts.length > 0) blocks.push(verdictsText(verdicts));
  return blocks.join('\n\n');
}

function variantText(variant: VariantRuns): string {
  const rows = reportRows(variant);
  const labelWidth = Math.max(...rows.map(({ label }) => label.length));
  const names = variant.policies.map(({ name }) => name);
  const widths = names.map((name, at) =>
    Math.max(name.length, ...rows.map(({ cells }) => (cells[at] ?? '').length)),
  );
  const title = variant.name === '' ? 'policy' : variant.name;
  return blocksOf(widths, terminalWidth() - labelWidth)
    .map((columns) =>
      table(
        [title, ...columns.map((at) => names[at] ?? '')],
        rows.map(({ label, cells }) => [label, ...columns.map((at) => cells[at] ?? '')]),
      ),
    )
    .join('\n\n');
}

/** Columns side by side as far as the width goes, at least one; the rest below. */
function blocksOf(widths: readonly number[], width: number): readonly (readonly number[])[] {
  const blocks: number[][] = [];
  let left = 0;
  for (const [at, own] of widths.entries()) {
    left -= own + 2;
    const last = blocks.at(-1);
    if (last !== undefined && left >= 0) last.push(at);
    else {
      blocks.push([at]);
      left = width - own - 2;
    }
  }
  return blocks;
}

function verdictsText(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map((verdict) => {
    const { state, where, what, found, limits, about } = verdictCells(verdict);
    return [state, where, what, found, limits, about];
  });
  return table(['bar', 'policy', 'figure', 'found', 'asked', ''], rows);
}
