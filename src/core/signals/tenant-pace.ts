/**
 * Latency over work of the tenants of one class, each with a histogram of its own: whether one class means the same to all
 * who have it. Tenants are many and come and go, so the table is bounded: a new one gets the row of one that has had no
 * answer for minutes, or none.
 */
import type { DurationUs, MonoUs, RefUs, TenantId } from '../../base/units.ts';
import { PACE_STEPS } from './pace-steps.ts';

/** Tenants of one class whose latency is compared. */
export const PACED_TENANTS_MAX = 24;
/** Who had no answer for so long gives its row to another: longer than any window over them. */
export const PACED_TENANT_IDLE_US: DurationUs = 600_000_000;

export interface TenantPace {
  readonly tenant: TenantId;
  /** Of its flow, at its last answer. */
  weight: number;
  served: number;
  servedWorkUs: RefUs;
  lastAt: MonoUs;
  readonly steps: Uint32Array;
}

export interface TenantServed {
  readonly tenant: TenantId;
  readonly weight: number;
  readonly workUs: RefUs;
  readonly at: MonoUs;
}

export class TenantPaces {
  readonly #rows: Map<TenantId, TenantPace> = new Map();
  /** Before then no row is idle for long enough: who has none costs one comparison. */
  #fullUntil: MonoUs = Number.NEGATIVE_INFINITY;

  add(step: number, { tenant, weight, workUs, at }: TenantServed): void {
    const row = this.#rows.get(tenant) ?? this.#begun(tenant, at);
    if (row === undefined) return;
    row.weight = weight;
    row.served += 1;
    row.servedWorkUs += workUs;
    row.lastAt = at;
    row.steps[step] = (row.steps[step] as number) + 1;
  }

  sample(): readonly TenantPace[] {
    return Array.from(this.#rows.values(), (row) => ({ ...row, steps: row.steps.slice() }));
  }

  #begun(tenant: TenantId, at: MonoUs): TenantPace | undefined {
    if (this.#rows.size >= PACED_TENANTS_MAX && !this.#madeRoom(at)) return undefined;
    const steps = new Uint32Array(PACE_STEPS);
    const row = { tenant, weight: 1, served: 0, servedWorkUs: 0, lastAt: at, steps };
    this.#rows.set(tenant, row);
    return row;
  }

  #madeRoom(at: MonoUs): boolean {
    if (at < this.#fullUntil) return false;
    let idlest: TenantPace | undefined;
    for (const row of this.#rows.values())
      if (idlest === undefined || row.lastAt < idlest.lastAt) idlest = row;
    if (idlest === undefined) return false;
    this.#fullUntil = idlest.lastAt + PACED_TENANT_IDLE_US;
    if (at < this.#fullUntil) return false;
    this.#rows.delete(idlest.tenant);
    return true;
  }
}
