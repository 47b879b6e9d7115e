/**
 * What each tenant used since the gateway started: how its requests ended, tokens as nodes counted them, and the work of
 * what it got. One small record per tenant, so that an answer costs one look-up.
 */
import type { DurationMs, TenantId, Tokens, WallMs } from '../base/units.ts';
import { US_PER_MS } from '../base/units.ts';
import type { AttemptResult, Outcome } from '../core/request/outcome.ts';
import type { Usage } from '../core/request/task.ts';

/** Tenants that are told apart; those beyond are counted together. As many as a configuration may name. */
export const USAGE_TENANTS_MAX = 20_000;

export interface TenantUsageView {
  /** Wall time from which it is counted. */
  readonly since: WallMs;
  /** Requests that ended, by outcome: `served`, `degraded`, `cancelled`, or the reason of the refusal or failure. */
  readonly requests: Readonly<Record<string, number>>;
  /** As nodes counted them; what a node did not tell is not in it. */
  readonly tokens: { readonly input: Tokens; readonly output: Tokens };
  /** Estimated work of what was answered, in milliseconds of the reference accelerator. */
  readonly workMs: DurationMs;
}

interface Ledger {
  readonly requests: Map<string, number>;
  inputTokens: Tokens;
  outputTokens: Tokens;
  workUs: number;
}

/** A class, since each request passes it twice. */
export class TenantUsage {
  readonly #since: WallMs;
  readonly #ledgers = new Map<TenantId, Ledger>();
  /** Of all tenants beyond the bound; nobody is shown it as its own. */
  readonly #others: Ledger = emptyLedger();

  constructor(since: WallMs) {
    this.#since = since;
  }

  /** A request ended; `workUs` is 0 where no node worked for it. */
  ended(tenant: TenantId, outcome: Outcome, workUs: number): void {
    const ledger = this.#ledgerOf(tenant);
    const label = 'reason' in outcome ? outcome.reason : outcome.kind;
    ledger.requests.set(label, (ledger.requests.get(label) ?? 0) + 1);
    if (outcome.kind === 'served' || outcome.kind === 'degraded') ledger.workUs += workUs;
  }

  /** An attempt ended: what reached the client is used, whole answer or not. */
  attemptEnded(tenant: TenantId, result: AttemptResult): void {
    const usage = usageOf(result);
    if (usage === undefined) return;
    const ledger = this.#ledgerOf(tenant);
    ledger.inputTokens += usage.promptTokens ?? 0;
    ledger.outputTokens += usage.outputTokens ?? 0;
  }

  of(tenant: TenantId): TenantUsageView {
    const { requests, inputTokens, outputTokens, workUs } = this.#ledgers.get(tenant) ?? emptyLedger();
    return {
      since: this.#since,
      requests: Object.fromEntries([...requests].sort(([a], [b]) => (a < b ? -1 : 1))),
      tokens: { input: inputTokens, output: outputTokens },
      workMs: workUs / US_PER_MS,
    };
  }

  #ledgerOf(tenant: TenantId): Ledger {
    const known = this.#ledgers.get(tenant);
    if (known !== undefined) return known;
    if (this.#ledgers.size >= USAGE_TENANTS_MAX) return this.#others;
    const made = emptyLedger();
    this.#ledgers.set(tenant, made);
    return made;
  }
}

function usageOf(result: AttemptResult): Usage | undefined {
  if (result.kind === 'ok') return result.usage;
  return 'passed' in result ? result.passed : undefined;
}

function emptyLedger(): Ledger {
  return { requests: new Map(), inputTokens: 0, outputTokens: 0, workUs: 0 };
}
