/** Numbers of what is told to others about requests (traces), and what users tell back (beacons). */
import { DAY_MS, real, type Setting, UNIT_SHARE, whole } from './setting.ts';

export type SeeingSetting =
  | `tracing.${'sampleRatio' | 'queueSpansMax' | 'exportMs' | 'timeoutMs'}`
  | `rum.${'ratePerS' | 'tenantRatePerS' | 'tokenMs'}`;

export const SEEING: Readonly<Record<SeeingSetting, Setting>> = {
  'tracing.sampleRatio': real(0.01, 'ratio', UNIT_SHARE, [
    'Part of the requests that is traced, drawn by the gateway alone: what a client says of sampling forces nothing.',
    'common practice for services of high rate',
  ]),
  'tracing.queueSpansMax': whole(
    4_096,
    'count',
    [1, 1_000_000],
    [
      'Spans that wait for their export; further ones are dropped and counted.',
      'own choice: a second of 1,000 traced requests with three attempts, about 8 MB',
    ],
  ),
  'tracing.exportMs': whole(
    1_000,
    'ms',
    [10, 600_000],
    ['Longest wait of a span before it is sent.', 'own choice: what people who look at a trace put up with'],
  ),
  'tracing.timeoutMs': whole(
    5_000,
    'ms',
    [10, 120_000],
    [
      'One export, and what is left to send at shutdown, take no longer.',
      'half of the default of OTLP exporters: a stop waits for it',
    ],
  ),
  'rum.ratePerS': whole(
    100,
    'count',
    [1, 100_000],
    [
      'Beacons taken per second, of all tenants together; more are refused.',
      'own choice: enough for percentiles, and what is remembered of ten minutes of it fits its bound',
    ],
  ),
  'rum.tenantRatePerS': whole(
    25,
    'count',
    [1, 100_000],
    ['The same of one tenant.', 'own choice: a quarter of all'],
  ),
  'rum.tokenMs': whole(
    600_000,
    'ms',
    [1_000, DAY_MS],
    [
      'How long after the head of an answer its beacon is taken.',
      'own choice: the longest default deadline; pages send at the latest when they are left',
    ],
  ),
};
