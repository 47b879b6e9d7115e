/** Numbers of the detectors of silent failures; their thresholds are constants, see docs/signals. */
import { type Setting, whole } from './setting.ts';

export type SignalsSetting = 'signals.sampleMs';

export const SIGNALS: Readonly<Record<SignalsSetting, Setting>> = {
  'signals.sampleMs': whole(
    1_000,
    'ms',
    [20, 10_000],
    [
      'How often the detectors look. Their windows are told for one look a second and stretch with it, and with them how soon they find something.',
      'measured: a look costs about a millisecond at a thousand nodes (bench/signals/cost.ts)',
    ],
  ),
};
