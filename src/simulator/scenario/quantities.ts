/**
 * Quantities as people write them. A time is `250ms`, `30s`, `1h30m`; a rate is `4/s`, `240/min`, or a plain number per
 * second. A bare number is never a time: nobody should have to guess its unit.
 */
import { z } from 'zod';
import type { DurationUs } from '../../base/units.ts';

const US_PER: Readonly<Record<string, number>> = {
  us: 1,
  ms: 1_000,
  s: 1_000_000,
  m: 60_000_000,
  h: 3_600_000_000,
  d: 86_400_000_000,
};
const TIME = /^(?:\d+(?:\.\d+)?(?:us|ms|s|m|h|d))+$/;
const TIME_PART = /(\d+(?:\.\d+)?)(us|ms|s|m|h|d)/g;
/** A simulated year: longer is a typing error. */
const DURATION_US_MAX = 366 * (US_PER['d'] as number);
const TIME_RULE = 'Expected a time such as 250ms, 30s, 10m, 1h30m or 2d, at most a year';

/** Undefined where the text is no time. */
export function parseDuration(text: string | 0): DurationUs | undefined {
  if (text === 0 || text === '0') return 0;
  if (!TIME.test(text)) return undefined;
  let sum = 0;
  for (const [, count, unit] of text.matchAll(TIME_PART))
    sum += Number(count) * (US_PER[unit as string] as number);
  return sum > DURATION_US_MAX ? undefined : Math.round(sum);
}

export type DurationSchema = z.ZodType<DurationUs, string | 0>;

export function duration(about: string): DurationSchema {
  return z
    .union([z.string(), z.literal(0)], { error: TIME_RULE })
    .transform((text, context) => {
      const us = parseDuration(text);
      if (us !== undefined) return us;
      context.issues.push({ code: 'custom', message: TIME_RULE, input: text });
      return z.NEVER;
    })
    .meta({ description: about });
}

const PER: Readonly<Record<string, number>> = { s: 1, sec: 1, min: 60, m: 60, h: 3_600 };
const RATE = /^(\d+(?:\.\d+)?)\s*\/\s*(s|sec|min|m|h)$/;
const RATE_RULE = 'Expected a rate such as 4/s, 240/min or 10/h, more than 0';

/** Per second; undefined where it is no rate. */
export function parseRate(given: string | number): number | undefined {
  const match = typeof given === 'number' ? undefined : RATE.exec(given);
  if (match === null) return undefined;
  const perSecond = match === undefined ? Number(given) : Number(match[1]) / (PER[match[2] as string] ?? 1);
  return perSecond > 0 && Number.isFinite(perSecond) ? perSecond : undefined;
}

export type RateSchema = z.ZodType<number, string | number>;

export function rate(about: string): RateSchema {
  return z
    .union([z.string(), z.number()], { error: RATE_RULE })
    .transform((given, context) => {
      const perSecond = parseRate(given);
      if (perSecond !== undefined) return perSecond;
      context.issues.push({ code: 'custom', message: RATE_RULE, input: given });
      return z.NEVER;
    })
    .meta({ description: about });
}
