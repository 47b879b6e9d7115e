/** Limits as the admin plane tells them. */
import type { LimiterView } from '../../core/limits/index.ts';
import type { LimitView } from '../../core/request/outcome.ts';

interface WireLimit {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
}

export interface WireLimiter {
  readonly scope: LimiterView['scope'];
  readonly name: string;
  /** Null: not limited. */
  readonly requests: WireLimit | null;
  readonly tokens: (WireLimit & { readonly reserved: number }) | null;
  /** Requests queued or running now; `limit` is null when any number may be. */
  readonly concurrency: { readonly limit: number | null; readonly now: number };
}

export function wireLimiter(row: LimiterView): WireLimiter {
  const { scope, name, requests, tokens, tasks, tasksMax, tokensReserved } = row;
  return {
    scope,
    name,
    requests: requests === undefined ? null : wireLimit(requests),
    tokens: tokens === undefined ? null : { ...wireLimit(tokens), reserved: tokensReserved },
    concurrency: { limit: tasksMax ?? null, now: tasks },
  };
}

/** How much is left of what is scarcest: 0 for nothing, 1 for all. */
export function leftRatio({ requests, tokens, tasks, tasksMax }: LimiterView): number {
  const places = tasksMax === undefined ? 1 : Math.max(0, tasksMax - tasks) / tasksMax;
  return Math.min(partOf(requests), partOf(tokens), places);
}

function partOf(view: LimitView | undefined): number {
  return view === undefined ? 1 : view.remaining / view.limit;
}

function wireLimit({ limit, remaining, resetUs }: LimitView): WireLimit {
  return { limit, remaining, resetMs: Math.ceil(resetUs / 1_000) };
}
