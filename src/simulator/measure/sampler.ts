/**
 * What a run looks like over time. Counts of the period under way are kept as they come; at its end they become a row, and
 * when there are `SAMPLES_MAX` rows, neighbours become one and the period doubles: memory is bounded, however long the run.
 */
import type { DurationUs, MonoUs, RefUs } from '../../base/units.ts';
import type { SimNode } from '../sim-node.ts';
import { LogHistogram } from './log-histogram.ts';
import { type NodeSamples, type Samples, SAMPLES_MAX } from './samples.ts';

/** How users end, as samples tell it: an answer after the deadline is `late`. */
export const SAMPLED_ENDS = ['served', 'degraded', 'late', 'refused', 'failed', 'gave-up'] as const;

/** What is read at the end of a period. */
export interface Levels {
  readonly queued: readonly number[];
  readonly running: number;
  readonly nodes: readonly SimNode[];
  readonly drainUs: ((node: SimNode) => DurationUs) | undefined;
}

export interface SamplerOptions {
  readonly periodUs: DurationUs;
  readonly classes: readonly string[];
  /** Work per microsecond that the fleet can do. */
  readonly capacity: number;
}

/** How a column's two neighbours become one. */
type Join = 'sum' | 'mean' | 'last' | 'max';

interface NodeRow {
  readonly busy: Column;
  readonly drain: Column | undefined;
  busyUs: DurationUs;
}

class Column {
  readonly values: number[] = [];
  readonly #join: Join;

  constructor(join: Join) {
    this.#join = join;
  }

  halve(): void {
    const { values } = this;
    for (let i = 0; i < values.length >> 1; i++)
      values[i] = joined(this.#join, values[2 * i] as number, values[2 * i + 1] as number);
    values.length >>= 1;
  }
}

function joined(join: Join, first: number, second: number): number {
  if (join === 'sum') return first + second;
  if (join === 'mean') return (first + second) / 2;
  return join === 'max' ? Math.max(first, second) : second;
}

export class Sampler {
  readonly #options: SamplerOptions;
  readonly #columns: Column[] = [];
  readonly #at = this.#column('last');
  readonly #offered = this.#column('mean');
  readonly #tries = this.#column('mean');
  readonly #running = this.#column('last');
  readonly #wait = this.#column('max');
  readonly #queued: readonly Column[];
  readonly #ends: readonly Column[] = SAMPLED_ENDS.map(() => this.#column('sum'));
  readonly #nodes: NodeRow[] = [];
  readonly #waits = new LogHistogram();
  readonly #counts = new Float64Array(SAMPLED_ENDS.length);
  #periodUs: DurationUs;
  #lastAt: MonoUs = 0;
  #workUs: RefUs = 0;
  #triesNow = 0;

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#periodUs = options.periodUs;
    this.#queued = options.classes.map(() => this.#column('last'));
  }

  arrived(workUs: RefUs): void {
    this.#workUs += workUs;
  }

  tried(): void {
    this.#triesNow += 1;
  }

  dispatched(waitBucket: number): void {
    this.#waits.add(waitBucket);
  }

  ended(end: number): void {
    this.#counts[end] = (this.#counts[end] as number) + 1;
  }

  /** Ends the period under way; returns when the next one ends. */
  close(now: MonoUs, levels: Levels): MonoUs {
    const spanUs = now - this.#lastAt;
    if (spanUs <= 0) return this.#lastAt + this.#periodUs;
    this.#at.values.push(now / 1e6);
    this.#offered.values.push(this.#workUs / (spanUs * this.#options.capacity));
    this.#tries.values.push((this.#triesNow * 1e6) / spanUs);
    this.#running.values.push(levels.running);
    this.#wait.values.push(this.#waits.quantile(0.95) / 1_000);
    for (const [i, column] of this.#queued.entries()) column.values.push(levels.queued[i] as number);
    for (const [i, column] of this.#ends.entries()) column.values.push(this.#counts[i] as number);
    this.#closeNodes(now, spanUs, levels);
    this.#clear(now);
    if (this.#at.values.length >= SAMPLES_MAX) this.#coarsen();
    return now + this.#periodUs;
  }

  samples(nodes: readonly SimNode[]): Samples {
    const { classes } = this.#options;
    const values = (columns: readonly Column[], names: readonly string[]): Record<string, number[]> =>
      Object.fromEntries(names.map((name, i) => [name, (columns[i] as Column).values]));
    return {
      periodUs: this.#periodUs,
      atSeconds: this.#at.values,
      offeredRatio: this.#offered.values,
      triesPerSecond: this.#tries.values,
      queued: values(this.#queued, classes),
      running: this.#running.values,
      waitMs: this.#wait.values,
      ends: values(this.#ends, SAMPLED_ENDS),
      nodes: nodes.map(
        ({ spec }, i): NodeSamples => ({
          id: spec.id,
          busyRatio: this.#nodes[i]?.busy.values ?? [],
          drainMs: this.#nodes[i]?.drain?.values ?? [],
        }),
      ),
    };
  }

  #column(join: Join): Column {
    const column = new Column(join);
    this.#columns.push(column);
    return column;
  }

  #closeNodes(now: MonoUs, spanUs: DurationUs, { nodes, drainUs }: Levels): void {
    for (const [i, node] of nodes.entries()) {
      this.#nodes[i] ??= {
        busy: this.#column('mean'),
        drain: drainUs === undefined ? undefined : this.#column('last'),
        busyUs: 0,
      };
      const row = this.#nodes[i] as NodeRow;
      const busyUs = node.machine.busyUs(now);
      row.busy.values.push((busyUs - row.busyUs) / (spanUs * Math.max(1, node.spec.slots)));
      row.busyUs = busyUs;
      row.drain?.values.push((drainUs?.(node) ?? 0) / 1_000);
    }
  }

  #clear(now: MonoUs): void {
    this.#lastAt = now;
    this.#workUs = 0;
    this.#triesNow = 0;
    this.#waits.clear();
    this.#counts.fill(0);
  }

  #coarsen(): void {
    for (const column of this.#columns) column.halve();
    this.#periodUs *= 2;
  }
}
