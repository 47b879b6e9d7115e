/**
 * All detectors over one past. Whoever drives the scheduler gives it a sample about once a second; nothing happens in
 * between, so looking costs a gateway nothing while it serves.
 */
import type { MonoUs } from '../../base/units.ts';
import { Detector, type DetectorView, type Finding } from './detector.ts';
import { Past } from './past.ts';
import { RULES } from './rules/index.ts';
import type { Sample } from './sample.ts';

/** Findings that are told; pages first. */
export const FINDINGS_MAX = 200;

export interface SignalsView {
  readonly findings: readonly Finding[];
  readonly detectors: readonly DetectorView[];
  /** When the last sample was taken; undefined before the first. */
  readonly lookedAt?: MonoUs;
}

export class Signals {
  readonly #past: Past;
  readonly #detectors: readonly Detector[];
  #lookedAt: MonoUs | undefined;

  /** `pace`: seconds between two samples. */
  constructor(pace = 1) {
    this.#past = new Past(pace);
    this.#detectors = RULES.map((rule) => new Detector(rule));
  }

  observe(sample: Sample): void {
    this.#past.add(sample);
    this.#lookedAt = sample.at;
    for (const detector of this.#detectors) detector.observe(this.#past);
  }

  /** Pages first, then by age. */
  findings(): readonly Finding[] {
    const findings = this.#detectors.flatMap((detector) => detector.findings());
    return findings.sort((a, b) => rank(a) - rank(b) || a.since - b.since).slice(0, FINDINGS_MAX);
  }

  view(): SignalsView {
    return {
      findings: this.findings(),
      detectors: this.#detectors.map((detector) => detector.view()),
      ...(this.#lookedAt === undefined ? {} : { lookedAt: this.#lookedAt }),
    };
  }
}

function rank({ severity }: Finding): number {
  return severity === 'page' ? 0 : 1;
}
