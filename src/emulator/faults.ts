/** Faults that a person or a test switches on an emulated node while it serves. */
import { z } from 'zod';
import type { Ratio } from '../base/units.ts';

export interface Faults {
  /** Service takes this many times as long; 1 is healthy. A throttled card is 2. */
  slowFactor: number;
  /** Answers this status at once instead of serving; 0 is healthy. */
  refuseStatus: 0 | 429 | 503;
  /** `Retry-After` of such refusals in seconds; 0 sends none. */
  refuseRetryAfterS: number;
  /** Share of requests answered 500 at once. */
  failRatio: number;
  /** Accepts requests and never answers. */
  hang: boolean;
  /** The port is closed and every connection reset. */
  dead: boolean;
  /** Load readings stay as they were when this was switched on. */
  staleMetrics: boolean;
  /** Answers are cut in the middle: streams without an end, bodies shorter than announced. */
  truncate: boolean;
  /** Answers 200 with bytes that are no answer. */
  garbage: boolean;
  /** Each answer is the last one on its connection, as behind a proxy that keeps none. */
  closeConnections: boolean;
  /** Part of the accelerator's memory that is used, as the page of its host says. A healthy engine uses half. */
  memoryUse: Ratio;
}

export const HEALTHY: Readonly<Faults> = Object.freeze({
  slowFactor: 1,
  refuseStatus: 0,
  refuseRetryAfterS: 0,
  failRatio: 0,
  hang: false,
  dead: false,
  staleMetrics: false,
  truncate: false,
  garbage: false,
  closeConnections: false,
  memoryUse: 0.5,
});

const changeSchema = z
  .strictObject({
    slowFactor: z.number().min(0.01).max(1_000),
    refuseStatus: z.union([z.literal(0), z.literal(429), z.literal(503)]),
    refuseRetryAfterS: z.number().min(0).max(3_600),
    failRatio: z.number().min(0).max(1),
    hang: z.boolean(),
    dead: z.boolean(),
    staleMetrics: z.boolean(),
    truncate: z.boolean(),
    garbage: z.boolean(),
    closeConnections: z.boolean(),
    memoryUse: z.number().min(0).max(1),
  })
  .partial();

export type FaultChange = Partial<Faults>;

export type FaultChangeResult =
  | { readonly kind: 'change'; readonly change: FaultChange }
  | { readonly kind: 'invalid'; readonly detail: string };

export function parseFaultChange(value: unknown): FaultChangeResult {
  const parsed = changeSchema.safeParse(value);
  if (!parsed.success) return { kind: 'invalid', detail: z.prettifyError(parsed.error) };
  return { kind: 'change', change: parsed.data as FaultChange };
}
