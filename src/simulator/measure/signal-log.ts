/**
 * The gateway's detectors in virtual time: a sample each second, and a record of what was raised, when, and until when.
 * A policy whose process died starts with detectors that know nothing, as the gateway does.
 */
import type { MonoUs } from '../../base/units.ts';
import {
  type OutsideSample,
  type Sample,
  Signals,
  type Severity,
  type Subject,
} from '../../core/signals/index.ts';
import type { Policy } from '../policies/policy.ts';
import type { Simulation } from '../simulation.ts';

const PERIOD_US = 1_000_000;
/** Findings recorded of one run; later ones are counted. */
export const RAISED_MAX = 1_000;

export interface Raised {
  readonly signal: string;
  readonly subject: Subject;
  readonly severity: Severity;
  /** When it was first told, and when it no longer was; the end of the run for those that still were. */
  readonly at: MonoUs;
  until: MonoUs;
  readonly says: string;
  readonly evidence: Readonly<Record<string, number | string>>;
}

export interface SignalsReport {
  readonly samples: number;
  readonly raised: readonly Raised[];
  readonly unrecorded: number;
  /** Detectors that had no input at the end, and why. */
  readonly blind: Readonly<Record<string, string>>;
}

export interface SignalLogOptions {
  /** What others than the scheduler would know, by virtual time. */
  readonly outside?: (now: MonoUs) => OutsideSample;
  /** Falsifies what is seen: for faults that cannot be made from outside. */
  readonly tamper?: (sample: Sample) => Sample;
}

export class SignalLog {
  readonly #options: SignalLogOptions;
  readonly #raised: Raised[] = [];
  readonly #open: Map<string, Raised> = new Map();
  #policy: Policy | undefined;
  #signals: Signals = new Signals();
  #samples = 0;
  #unrecorded = 0;

  constructor(options: SignalLogOptions = {}) {
    this.#options = options;
  }

  /** From now on, once a second. Policies that give no samples are not watched. */
  watch(simulation: Simulation): void {
    const look = (): void => {
      this.#look(simulation.policy, simulation.now);
      simulation.at(simulation.now + PERIOD_US, look);
    };
    simulation.at(simulation.now + PERIOD_US, look);
  }

  #look(policy: Policy | undefined, now: MonoUs): void {
    if (policy?.sample === undefined) return;
    if (policy !== this.#policy) {
      this.#policy = policy;
      this.#signals = new Signals();
    }
    const { outside, tamper } = this.#options;
    const taken = policy.sample(now);
    const sample = outside === undefined ? taken : { ...taken, outside: outside(now) };
    this.#signals.observe(tamper === undefined ? sample : tamper(sample));
    this.#samples += 1;
    this.#note(now);
  }

  #note(now: MonoUs): void {
    const told = new Set<string>();
    for (const { signal, subject, severity, says, evidence } of this.#signals.findings()) {
      const key = `${signal} ${subject.kind} ${subject.id}`;
      told.add(key);
      if (this.#open.has(key)) continue;
      const raised = { signal, subject, severity, at: now, until: now, says, evidence };
      this.#open.set(key, raised);
      if (this.#raised.length < RAISED_MAX) this.#raised.push(raised);
      else this.#unrecorded += 1;
    }
    for (const [key, raised] of this.#open) {
      raised.until = now;
      if (!told.has(key)) this.#open.delete(key);
    }
  }

  report(): SignalsReport {
    const blind = this.#signals.view().detectors.filter(({ state }) => state === 'blind');
    return {
      samples: this.#samples,
      raised: this.#raised,
      unrecorded: this.#unrecorded,
      blind: Object.fromEntries(blind.map(({ signal, why }) => [signal, why])),
    };
  }
}
