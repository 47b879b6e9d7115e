/**
 * A scenario file in, what is to be run out, or every problem as `file:line:column: path: rule (received value)`. Variants
 * and values of the command line are merged in before anything is checked, so that each variant is checked as it is run.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, extname, resolve } from 'node:path';
import { parse as parseYaml } from 'yaml';
import type { z } from 'zod';
import { type LocatedIssue, issueText } from '../../adapters/config-file/issue-text.ts';
import { loadYaml } from '../../adapters/config-file/load-yaml.ts';
import type { Locate } from '../../adapters/config-file/locate.ts';
import { type PathIssue, schemaIssues, valueAt } from '../../adapters/config-file/schema-issues.ts';
import { defaultSchedulerConfig } from '../../core/config/index.ts';
import { catalogueNames } from '../../hardware/catalogue.ts';
import { PolicyOptionError } from '../../simulator/policies/frame/options.ts';
import { createPolicy, POLICIES } from '../../simulator/policies/registry.ts';
import { buildScenario } from '../../simulator/scenario/build.ts';
import { type BuildContext, createBuildContext } from '../../simulator/scenario/build-context.ts';
import type { ScenarioFile } from '../../simulator/scenario/file-types.ts';
import { isMapping, mergeOver, parsePath, type Path, withValue } from '../../simulator/scenario/overrides.ts';
import type { Bar, PolicySpec, Scenario } from '../../simulator/scenario/types.ts';
import { scenarioSchema } from './scenario-schema.ts';

const COMMAND_LINE = 'command line';

export interface ScenarioSource {
  readonly file: string;
  /** `PATH=VALUE` of `--set`, the value as YAML. */
  readonly sets: readonly string[];
  /** Only these variants; empty: all of them. */
  readonly variants: readonly string[];
  /** Only these policies, those of the file or of the registry; empty: those of the file. */
  readonly policies: readonly string[];
  /** For streams that follow a trace and name no file; '' where there is none. */
  readonly traceFile: string;
}

export interface PlannedVariant {
  /** '' for a scenario without variants. */
  readonly name: string;
  readonly scenario: Scenario;
  /** Streams whose trace nobody gave: the variant cannot be run. */
  readonly lacksTrace: readonly string[];
}

export interface ScenarioPlan {
  readonly name: string;
  readonly about: string;
  readonly seed: number;
  readonly seeds: number;
  readonly variants: readonly PlannedVariant[];
  readonly bars: readonly Bar[];
}

export type ReadScenario =
  | { readonly kind: 'plan'; readonly plan: ScenarioPlan }
  | { readonly kind: 'issues'; readonly issues: readonly LocatedIssue[] };

export function readScenario(source: ScenarioSource): ReadScenario {
  const { file } = source;
  const loaded = loadYaml(file);
  if (loaded.issues.length > 0) return { kind: 'issues', issues: loaded.issues };
  const overrides = parseSets(source.sets);
  const changed = overrides.values.reduce((raw, { path, value }) => withValue(raw, path, value), loaded.raw);
  const { variants: raws, ...rest } = isMapping(changed) ? changed : {};
  const all = isMapping(raws) ? Object.keys(raws) : [];
  const base = isMapping(changed) ? { ...rest, ...(isMapping(raws) ? {} : { variants: raws }) } : changed;
  const issues = [...overrides.issues, ...unknownVariants(source.variants, all)];
  const wanted = source.variants.length > 0 ? source.variants.filter((name) => all.includes(name)) : all;
  const read = (wanted.length > 0 ? wanted : ['']).map((name) => {
    const over = name === '' ? {} : valueAt(raws, [name]);
    const raw = withPolicies(mergeOver(base, over ?? {}), source.policies);
    const checked = check(raw, contextOf(source, all));
    const place = placer({ file, locate: loaded.locate, variant: name, over, sets: overrides.values });
    issues.push(...checked.issues.map(place));
    return { name, ...checked };
  });
  if (issues.length > 0) return { kind: 'issues', issues: inOrder(issues) };
  return { kind: 'plan', plan: planOf(read, source) };
}

interface SetValue {
  readonly path: Path;
  readonly value: unknown;
}

function parseSets(sets: readonly string[]): {
  readonly values: readonly SetValue[];
  readonly issues: readonly LocatedIssue[];
} {
  const values: SetValue[] = [];
  const issues: LocatedIssue[] = [];
  for (const text of sets) {
    const split = text.indexOf('=');
    try {
      if (split <= 0) throw new Error('no path');
      const value: unknown = parseYaml(text.slice(split + 1));
      values.push({ path: parsePath(text.slice(0, split)), value });
    } catch {
      issues.push(onCommandLine('Expected --set path=value, such as streams.users.load=2', text));
    }
  }
  return { values, issues };
}

function onCommandLine(rule: string, received: string): LocatedIssue {
  return { path: [], rule, received: JSON.stringify(received), file: COMMAND_LINE, line: 0, column: 0 };
}

function unknownVariants(asked: readonly string[], all: readonly string[]): readonly LocatedIssue[] {
  const rule = `Expected a variant of the scenario: ${all.join(', ') || 'it has none'}`;
  return asked.filter((name) => !all.includes(name)).map((name) => onCommandLine(rule, name));
}

/** Policies of the command line that the file does not list are those of the registry, as they are. */
function withPolicies(raw: unknown, asked: readonly string[]): unknown {
  if (asked.length === 0 || !isMapping(raw)) return raw;
  const listed: unknown[] = Array.isArray(raw['policies']) ? raw['policies'] : [];
  const names = listed.map(nameOf);
  return { ...raw, policies: [...listed, ...asked.filter((name) => !names.includes(name))] };
}

function nameOf(entry: unknown): unknown {
  return isMapping(entry) ? (entry['name'] ?? entry['policy']) : entry;
}

function contextOf({ file, traceFile }: ScenarioSource, variants: readonly string[]): BuildContext {
  const folder = dirname(resolve(file));
  return createBuildContext({
    name: basename(file, extname(file)),
    known: { policies: Object.keys(POLICIES), hardware: catalogueNames(), variants },
    optionsIssue,
    traceFile: traceFile === '' ? '' : resolve(traceFile),
    resolveFile: (path) => resolve(folder, path),
  });
}

/** By creating it: each policy checks its own options. */
function optionsIssue(policy: string, options: PolicySpec['options']): string | undefined {
  if (POLICIES[policy] === undefined) return undefined;
  try {
    createPolicy({ policy, options, config: defaultSchedulerConfig() }, 0);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof PolicyOptionError) return thrown.message;
    throw thrown;
  }
}

interface Checked {
  readonly file: ScenarioFile | undefined;
  readonly scenario: Scenario | undefined;
  readonly issues: readonly PathIssue[];
}

/** What does not fit the schema is left out, so that names and references of the rest are checked at once too. */
function check(raw: unknown, context: BuildContext): Checked {
  const first = scenarioSchema.safeParse(raw);
  if (first.success) {
    const scenario = buildScenario(first.data, context);
    return { file: first.data, scenario, issues: [...context.issues, ...missingFiles(scenario)] };
  }
  const issues = schemaIssues(first.error.issues, { schema: scenarioSchema, raw });
  const removed = first.error.issues.flatMap(placesOf);
  const rest = parseWithout(raw, removed);
  if (rest !== undefined) buildScenario(rest, context);
  const others = context.issues.filter((issue) => !removed.some((path) => touches(issue.path, path)));
  return { file: undefined, scenario: undefined, issues: [...issues, ...others] };
}

/** Removing a key may leave a mapping without what it needs; then the mapping goes too. */
const REPAIRS_MAX = 8;

function parseWithout(raw: unknown, removed: Path[]): ScenarioFile | undefined {
  let rest = raw;
  let pending: readonly Path[] = removed;
  for (let repair = 0; repair < REPAIRS_MAX; repair++) {
    for (const path of pending) rest = without(rest, path);
    const parsed = scenarioSchema.safeParse(rest);
    if (parsed.success) return parsed.data;
    pending = parsed.error.issues.flatMap((issue) =>
      valueAt(rest, issue.path) === undefined ? [toPath(issue.path.slice(0, -1))] : placesOf(issue),
    );
    removed.push(...pending);
  }
  return undefined;
}

function placesOf(issue: z.core.$ZodIssue): Path[] {
  const path = toPath(issue.path);
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => [...path, key]);
  return [path];
}

function toPath(path: readonly PropertyKey[]): Path {
  return path.map((part) => (typeof part === 'number' ? part : String(part)));
}

function without(value: unknown, path: Path): unknown {
  const [head, ...rest] = path;
  if (head === undefined || value === null || typeof value !== 'object') return undefined;
  if (Array.isArray(value)) {
    const entries = value.map((one: unknown, index) => (index === head ? without(one, rest) : one));
    return rest.length === 0 ? entries.filter((_, index) => index !== head) : entries;
  }
  const kept = Object.entries(value).flatMap(([key, one]): [string, unknown][] => {
    if (key !== String(head)) return [[key, one]];
    return rest.length === 0 ? [] : [[key, without(one, rest)]];
  });
  return Object.fromEntries(kept);
}

/** Whether one of the two paths leads to the other. */
function touches(a: Path, b: Path): boolean {
  const shared = Math.min(a.length, b.length);
  return a.slice(0, shared).every((part, index) => String(part) === String(b[index]));
}

function missingFiles(scenario: Scenario): readonly PathIssue[] {
  return scenario.streams.flatMap(({ name, arrivals }) => {
    if (arrivals.kind !== 'trace' || arrivals.file === '' || existsSync(arrivals.file)) return [];
    const path = ['streams', name, 'arrivals', 'file'];
    return [{ path, rule: 'Expected a file; there is none of this name', received: arrivals.file }];
  });
}

interface Origin {
  readonly file: string;
  readonly locate: Locate;
  readonly variant: string;
  /** What the variant says. */
  readonly over: unknown;
  readonly sets: readonly SetValue[];
}

function placer({ file, locate, variant, over, sets }: Origin): (issue: PathIssue) => LocatedIssue {
  return ({ isKey = false, ...issue }) => {
    const { path } = issue;
    if (sets.some((set) => set.path.length <= path.length && touches(set.path, path)))
      return { ...issue, file: COMMAND_LINE, line: 0, column: 0 };
    const isOver = variant !== '' && path.length > 0 && valueAt(over, path) !== undefined;
    const place = isOver ? ['variants', variant, ...path] : path;
    return { ...issue, path: place, file, ...locate(place, isKey) };
  };
}

/** By place; what several variants share is told once. */
function inOrder(issues: readonly LocatedIssue[]): readonly LocatedIssue[] {
  const byText = new Map(issues.map((issue) => [issueText(issue), issue]));
  return [...byText.values()].toSorted((a, b) => a.line - b.line || a.column - b.column);
}

function planOf(
  read: readonly (Checked & { readonly name: string })[],
  source: ScenarioSource,
): ScenarioPlan {
  const variants = read.map(({ name, scenario }): PlannedVariant => {
    const complete = scenario as Scenario;
    const lacking = complete.streams.filter(
      ({ arrivals }) => arrivals.kind === 'trace' && arrivals.file === '',
    );
    return {
      name,
      scenario: { ...complete, policies: selected(complete, source.policies) },
      lacksTrace: lacking.map((stream) => stream.name),
    };
  });
  const first = read[0] as Checked;
  const { name, about, seed, bars } = first.scenario as Scenario;
  return { name, about, seed, seeds: first.file?.seeds ?? 1, variants, bars };
}

function selected({ policies }: Scenario, asked: readonly string[]): Scenario['policies'] {
  if (asked.length === 0) return policies;
  return asked.flatMap((name) => policies.find((policy) => policy.name === name) ?? []);
}
