/**
 * How true predictions of time came, by class: the error that every hint, estimate and margin carries.
 *
 *   admission   from submission until what the deadline bounds is done (the first byte of a stream, else the whole answer), as
 *               predicted when the task was let in
 *   dispatch    from sending until the whole answer, as predicted when the node was chosen
 *
 * The error is the factor by which a prediction was off, in whichever direction, less one: max(actual / predicted, predicted /
 * actual) - 1. Twice too long and twice too short are both 1; a plain relative error would call a prediction of nothing 100 %
 * wrong and one of ten times too much 900 %. A task whose deadline came first counts with the time that it had, if that
 * is more than was predicted: leaving it out would call predictions true that nobody lived to see.
 *
 * A time that a refusal named cannot be compared so: who came back at it and was let in might have been let in before. It is
 * counted as kept or broken.
 *
 * Quantiles are the upper edges of steps of 19 % over about the last thousand (base/log-sketch.ts). O(1) each, no allocation.
 */
import { LogSketch } from '../../base/log-sketch.ts';
import type { ClassName, DurationUs, Ratio } from '../../base/units.ts';

export type PredictionKind = 'admission' | 'dispatch';
const ETA_QUANTILES = [0.5, 0.95] as const;
/** Class names that are told apart; a configuration has 16 at most, and may be changed. */
const CLASSES_MAX = 64;
/** Errors below this count as this: the sketch tells no smaller ones apart. */
const ERROR_MIN: Ratio = 1 / 1_024;

export interface EtaError {
  readonly p50: Ratio;
  readonly p95: Ratio;
  /** The middle of actual over predicted: above 1 where things take longer than predicted. */
  readonly bias: Ratio;
  /** Of all predictions so far: how many, and the sum of their errors. The quantiles are of about the last thousand. */
  readonly samples: number;
  readonly sum: number;
}

class Errors {
  readonly #errors: LogSketch = new LogSketch();
  readonly #ratios: LogSketch = new LogSketch();

  #count = 0;
  #sum = 0;

  add(ratio: Ratio): void {
    const error = Math.max(ratio, 1 / ratio) - 1;
    this.#count += 1;
    this.#sum += error;
    this.#ratios.add(ratio);
    this.#errors.add(Math.max(ERROR_MIN, error));
  }

  view(): EtaError | null {
    if (this.#count === 0) return null;
    const [p50, p95] = ETA_QUANTILES.map((q) => this.#errors.quantile(q)) as [Ratio, Ratio];
    return { p50, p95, bias: this.#ratios.quantile(0.5), samples: this.#count, sum: this.#sum };
  }
}

export class EtaLedger {
  readonly #classes: Map<ClassName, Readonly<Record<PredictionKind, Errors>>> = new Map();
  /** Who came back no earlier than told, and was let in or refused again. */
  readonly hints: { kept: number; broken: number } = { kept: 0, broken: 0 };

  note(className: ClassName, kind: PredictionKind, ratio: Ratio): void {
    if (!(ratio > 0) || ratio === Number.POSITIVE_INFINITY) return;
    this.#of(className)[kind].add(ratio);
  }

  /** What was predicted took longer than this, or would have. */
  noteAtLeast(className: ClassName, predictedUs: DurationUs, atLeastUs: DurationUs): void {
    if (predictedUs > 0 && atLeastUs > predictedUs)
      this.note(className, 'admission', atLeastUs / predictedUs);
  }

  errorOf(className: ClassName, kind: PredictionKind): EtaError | null {
    return this.#classes.get(className)?.[kind].view() ?? null;
  }

  get classNames(): readonly ClassName[] {
    return [...this.#classes.keys()];
  }

  #of(className: ClassName): Readonly<Record<PredictionKind, Errors>> {
    const known = this.#classes.get(className);
    if (known !== undefined) return known;
    const name = this.#classes.size >= CLASSES_MAX ? 'other' : className;
    const entry = this.#classes.get(name) ?? { admission: new Errors(), dispatch: new Errors() };
    this.#classes.set(name, entry);
    return entry;
  }
}
