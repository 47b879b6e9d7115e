/**
 * Counters and histograms in the Prometheus text format 0.0.4.
 *
 * Written here because the common client library blocks the event loop for 0.26 s per 2,000 label sets in a scrape
 * and takes 60 to 130 ms to load, while a gateway of many models has more sets than that and must listen at once.
 * A family holds at most `SETS_MAX` label sets; what is beyond counts in a set whose labels are all `other`.
 */

/** Label sets of one family. With bounded label values it is never reached; it is the last line of defence. */
export const SETS_MAX = 4_096;

export interface Counter {
  add(labels: readonly string[], amount: number): void;
  render(): string;
}

export interface Histogram {
  observe(labels: readonly string[], value: number): void;
  render(): string;
}

export interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export function header(name: string, help: string, type: 'counter' | 'gauge' | 'histogram'): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

/** `{a="x",b="y"}`, or nothing. */
export function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return '';
  return `{${names.map((name, i) => `${name}="${escaped(values[i] ?? '')}"`).join(',')}}`;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

interface Branch<T> {
  readonly below: Map<string, Branch<T>>;
  set: T | undefined;
}

interface Sets<T> {
  of(labels: readonly string[]): T;
  all(): readonly T[];
}

/**
 * Finds or makes the entry of a label set, within the bound. A tree by label, not a joined key: label values are
 * long-lived strings whose hashes are known, so that finding one allocates nothing.
 */
function createSets<T>(width: number, make: (labels: readonly string[]) => T): Sets<T> {
  const root: Branch<T> = { below: new Map(), set: undefined };
  const all: T[] = [];
  const beyond = Array<string>(width).fill('other');

  function find(labels: readonly string[]): T | undefined {
    let branch: Branch<T> | undefined = root;
    for (let i = 0; i < width; i++) {
      branch = branch.below.get(labels[i] as string);
      if (branch === undefined) return undefined;
    }
    return branch.set;
  }

  function enter(labels: readonly string[]): T {
    let branch = root;
    for (const label of labels) {
      const next: Branch<T> = branch.below.get(label) ?? { below: new Map(), set: undefined };
      branch.below.set(label, next);
      branch = next;
    }
    const made = make(labels);
    branch.set = made;
    all.push(made);
    return made;
  }

  return {
    of(labels) {
      const known = find(labels);
      if (known !== undefined) return known;
      if (all.length < SETS_MAX - 1) return enter(labels);
      return find(beyond) ?? enter(beyond);
    },
    all: () => all,
  };
}

export function createCounter({ name, help, labels }: FamilyOptions): Counter {
  const sets = createSets(labels.length, (values) => ({ text: name + labelText(labels, values), value: 0 }));
  if (labels.length === 0) sets.of([]);
  return {
    add(values, amount) {
      sets.of(values).value += amount;
    },
    render() {
      let text = header(name, help, 'counter');
      for (const set of sets.all()) text += `${set.text} ${set.value}\n`;
      return text;
    },
  };
}

interface HistogramSet {
  readonly bucketTexts: readonly string[];
  readonly labelled: string;
  readonly counts: Float64Array;
  sum: number;
}

/** `bounds` ascend; a value equal to a bound counts below it, as `le` says. */
export function createHistogram(options: FamilyOptions, bounds: readonly number[]): Histogram {
  const { name, help, labels } = options;
  const bucketLabels = [...labels, 'le'];
  const sets = createSets(
    labels.length,
    (values): HistogramSet => ({
      bucketTexts: [...bounds.map(String), '+Inf'].map(
        (le) => `${name}_bucket${labelText(bucketLabels, [...values, le])}`,
      ),
      labelled: labelText(labels, values),
      counts: new Float64Array(bounds.length + 1),
      sum: 0,
    }),
  );
  if (labels.length === 0) sets.of([]);
  return {
    observe(values, value) {
      const set = sets.of(values);
      let bucket = 0;
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
      set.counts[bucket] = (set.counts[bucket] ?? 0) + 1;
      set.sum += value;
    },
    render() {
      let text = header(name, help, 'histogram');
      for (const set of sets.all()) text += renderSet(name, set);
      return text;
    },
  };
}

function renderSet(name: string, set: HistogramSet): string {
  let text = '';
  let total = 0;
  for (let i = 0; i < set.counts.length; i++) {
    total += set.counts[i] ?? 0;
    text += `${set.bucketTexts[i]} ${total}\n`;
  }
  return `${text}${name}_sum${set.labelled} ${set.sum}\n${name}_count${set.labelled} ${total}\n`;
}

export interface GaugeRow {
  readonly labels: readonly string[];
  readonly value: number;
}

export function renderGauge(options: FamilyOptions, rows: Iterable<GaugeRow>): string {
  return renderRows(options, rows, 'gauge');
}

/** Counts that are kept elsewhere and read when somebody scrapes. */
export function renderCounts(options: FamilyOptions, rows: Iterable<GaugeRow>): string {
  return renderRows(options, rows, 'counter');
}

function renderRows(options: FamilyOptions, rows: Iterable<GaugeRow>, type: 'counter' | 'gauge'): string {
  let text = header(options.name, options.help, type);
  for (const row of rows) text += `${options.name}${labelText(options.labels, row.labels)} ${row.value}\n`;
  return text;
}
