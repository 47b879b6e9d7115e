/**
 * Groups by tenant in bounded memory, and whose backlog never ended. Newcomers beyond `TENANTS_MAX` share one group. A
 * tenant's backlog is its requests without a node; how long it had none is summed up, so that fairness is judged among
 * those who always had something waiting (Jain, Chiu and Hawe, 1984: the square of the sum over n times the sum of squares).
 */
import type { DurationUs, MonoUs, Ratio, RefUs, TenantId } from '../../base/units.ts';
import { Group } from './group.ts';
import type { TenantReport } from './report.ts';

export const TENANTS_MAX = 2_048;
/** Tenants in a report. */
export const TENANTS_SHOWN_MAX = 100;
/** Values kept one by one per tenant. */
const EXACT_PER_TENANT_MAX = 2_000;
/** A client that comes back after an answer leaves gaps; more than this part of the window is no lasting backlog. */
const GAP_SHARE_MAX = 0.01;

export interface Window {
  readonly from: MonoUs;
  readonly until: MonoUs;
}

export class Tenant extends Group {
  readonly weight: number;
  waiting = 0;
  /** Since when nothing waits, and how long nothing did within the window. */
  emptySince: MonoUs = 0;
  emptyUs: DurationUs = 0;
  /** Work of all answers, in time or not, by the part of their time on the node that lies within the window. */
  servedUs: RefUs = 0;

  constructor(weight: number) {
    super({ exactMax: EXACT_PER_TENANT_MAX });
    this.weight = weight;
  }

  override merge(other: Tenant): void {
    super.merge(other);
    this.servedUs += other.servedUs;
  }

  tenantReport(): TenantReport {
    return {
      ...this.report(),
      acceleratorSeconds: this.acceleratorUs / 1e6,
      servedSeconds: this.servedUs / 1e6,
    };
  }
}

export class Tenants {
  readonly #window: Window;
  readonly #weights: ReadonlyMap<TenantId, number>;
  readonly #known: Map<TenantId, Tenant> = new Map();
  readonly #others = new Tenant(1);

  constructor(window: Window, weights: readonly { readonly id: TenantId; readonly weight: number }[]) {
    this.#window = window;
    this.#weights = new Map(weights.map(({ id, weight }) => [id, weight]));
  }

  of(id: TenantId): Tenant {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    if (this.#known.size >= TENANTS_MAX) return this.#others;
    const tenant = new Tenant(this.#weights.get(id) ?? 1);
    this.#known.set(id, tenant);
    return tenant;
  }

  waits(tenant: Tenant, now: MonoUs): void {
    if (tenant.waiting === 0) tenant.emptyUs += this.#within(tenant.emptySince, now);
    tenant.waiting += 1;
  }

  leaves(tenant: Tenant, now: MonoUs): void {
    tenant.waiting -= 1;
    if (tenant.waiting === 0) tenant.emptySince = now;
  }

  /**
   * An answer was complete now, on which a node worked since then. What was begun before the window or ends after it counts in
   * part: of tenants with long requests more is under way at its edges.
   */
  served(
    tenant: Tenant,
    workUs: RefUs,
    { since, now }: { readonly since: MonoUs; readonly now: MonoUs },
  ): void {
    const from = Math.min(since, now - 1);
    tenant.servedUs += (workUs * this.#within(from, now)) / (now - from);
  }

  /** Absent when fewer than two had a lasting backlog. */
  jain(now: MonoUs): Ratio | undefined {
    const { from, until } = this.#window;
    let count = 0;
    let sum = 0;
    let squares = 0;
    for (const tenant of this.#known.values()) {
      const emptyUs = tenant.emptyUs + (tenant.waiting === 0 ? this.#within(tenant.emptySince, now) : 0);
      if (emptyUs > GAP_SHARE_MAX * (until - from)) continue;
      const share = tenant.servedUs / tenant.weight;
      count += 1;
      sum += share;
      squares += share * share;
    }
    return count < 2 || squares === 0 ? undefined : (sum * sum) / (count * squares);
  }

  report(): Readonly<Record<string, TenantReport>> {
    const ranked = [...this.#known].sort(
      ([a, one], [b, other]) => other.workUs - one.workUs || other.offered - one.offered || (a < b ? -1 : 1),
    );
    const shown = ranked.slice(0, TENANTS_SHOWN_MAX);
    const rest = new Tenant(1);
    for (const [, tenant] of ranked.slice(TENANTS_SHOWN_MAX)) rest.merge(tenant);
    rest.merge(this.#others);
    const rows = shown.map(([id, tenant]) => [id, tenant.tenantReport()] as const);
    return Object.fromEntries(rest.offered === 0 ? rows : [...rows, ['other', rest.tenantReport()]]);
  }

  #within(from: MonoUs, until: MonoUs): DurationUs {
    return Math.max(0, Math.min(until, this.#window.until) - Math.max(from, this.#window.from));
  }
}
