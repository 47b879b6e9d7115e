/** Learned bounds on a node's silence. */
import { DAY_MS, real, type Setting, whole } from './setting.ts';

export type TimeoutSetting = `timeouts.${'safetyFactor' | 'firstByteMsMin' | 'idleMsMin' | 'coldMs'}`;

export const TIMEOUTS: Readonly<Record<TimeoutSetting, Setting>> = Object.freeze({
  'timeouts.safetyFactor': real(
    2.5,
    'multiple',
    [1, 100],
    [
      'Below 2 ordinary noise is cut; above 4 a hung node holds its requests for nothing.',
      'experiment: an hour of healthy traffic, service noise of sigma 0.3, size errors of sigma 0.5: no attempt in 5,000 is cut',
    ],
  ),
  'timeouts.firstByteMsMin': whole(
    1_000,
    'ms',
    [10, DAY_MS],
    [
      'A pause of a second is no failure: garbage collection, a lost packet, a busy gateway.',
      'own choice: the first repetition of a lost packet and as much again',
    ],
  ),
  'timeouts.idleMsMin': whole(
    5_000,
    'ms',
    [10, DAY_MS],
    [
      'A batching engine interrupts its streams while it reads a long prompt or makes room in its cache.',
      'own choice: the prefill of 32,000 tokens on common accelerators',
    ],
  ),
  'timeouts.coldMs': whole(
    30_000,
    'ms',
    [0, DAY_MS],
    [
      'A node that served nothing for a minute, or has another model resident, may load the model first.',
      'local engines unload an idle model after minutes, and load it in 5 to 30 s',
    ],
  ),
});
