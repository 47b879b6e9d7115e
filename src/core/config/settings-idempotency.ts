/** Numbers of idempotency keys: what is remembered, how long, and how many may wait for one answer. */
import { GIB, KIB, MIB, type Setting, whole } from './setting.ts';

export type IdempotencySetting =
  `idempotency.${'entriesMax' | 'answerBytesMax' | 'bytesTotalMax' | 'ttlMs' | 'keyCharsMax' | 'joinersMax'}`;

export const IDEMPOTENCY: Readonly<Record<IdempotencySetting, Setting>> = {
  'idempotency.entriesMax': whole(
    16_384,
    'count',
    [0, 1_000_000],
    [
      'Keys remembered, of running requests and of answers; 0 ignores the header. Full: the oldest answer is forgotten.',
      'own choice: thirty a second within the ttl',
    ],
  ),
  'idempotency.answerBytesMax': whole(
    MIB,
    'bytes',
    [KIB, GIB],
    [
      'Largest answer that is kept for those who come again; a larger one goes to who asked, and a repeat runs again.',
      'a 4,000-token stream is below 1 MB',
    ],
  ),
  'idempotency.bytesTotalMax': whole(
    64 * MIB,
    'bytes',
    [KIB, 64 * GIB],
    [
      'All kept answers together, those under way included.',
      'own choice: half of what slow readers may take',
    ],
  ),
  'idempotency.ttlMs': whole(
    600_000,
    'ms',
    [1, 86_400_000],
    ['How long an answer is kept after its end.', 'default time-out of official clients: ten minutes'],
  ),
  'idempotency.keyCharsMax': whole(
    255,
    'count',
    [1, 4_096],
    [
      'Longest key; a longer one is a bad request.',
      'limit of public payment interfaces, which clients follow',
    ],
  ),
  'idempotency.joinersMax': whole(
    64,
    'count',
    [0, 65_536],
    [
      'Requests that may wait for the answer of one that runs; more are refused.',
      'own choice: far above the retries of one client',
    ],
  ),
};
