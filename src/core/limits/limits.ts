/**
 * Limits by tenant, class and model: what a request may use is reserved when it is submitted and settled when it
 * leaves, so that no number of requests at the same time gets past a limit between the look and the count.
 *
 *   submit ──► reserve ──► the task holds it ──┬── refused later in the same submit ──► ended, nothing was used
 *                                              └── admitted ──────────────────────────► ended with the task, once
 *
 * A reservation takes one request, the estimated tokens and one place in everything that applies, or nothing at all.
 * At its end it pays for what was used (see `reservation.ts`).
 *
 * Names are bounded. Configured tenants, classes and models have a limiter each. Tenants that are not configured have
 * one each under `tenantLimits`, at most `UNNAMED_LIMITERS_MAX` in all; at that bound the one that was seen longest ago
 * makes place if nothing of it is held and its buckets are full, and otherwise newcomers share one limiter until it
 * does. So to be forgotten never gives a name anything.
 */
import type { MonoUs, TenantId } from '../../base/units.ts';
import type { LimitsConfig, SchedulerConfig } from '../config/types.ts';
import type { LimitsView } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import {
  type Hold,
  labelOf,
  Limiter,
  type LimiterView,
  type LimitRefusal,
  type LimitScope,
} from './limiter.ts';
import { Reservation } from './reservation.ts';

/** Tenants that are not in the configuration and have a limiter of their own. */
export const UNNAMED_LIMITERS_MAX = 10_000;
const EACH_TENANT = 'each tenant';
const UNNAMED = 'tenants without a name';

/** Null: configured, and without limits. */
type Named = Map<string, Limiter | null>;

/** A configured name and its limits; undefined for none. */
interface Row {
  readonly name: string;
  readonly limits: LimitsConfig | undefined;
  readonly label: string;
}

/** A class, since its methods share state on the hot path. */
export class Limits {
  /** False while nothing is limited or the gate is off: then nothing here needs to be asked. */
  isActive = false;
  /** False in shadow, which clients must not notice. */
  #isTold = false;
  #tenants: Named = new Map();
  #classes: Named = new Map();
  #models: Named = new Map();
  /** Limits of each tenant that is not configured. */
  #unnamedLimits: LimitsConfig | undefined = undefined;
  /** In order of last use. */
  readonly #unnamed: Map<TenantId, Limiter> = new Map();
  #shared: Limiter | null = null;

  /** Takes over new limits. What was used up before stays used up. O(names). */
  configure(config: SchedulerConfig, now: MonoUs): void {
    this.#configureTenants(config, now);
    const classes = config.classes.map(({ name, limits }) => ({
      name,
      limits,
      label: labelOf('class', name),
    }));
    this.#classes = renewed('class', this.#classes, { rows: classes, now });
    const models = config.models.map(({ id, limits }) => ({ name: id, limits, label: labelOf('model', id) }));
    this.#models = renewed('model', this.#models, { rows: models, now });
    const isLimited = [this.#tenants, this.#classes, this.#models].some(hasLimiter);
    const mode = config.gates.limits;
    this.isActive = mode !== 'off' && (isLimited || this.#unnamedLimits !== undefined);
    this.#isTold = this.isActive && mode === 'on';
  }

  /**
   * Takes what the request may use from everything that applies to it, or nothing and says why; null when nothing does.
   * Whoever holds the reservation ends it. O(1).
   */
  reserve(spec: TaskSpec, className: string, now: MonoUs): Reservation | LimitRefusal | null {
    const limiters = this.#applying(spec, className, now);
    if (limiters.length === 0) return null;
    const tokens = spec.tokens ?? 0;
    let strictest: Limiter | null = null;
    let strictestUs = 0;
    for (const limiter of limiters) {
      const waitUs = limiter.waitUs(tokens, now);
      if (waitUs <= strictestUs) continue;
      strictest = limiter;
      strictestUs = waitUs;
    }
    if (strictest !== null) return strictest.refusal(tokens, now);
    const holds: Hold[] = [];
    for (const limiter of limiters) holds.push(limiter.take(tokens, now));
    return new Reservation(holds, { all: tokens, prompt: spec.promptTokens ?? 0 }, now);
  }

  /** What is left to a tenant, of limits of its own; undefined when it has none, or they are not in force. */
  viewOf(tenant: TenantId, now: MonoUs): LimitsView | undefined {
    if (!this.#isTold) return undefined;
    return (this.#tenants.get(tenant) ?? this.#unnamed.get(tenant))?.view(now);
  }

  /** Every name that has limits. O(names). */
  rows(now: MonoUs): readonly LimiterView[] {
    const named = [this.#tenants, this.#classes, this.#models].flatMap((names) => [...names.values()]);
    const all = [...named, ...this.#unnamed.values(), this.#shared];
    return all.filter((limiter) => limiter !== null).map((limiter) => limiter.row(now));
  }

  /** What is held in all, each task counted once for every name that limits it: 0 at idle. */
  held(): { readonly names: number; readonly tasks: number; readonly tokens: number } {
    const rows = this.rows(0);
    return {
      names: rows.length,
      tasks: rows.reduce((sum, row) => sum + row.tasks, 0),
      tokens: rows.reduce((sum, row) => sum + row.tokensReserved, 0),
    };
  }

  #applying(spec: TaskSpec, className: string, now: MonoUs): readonly Limiter[] {
    const limiters: Limiter[] = [];
    const tenant = this.#limiterOf(spec.tenant, now);
    const ofClass = this.#classes.get(className) ?? null;
    const model = this.#models.get(spec.model) ?? null;
    if (tenant !== null) limiters.push(tenant);
    if (ofClass !== null) limiters.push(ofClass);
    if (model !== null) limiters.push(model);
    return limiters;
  }

  #limiterOf(tenant: TenantId, now: MonoUs): Limiter | null {
    const named = this.#tenants.get(tenant);
    if (named !== undefined) return named;
    if (this.#unnamedLimits === undefined) return null;
    const known = this.#unnamed.get(tenant);
    if (known === undefined) return this.#newcomer(tenant, this.#unnamedLimits, now);
    this.#unnamed.delete(tenant);
    this.#unnamed.set(tenant, known);
    return known;
  }

  #newcomer(tenant: TenantId, limits: LimitsConfig, now: MonoUs): Limiter {
    if (this.#unnamed.size >= UNNAMED_LIMITERS_MAX) {
      const [oldest, limiter] = this.#unnamed.entries().next().value as [TenantId, Limiter];
      if (!limiter.isSpotless(now)) {
        this.#shared ??= limiterFor('tenant', { name: UNNAMED, limits, label: UNNAMED }, now);
        return this.#shared;
      }
      this.#unnamed.delete(oldest);
    }
    const created = limiterFor('tenant', { name: tenant, limits, label: EACH_TENANT }, now);
    this.#unnamed.set(tenant, created);
    return created;
  }

  /** Who gets or loses a name in the configuration keeps the buckets. */
  #configureTenants(config: SchedulerConfig, now: MonoUs): void {
    const limits = config.tenantLimits;
    const known: Named = new Map([...this.#unnamed, ...this.#tenants]);
    this.#tenants = renewed('tenant', known, { rows: tenantRows(config), now });
    this.#unnamedLimits = limits;
    this.#unnamed.clear();
    if (limits === undefined) {
      this.#shared = null;
      return;
    }
    for (const [tenant, limiter] of known) {
      if (limiter === null || this.#tenants.has(tenant)) continue;
      if (this.#unnamed.size >= UNNAMED_LIMITERS_MAX) break;
      limiter.configure(limits, EACH_TENANT, now);
      this.#unnamed.set(tenant, limiter);
    }
    this.#shared?.configure(limits, UNNAMED, now);
  }
}

/** Configured tenants in their order: with their own limits, or those of each tenant. */
function tenantRows(config: SchedulerConfig): readonly Row[] {
  const own = new Map(config.tenantLimitsOwn.map(({ id, limits }) => [id, limits]));
  return config.tenantWeights.map(({ id }) => {
    const limits = own.get(id);
    return limits === undefined
      ? { name: id, limits: config.tenantLimits, label: EACH_TENANT }
      : { name: id, limits, label: labelOf('tenant', id) };
  });
}

function renewed(
  scope: LimitScope,
  known: Named,
  { rows, now }: { readonly rows: readonly Row[]; readonly now: MonoUs },
): Named {
  const names: Named = new Map();
  for (const row of rows) {
    const limiter = known.get(row.name) ?? null;
    if (row.limits === undefined || Object.keys(row.limits).length === 0) names.set(row.name, null);
    else if (limiter === null) names.set(row.name, limiterFor(scope, { ...row, limits: row.limits }, now));
    else {
      limiter.configure(row.limits, row.label, now);
      names.set(row.name, limiter);
    }
  }
  return names;
}

function limiterFor(scope: LimitScope, row: Row & { readonly limits: LimitsConfig }, now: MonoUs): Limiter {
  const limiter = new Limiter(scope, row.name);
  limiter.configure(row.limits, row.label, now);
  return limiter;
}

function hasLimiter(names: Named): boolean {
  for (const limiter of names.values()) if (limiter !== null) return true;
  return false;
}
