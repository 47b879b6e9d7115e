/**
 * Counters and histograms in the Prometheus text format 0.0.4.
 *
 * Written here because the common client library blocks the event loop for 0.26 s per 2,000 label sets in a scrape
 * and takes 60 to 130 ms to load, while a gateway of many models has more sets than that and must listen at once.
 * A family has so many bytes of the page (see `page-budget.ts`); what is beyond counts in a set whose model is `other`.
 *
 * A family is rendered in two steps, so that its numbers are of one instant although it is written over several turns of the event
 * loop: `snapshot` copies the numbers at once, and what it returns makes text of them, some lines at a time.
 */
import { OTHER } from './bounded-names.ts';
import { type MetricName, specOf } from './catalogue.ts';
import { budgetOf, type Folds, lineBytes } from './page-budget.ts';

/** Lines of one piece of text. */
const LINES_PER_CHUNK = 64;

/** Pieces of text, made one by one as they are asked for. */
export type Chunks = Iterable<string>;

export interface Counter {
  add(labels: readonly string[], amount: number): void;
  snapshot(): Chunks;
  /** Tells how often it counted something as `other` for want of room. */
  tellFolded(folds: Folds): void;
}

export interface Histogram {
  observe(labels: readonly string[], value: number): void;
  snapshot(): Chunks;
  tellFolded(folds: Folds): void;
}

function headerOf(name: MetricName): string {
  const { help, type } = specOf(name);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

/** `{a="x",b="y"}`, or nothing. */
function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return '';
  return `{${names.map((name, i) => `${name}="${escaped(values[i] ?? '')}"`).join(',')}}`;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function* inChunks(lines: Iterable<string>): Chunks & Generator<string> {
  let chunk = '';
  let count = 0;
  for (const line of lines) {
    chunk += line;
    count += 1;
    if (count % LINES_PER_CHUNK !== 0) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}

interface Branch<T> {
  readonly below: Map<string, Branch<T>>;
  set: T | undefined;
}

interface Sets<T> {
  of(labels: readonly string[]): T;
  all(): readonly T[];
  tellFolded(folds: Folds): void;
}

interface SetOptions<T> {
  readonly name: MetricName;
  make(labels: readonly string[]): T;
  /** What the lines of an entry take of the page. */
  bytesOf(made: T): number;
}

/**
 * Finds or makes the entry of a label set, within the bound. A tree by label, not a joined key: label values are
 * long-lived strings whose hashes are known, so that finding one allocates nothing.
 */
function createSets<T>({ name, make, bytesOf }: SetOptions<T>): Sets<T> {
  const names = specOf(name).labels;
  const width = names.length;
  const budget = budgetOf(name);
  const root: Branch<T> = { below: new Map(), set: undefined };
  const all: T[] = [];
  const modelAt = names.indexOf('model');
  const nobody = Array<string>(width).fill(OTHER);
  let bytes = 0;
  let folded = 0;

  function find(labels: readonly string[]): T | undefined {
    let branch: Branch<T> | undefined = root;
    for (let i = 0; i < width; i++) {
      branch = branch.below.get(labels[i] as string);
      if (branch === undefined) return undefined;
    }
    return branch.set;
  }

  function enter(labels: readonly string[], bytesMax: number): T | undefined {
    const made = make(labels);
    const madeBytes = bytesOf(made);
    if (bytes + madeBytes > bytesMax) return undefined;
    bytes += madeBytes;
    let branch = root;
    for (const label of labels) {
      const next: Branch<T> = branch.below.get(label) ?? { below: new Map(), set: undefined };
      branch.below.set(label, next);
      branch = next;
    }
    branch.set = made;
    all.push(made);
    return made;
  }

  /** Without its model where that helps, so that sums by class and outcome stay true; else nothing of it is told apart. */
  function beyond(labels: readonly string[]): T {
    folded += 1;
    const rest = modelAt < 0 ? nobody : labels.with(modelAt, OTHER);
    const shared = find(rest) ?? (isSharedFull ? undefined : enter(rest, budget.bytesMax));
    if (shared !== undefined) return shared;
    isSharedFull = true;
    return find(nobody) ?? (enter(nobody, Number.POSITIVE_INFINITY) as T);
  }

  /** Known to be over: making one only to see that it has no room would be garbage for each event. */
  let isFull = false;
  let isSharedFull = false;

  return {
    of(labels) {
      const known = find(labels);
      if (known !== undefined) return known;
      const entered = isFull ? undefined : enter(labels, budget.ownBytesMax);
      if (entered !== undefined) return entered;
      isFull = true;
      return beyond(labels);
    },
    all: () => all,
    tellFolded: (folds) => void folds.set(name, folded),
  };
}

/** Sets whose labels are known beforehand are there from the start: their first event is a step from 0 and no new series. */
export function createCounter(name: MetricName, begin: readonly (readonly string[])[] = []): Counter {
  const { labels } = specOf(name);
  const sets = createSets({
    name,
    make: (values) => ({ text: name + labelText(labels, values), value: 0 }),
    bytesOf: ({ text }) => lineBytes(text),
  });
  if (labels.length === 0) sets.of([]);
  for (const values of begin) sets.of(values);
  return {
    add(values, amount) {
      sets.of(values).value += amount;
    },
    snapshot() {
      const rows = sets.all().map(({ text, value }) => ({ text, value }));
      return inChunks(counterLines(name, rows));
    },
    tellFolded: sets.tellFolded,
  };
}

function* counterLines(
  name: MetricName,
  rows: readonly { readonly text: string; readonly value: number }[],
): Generator<string> {
  yield headerOf(name);
  for (const { text, value } of rows) yield `${text} ${value}\n`;
}

interface HistogramSet {
  readonly bucketTexts: readonly string[];
  readonly labelled: string;
  readonly counts: Float64Array;
  sum: number;
}

/** `bounds` ascend; a value equal to a bound counts below it, as `le` says. */
export function createHistogram(name: MetricName, bounds: readonly number[]): Histogram {
  const { labels } = specOf(name);
  const bucketLabels = [...labels, 'le'];
  const sets = createSets({
    name,
    make: (values): HistogramSet => ({
      bucketTexts: [...bounds.map(String), '+Inf'].map(
        (le) => `${name}_bucket${labelText(bucketLabels, [...values, le])}`,
      ),
      labelled: labelText(labels, values),
      counts: new Float64Array(bounds.length + 1),
      sum: 0,
    }),
    bytesOf: ({ bucketTexts, labelled }) =>
      [...bucketTexts, `${name}_count${labelled}`, `${name}_sum${labelled}`]
        .map(lineBytes)
        .reduce((a, b) => a + b),
  });
  if (labels.length === 0) sets.of([]);
  return {
    observe(values, value) {
      const set = sets.of(values);
      let bucket = 0;
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
      set.counts[bucket] = (set.counts[bucket] ?? 0) + 1;
      set.sum += value;
    },
    snapshot() {
      const rows = sets.all().map((set) => ({ ...set, counts: set.counts.slice() }));
      return histogramChunks(name, rows);
    },
    tellFolded: sets.tellFolded,
  };
}

function* histogramChunks(name: MetricName, sets: readonly HistogramSet[]): Generator<string> {
  yield headerOf(name);
  for (const set of sets) yield renderSet(name, set);
}

function renderSet(name: MetricName, set: HistogramSet): string {
  let text = '';
  let total = 0;
  for (let i = 0; i < set.counts.length; i++) {
    total += set.counts[i] ?? 0;
    text += `${set.bucketTexts[i]} ${total}\n`;
  }
  return `${text}${name}_sum${set.labelled} ${set.sum}\n${name}_count${set.labelled} ${total}\n`;
}

export interface Row {
  readonly labels: readonly string[];
  readonly value: number;
}

/** Gauges, and counts that are kept elsewhere and read when somebody scrapes. */
export function renderRows(name: MetricName, rows: Iterable<Row>): Chunks {
  return inChunks(rowLines(name, rows));
}

/**
 * Rows of a gauge within its part of the page: the first ones, and the rest added up in rows whose last label is `other`. Whoever
 * calls it puts first what says most.
 */
export function foldRows(name: MetricName, rows: readonly Row[], folds: Folds): readonly Row[] {
  const { labels: names } = specOf(name);
  const { ownBytesMax } = budgetOf(name);
  const kept: Row[] = [];
  const others = new Map<string, Row>();
  let bytes = 0;
  let folded = 0;
  for (const row of rows) {
    bytes += lineBytes(name + labelText(names, row.labels));
    if (bytes <= ownBytesMax && row.labels.at(-1) !== OTHER) {
      kept.push(row);
      continue;
    }
    if (row.labels.at(-1) !== OTHER) folded += 1;
    const labels = row.labels.with(-1, OTHER);
    const key = labelText(names, labels);
    others.set(key, { labels, value: (others.get(key)?.value ?? 0) + row.value });
  }
  folds.set(name, folded);
  return [...kept, ...others.values()];
}

/** A metric without labels; nothing at all where the value is unknown. */
export function renderOne(name: MetricName, value: number | undefined): Chunks {
  return value === undefined ? [] : renderRows(name, [{ labels: [], value }]);
}

function* rowLines(name: MetricName, rows: Iterable<Row>): Generator<string> {
  yield headerOf(name);
  const { labels } = specOf(name);
  for (const row of rows) yield `${name}${labelText(labels, row.labels)} ${row.value}\n`;
}

export interface SummaryRow {
  readonly labels: readonly string[];
  readonly quantiles: readonly (readonly [quantile: number, value: number])[];
  readonly sum: number;
  readonly count: number;
}

export function renderSummary(name: MetricName, rows: Iterable<SummaryRow>): Chunks {
  return inChunks(summaryLines(name, rows));
}

function* summaryLines(name: MetricName, rows: Iterable<SummaryRow>): Generator<string> {
  yield headerOf(name);
  const { labels } = specOf(name);
  const quantileLabels = [...labels, 'quantile'];
  for (const row of rows) {
    for (const [quantile, value] of row.quantiles)
      yield `${name}${labelText(quantileLabels, [...row.labels, String(quantile)])} ${value}\n`;
    const labelled = labelText(labels, row.labels);
    yield `${name}_sum${labelled} ${row.sum}\n${name}_count${labelled} ${row.count}\n`;
  }
}
