/** Numbers of preemption: how much running work may be thrown away. */
import { real, type Setting, UNIT_SHARE, whole } from './setting.ts';

export type PreemptionSetting = `preemption.${'budgetRatio' | 'budgetReserve'}`;

export const PREEMPTION: Readonly<Record<PreemptionSetting, Setting>> = {
  'preemption.budgetRatio': real(0.005, 'ratio', UNIT_SHARE, [
    'Work thrown away stays below this share of completed work; 0 leaves the reserve alone.',
    'design: half a percent of the fleet',
  ]),
  'preemption.budgetReserve': whole(
    1,
    'count',
    [0, 1_000],
    [
      'Preemptions that are always allowed per ten seconds: what a small fleet completes pays for none.',
      'experiment: 20 nodes full of tasks of 10 s threw away 0.12 to 0.18 %, reserve and budget together',
    ],
  ),
};
