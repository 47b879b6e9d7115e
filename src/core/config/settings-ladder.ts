/** Numbers of the overload ladder: when it goes up, what it lets wait, when it comes down. */
import { DAY_MS, PART, real, type Setting, UNIT_SHARE, whole } from './setting.ts';

export type LadderSetting =
  `ladder.${'memoryUseMax' | 'memoryUseResume' | 'memoryMs' | 'queueRatioMax' | 'depthMax' | 'queueMs' | 'queueResumeRatio' | 'waitShare' | 'missRatioMax' | 'missRatioResume' | 'calmMs' | 'leaseMs' | 'criticalOnlyMs'}`;

export const LADDER: Readonly<Record<LadderSetting, Setting>> = {
  'ladder.memoryUseMax': real(
    0.85,
    'ratio',
    [0.05, 1],
    [
      'Mean use of accelerator memory from which lesser results are worth their price.',
      'design: 85 % for 30 s; engines start to preempt at 90 %',
    ],
  ),
  'ladder.memoryUseResume': real(
    0.75,
    'ratio',
    [0, 1],
    ['Below this the memory is no reason any more.', 'own choice: hysteresis of 0.1'],
  ),
  'ladder.memoryMs': whole(
    30_000,
    'ms',
    [0, DAY_MS],
    ['A batch of long prompts fills the memory for a moment; this is longer.', 'design: 30 s'],
  ),
  'ladder.queueRatioMax': real(
    0.75,
    'multiple',
    [0.01, 1_000],
    [
      'Where the gate refuses, the queue of a class hovers between 0.8 and 1; at 0.9 of capacity it is rarely so long.',
      'experiment: medians at 0.9 to 12 times the capacity, 2, 10 and 50 nodes, 1 to 20 tenants',
    ],
  ),
  'ladder.depthMax': whole(
    128,
    'tasks',
    [1, 10_000_000],
    [
      'Waiting for the nodes of a model; eight for each slot where that is more.',
      'design: 128 for a node group',
    ],
  ),
  'ladder.queueMs': whole(
    15_000,
    'ms',
    [0, DAY_MS],
    [
      'A burst is what a queue is for; one that lasts is overload.',
      'experiment: at 1.0 to 1.1 times the capacity 20 s halve the changes of stage against 10 s',
    ],
  ),
  'ladder.queueResumeRatio': real(0.2, 'ratio', UNIT_SHARE, [
    'Far below where stage 2 holds the queue under load, so that its own effect does not end it.',
    'experiment: 0.25 to 0.4 change stage twice as often at 1.3 times the capacity',
  ]),
  'ladder.waitShare': real(0.75, 'ratio', PART, [
    'A shorter wait for those who are let in; with half of the gate nodes idle between bursts near saturation.',
    'experiment: goodput at 1.1 times the capacity 0.969 of 0.972, with 0.5 it is 0.965; at 12 times no difference',
  ]),
  'ladder.missRatioMax': real(0.025, 'ratio', UNIT_SHARE, [
    'Of the last five minutes and of the last thirty seconds: many, and still.',
    'design: 2.5 % in five minutes; two windows as in burn-rate alerts',
  ]),
  'ladder.missRatioResume': real(0.01, 'ratio', UNIT_SHARE, [
    'Below this missed deadlines are no reason any more.',
    'own choice: less than half of missRatioMax',
  ]),
  'ladder.calmMs': whole(
    8_000,
    'ms',
    [0, DAY_MS],
    [
      'Evidence that is gone for a moment is not over.',
      'experiment: at 1.05 times the capacity 5 s swing more',
    ],
  ),
  'ladder.leaseMs': whole(
    20_000,
    'ms',
    [500, DAY_MS],
    [
      'Stages 1 and 2 outlast a lull between two bursts, and end by themselves.',
      'experiment: changes of stage at 1.0 to 1.1 times the capacity',
    ],
  ),
  'ladder.criticalOnlyMs': whole(
    30_000,
    'ms',
    [500, DAY_MS],
    ['The last stage refuses most users: it ends soon unless deadlines are still missed.', 'own choice'],
  ),
};
