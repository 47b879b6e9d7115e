/** The numbers of limits by tenant, class and model, in the form of `settings.ts`. */
import { type Setting, whole } from './setting.ts';

type LimitName = 'requestsPerMinute' | 'requestsBurst' | 'tokensPerMinute' | 'tokensBurst' | 'concurrency';

export type LimitSetting = `tenants[].limits.${LimitName}` | 'models[].imageTokens';

export const LIMIT_NAMES: readonly LimitName[] = Object.freeze([
  'requestsPerMinute',
  'requestsBurst',
  'tokensPerMinute',
  'tokensBurst',
  'concurrency',
]);

/** The same for `classes[].limits`, `models[].limits` and `tenantLimits`. */
export const LIMITS: Readonly<Record<LimitSetting, Setting>> = {
  'tenants[].limits.requestsPerMinute': whole(
    1,
    'requests per minute',
    [1, 1_000_000_000],
    [
      'Requests that are given out evenly over a minute. Absent: not limited.',
      'no default; the same key in classes[].limits, models[].limits, tenantLimits',
    ],
  ),
  'tenants[].limits.requestsBurst': whole(
    1,
    'requests',
    [1, 1_000_000_000],
    [
      'Most requests at once, after a rest. Absent: those of one minute, since a limit per minute is read as what may be sent in a minute, in whatever way.',
      'what the headers of public services say: a limit per minute that is whole after a minute',
    ],
  ),
  'tenants[].limits.tokensPerMinute': whole(
    1,
    'tokens per minute',
    [1, 1_000_000_000],
    [
      'Tokens of prompt and output together, given out evenly. Absent: not limited.',
      'no default; the same key in classes[].limits, models[].limits, tenantLimits',
    ],
  ),
  'tenants[].limits.tokensBurst': whole(
    1,
    'tokens',
    [1, 1_000_000_000],
    [
      'Most tokens at once, and the largest request that can ever pass. Absent: those of one minute.',
      'as requestsBurst',
    ],
  ),
  'tenants[].limits.concurrency': whole(
    1,
    'requests',
    [1, 10_000_000],
    [
      'Requests queued or running at the same time. Absent: not limited.',
      'no default; the same key in classes[].limits, models[].limits, tenantLimits',
    ],
  ),
  'models[].imageTokens': whole(
    0,
    'tokens',
    [0, 100_000_000],
    [
      'What one image counts against limits on tokens; images have no tokens of their own, so by default only limits on requests hold for them.',
      'own choice: nothing is counted that nobody set',
    ],
  ),
};
