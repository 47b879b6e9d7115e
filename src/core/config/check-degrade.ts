/** Rules for what may stand in for an answer: variants that exist and lead nowhere in circles, qualities that lower something. */
import type { Issues } from './check.ts';
import type { ConfigInput, ModelInput, QualityInput } from './input.ts';

type Path = readonly (string | number)[];
type NumberCheck = (path: Path, setting: QualitySetting, value: number | undefined) => void;
export type QualitySetting = `models[].quality[].${'maxTokens' | 'maxTokensRatio' | 'steps'}`;

/** Entries of one model's lists: all of them are tried, one after the other, while a request waits for its refusal. */
const ENTRIES_MAX = 6;
const NAME = /^[a-z0-9][a-z0-9._-]{0,31}$/;
const SIZE = /^[1-9]\d{0,4}x[1-9]\d{0,4}$/;
const REVISION_LENGTH_MAX = 128;
/** A default answer is held for every request that may get it, so it is an answer and no book. */
const DEFAULT_LENGTH_MAX = 16_384;

export function checkDegrade(
  input: ConfigInput,
  classNames: readonly string[],
  issues: Issues,
  number: NumberCheck,
): void {
  input.degrade?.classes?.forEach((name, i) => {
    if (!classNames.includes(name)) {
      const rule = `Expected one of the classes: ${classNames.join(', ')}`;
      issues.addReference(['degrade', 'classes', i], 'classes', rule, name);
    }
  });
  const models = new Map<string, ModelInput>();
  for (const entry of input.models ?? []) if (entry !== undefined) models.set(entry.id, entry);
  input.models?.forEach((entry, i) => {
    if (entry === undefined) return;
    checkVariants(entry, ['models', i], models, issues);
    checkQuality(entry, ['models', i], issues, number);
    checkTexts(entry, ['models', i], issues);
  });
}

function checkVariants(
  entry: ModelInput,
  path: Path,
  models: ReadonlyMap<string, ModelInput>,
  issues: Issues,
): void {
  checkEntries([...path, 'variants'], entry.variants, issues);
  const seen = new Set<string>();
  entry.variants?.forEach(({ model }, j) => {
    const place: Path = [...path, 'variants', j, 'model'];
    if (!models.has(model)) {
      issues.addReference(place, 'models', 'Expected the id of a configured model', model);
    } else if (leadsTo(model, entry.id, models)) {
      issues.add(
        place,
        `Expected a model that has ${entry.id} neither as itself nor among its variants`,
        model,
      );
    }
    if (seen.has(model)) issues.add(place, 'Expected every variant once', model);
    seen.add(model);
  });
}

/** Whether the variants of a model, and theirs, come to the other one. */
function leadsTo(from: string, target: string, models: ReadonlyMap<string, ModelInput>): boolean {
  const seen = new Set<string>();
  const open = [from];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (name === target) return true;
    if (seen.has(name)) continue;
    seen.add(name);
    for (const { model } of models.get(name)?.variants ?? []) open.push(model);
  }
  return false;
}

function checkQuality(entry: ModelInput, path: Path, issues: Issues, number: NumberCheck): void {
  checkEntries([...path, 'quality'], entry.quality, issues);
  const seen = new Set<string>();
  entry.quality?.forEach((quality, j) => {
    const place: Path = [...path, 'quality', j];
    if (!NAME.test(quality.name)) {
      const rule = 'Expected lower-case letters, digits, . _ and -, at most 32: it is sent in a header';
      issues.add([...place, 'name'], rule, quality.name);
    }
    if (seen.has(quality.name)) issues.add([...place, 'name'], 'Expected every quality once', quality.name);
    seen.add(quality.name);
    for (const key of ['maxTokens', 'maxTokensRatio', 'steps'] as const) {
      number([...place, key], `models[].quality[].${key}`, quality[key]);
    }
    if (quality.size !== undefined && !SIZE.test(quality.size)) {
      issues.add([...place, 'size'], 'Expected WIDTHxHEIGHT', quality.size);
    }
    if (!lowersSomething(quality)) {
      issues.add(place, 'Expected one of maxTokens, maxTokensRatio, steps, size');
    }
  });
}

function lowersSomething({ maxTokens, maxTokensRatio, steps, size }: QualityInput): boolean {
  return [maxTokens, maxTokensRatio, steps, size].some((value) => value !== undefined);
}

function checkTexts(entry: ModelInput, path: Path, issues: Issues): void {
  if (
    entry.revision !== undefined &&
    (entry.revision === '' || entry.revision.length > REVISION_LENGTH_MAX)
  ) {
    issues.add([...path, 'revision'], `Expected 1 to ${REVISION_LENGTH_MAX} characters`, entry.revision);
  }
  for (const key of ['chat', 'completions'] as const) {
    const text = entry.default?.[key];
    if (text !== undefined && (text === '' || text.length > DEFAULT_LENGTH_MAX)) {
      issues.add([...path, 'default', key], `Expected 1 to ${DEFAULT_LENGTH_MAX} characters`, text);
    }
  }
}

function checkEntries(path: Path, list: readonly unknown[] | undefined, issues: Issues): void {
  if (list !== undefined && list.length > ENTRIES_MAX) {
    issues.add(path, `Expected at most ${ENTRIES_MAX} entries`, list);
  }
}
