/**
 * Latency over work of the tenants of one class, each with a histogram of its own: whether one class means the same to all
 * who have it.
 */
import type { MonoUs, RefUs, TenantId } from '../../base/units.ts';
import { PACE_STEPS } from './pace-steps.ts';
import { RowTable } from './row-table.ts';

/** Tenants of one class whose latency is compared. */
export const PACED_TENANTS_MAX = 24;

export interface TenantPace {
  readonly tenant: TenantId;
  /** Of its flow, at its last answer. */
  weight: number;
  served: number;
  servedWorkUs: RefUs;
  lastAt: MonoUs;
  readonly steps: Uint32Array;
}

/** What a served task is to the counters: a task itself, so that nothing is made for them. */
export interface ServedTask {
  readonly flow: { readonly tenant: TenantId; readonly weight: number };
  readonly workUs: RefUs;
  readonly submittedAt: MonoUs;
  readonly deadlineAt: MonoUs;
}

export class TenantPaces {
  readonly #rows: RowTable<TenantPace> = new RowTable(PACED_TENANTS_MAX, (tenant) => ({
    tenant,
    weight: 1,
    served: 0,
    servedWorkUs: 0,
    lastAt: 0,
    steps: new Uint32Array(PACE_STEPS),
  }));

  add(step: number, { flow, workUs }: ServedTask, at: MonoUs): void {
    const row = this.#rows.use(flow.tenant, at);
    if (row === undefined) return;
    row.weight = flow.weight;
    row.served += 1;
    row.servedWorkUs += workUs;
    row.steps[step] = (row.steps[step] as number) + 1;
  }

  sample(): readonly TenantPace[] {
    return Array.from(this.#rows.values(), (row) => ({ ...row, steps: row.steps.slice() }));
  }
}
