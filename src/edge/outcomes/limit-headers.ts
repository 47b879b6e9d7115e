/**
 * What is left of somebody's limits, as headers: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`. `limit` is the
 * most that can be used at once, `remaining` a whole number below it, `reset` the time until all of it is back, in the
 * form of the OpenAI API: `0.12s`, `1.2s`, `6m0s`.
 */
import type { DurationUs } from '../../base/units.ts';
import type { LimitsView, LimitView } from '../../core/request/outcome.ts';

const S_PER_MIN = 60;
const S_PER_H = 3_600;

/** Flat, for a head that is written header by header. */
export function limitHeaders({ requests, tokens }: LimitsView): string[] {
  return [
    ...(requests === undefined ? [] : rows('requests', requests)),
    ...(tokens === undefined ? [] : rows('tokens', tokens)),
  ];
}

/** As lines on the wire, each with its end. */
export function limitLines(limits: LimitsView): string {
  const headers = limitHeaders(limits);
  let lines = '';
  for (let i = 0; i < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return lines;
}

function rows(unit: 'requests' | 'tokens', { limit, remaining, resetUs }: LimitView): string[] {
  return [
    `x-ratelimit-limit-${unit}`,
    String(limit),
    `x-ratelimit-remaining-${unit}`,
    String(remaining),
    `x-ratelimit-reset-${unit}`,
    resetText(resetUs),
  ];
}

/** Below a minute with milliseconds, above it in whole seconds; rounded up, so that who waits so long finds it so. */
export function resetText(us: DurationUs): string {
  const ms = Math.ceil(us / 1_000);
  if (ms < S_PER_MIN * 1_000) return `${ms / 1_000}s`;
  const seconds = Math.ceil(ms / 1_000);
  const hours = Math.floor(seconds / S_PER_H);
  const minutes = Math.floor((seconds % S_PER_H) / S_PER_MIN);
  return `${hours > 0 ? `${hours}h` : ''}${minutes}m${seconds % S_PER_MIN}s`;
}
