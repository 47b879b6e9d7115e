/**
 * The frame around every detector. A rule says what looks wrong now; the frame says for how long it must look so before
 * it is told, and until when it is told:
 *
 *   quiet ──suspected, `enterSamples` in a row──► active ──not suspected, `leaveSamples` in a row──► quiet
 *                                                    └──no evidence either way for LEASE_SAMPLES──► quiet
 *
 * A rule without its input is blind: it raises nothing, and what it raised before ends with its lease.
 */
import type { MonoUs } from '../../base/units.ts';
import type { Past } from './past.ts';
import type { SignalName } from './names.ts';
import { hostLack, type Sample } from './sample.ts';

/** Subjects of one detector that are told; those named first count. */
export const SUBJECTS_MAX = 20;
/** Samples for which a finding stands while its detector sees nothing at all. */
const LEASE_SAMPLES = 60;

export interface Threshold {
  readonly value: number;
  /** `s`, `ratio`, `tasks`, `nats`, `z` and so on. */
  readonly unit: string;
}

export interface Subject {
  readonly kind: 'node' | 'tenant' | 'class' | 'model' | 'gate' | 'gateway';
  /** '' for the gateway itself. */
  readonly id: string;
}

export type Severity = 'warn' | 'page';

/** What looks wrong in one sample. */
export interface Suspicion {
  readonly subject: Subject;
  readonly severity: Severity;
  readonly evidence: Readonly<Record<string, number | string>>;
  /** One sentence for a person. */
  readonly says: string;
}

export type Look =
  /** Something that it needs is not there. */
  | { readonly kind: 'blind'; readonly why: string }
  /** It sees, and `why` tells what it is waiting for where that is not simply time. */
  | { readonly kind: 'seen'; readonly suspicions: readonly Suspicion[]; readonly why?: string };

export interface Rule {
  readonly signal: SignalName;
  readonly thresholds: Readonly<Record<string, Threshold>>;
  readonly enterSamples: number;
  readonly leaveSamples: number;
  /** What an operator does about it. */
  readonly remedy: string;
  look(past: Past): Look;
}

export interface Finding extends Suspicion {
  readonly signal: SignalName;
  readonly since: MonoUs;
  readonly remedy: string;
}

export interface DetectorView {
  readonly signal: SignalName;
  readonly state: 'quiet' | 'watching' | 'blind' | 'active';
  readonly why: string;
  readonly thresholds: Readonly<Record<string, Threshold>>;
}

interface Watched {
  last: Suspicion;
  since: MonoUs;
  /** Samples in a row for which it was suspected, and not suspected. */
  hits: number;
  misses: number;
  isActive: boolean;
}

export class Detector {
  readonly rule: Rule;
  readonly #watched: Map<string, Watched> = new Map();
  #look: Look = { kind: 'blind', why: 'It has seen nothing yet' };

  constructor(rule: Rule) {
    this.rule = rule;
  }

  /** Takes the newest sample of the past. */
  observe(past: Past): void {
    this.#look = this.rule.look(past);
    const suspicions = this.#look.kind === 'seen' ? this.#look.suspicions : [];
    for (const suspicion of suspicions) this.#suspect(withHost(suspicion, past.now), past.now.at);
    const suspected = new Set(suspicions.map(({ subject }) => keyOf(subject)));
    const patience = this.#look.kind === 'blind' ? LEASE_SAMPLES : this.rule.leaveSamples;
    for (const [key, watched] of this.#watched) {
      if (suspected.has(key)) continue;
      watched.hits = 0;
      watched.misses += 1;
      if (!watched.isActive || watched.misses >= patience) this.#watched.delete(key);
    }
  }

  findings(): readonly Finding[] {
    const { signal, remedy } = this.rule;
    return [...this.#watched.values()]
      .filter(({ isActive }) => isActive)
      .map(({ last, since }) => ({ ...last, signal, since, remedy }));
  }

  view(): DetectorView {
    const { signal, thresholds } = this.rule;
    const { state, why } = this.#state();
    return { signal, state, why, thresholds };
  }

  #state(): Pick<DetectorView, 'state' | 'why'> {
    const watched = [...this.#watched.values()];
    const active = watched.filter(({ isActive }) => isActive).length;
    if (active > 0) return { state: 'active', why: `${active} found` };
    if (this.#look.kind === 'blind') return { state: 'blind', why: this.#look.why };
    if (watched.length > 0)
      return { state: 'watching', why: `${watched.length} suspected, not for long enough` };
    return { state: 'quiet', why: this.#look.why ?? 'Nothing looks wrong' };
  }

  #suspect(suspicion: Suspicion, now: MonoUs): void {
    const key = keyOf(suspicion.subject);
    let watched = this.#watched.get(key);
    if (watched === undefined) {
      if (this.#watched.size >= SUBJECTS_MAX) return;
      watched = { last: suspicion, since: now, hits: 0, misses: 0, isActive: false };
      this.#watched.set(key, watched);
    }
    watched.last = suspicion;
    watched.hits += 1;
    watched.misses = 0;
    if (watched.hits >= this.rule.enterSamples) watched.isActive = true;
  }
}

/** Whoever accuses a node tells what its host lacks, where that is known. */
function withHost(suspicion: Suspicion, now: Sample): Suspicion {
  const { subject, evidence } = suspicion;
  const host = subject.kind === 'node' ? hostLack(now, subject.id) : undefined;
  return host === undefined ? suspicion : { ...suspicion, evidence: { ...evidence, host } };
}

function keyOf({ kind, id }: Subject): string {
  return `${kind} ${id}`;
}
