/** Limits by tenant, class and model. */
export type { LimiterView } from './limiter.ts';
export { Limits, UNNAMED_LIMITERS_MAX } from './limits.ts';
export { Reservation } from './reservation.ts';
