/**
 * Every number of the configuration with its default, unit, range (bounds included), reason and source, keyed by its
 * path in the configuration file. The resolver checks the ranges, the JSON Schema and the reference page print them,
 * and `defaults.ts` builds the default configuration from the values: one place, no drift.
 *
 * Sources: "experiment" are runs of these rules in virtual time over fitted request sizes; RFCs and other systems are
 * named where a value follows them.
 */
import { DAY_MS, GIB, KIB, MIB, PART, real, type Setting, UNIT_SHARE, whole } from './setting.ts';
import { PREEMPTION, type PreemptionSetting } from './settings-preemption.ts';
import { IDEMPOTENCY, type IdempotencySetting } from './settings-idempotency.ts';
import { JOURNAL, type JournalSetting } from './settings-journal.ts';
import { SIGNALS, type SignalsSetting } from './settings-signals.ts';
import { LIMITS, type LimitSetting } from './settings-limits.ts';
import { LADDER, type LadderSetting } from './settings-ladder.ts';
import { SERVER, type ServerSetting, SURVIVAL } from './settings-server.ts';
import { SEEING, type SeeingSetting } from './settings-seeing.ts';
import { TIMEOUTS, type TimeoutSetting } from './settings-timeouts.ts';

export { LIMIT_NAMES } from './settings-limits.ts';
export type { Setting } from './setting.ts';

export type SettingPath =
  | 'seed'
  | `bounds.${'tasksMax' | 'bytesMax' | 'workMsMax' | 'classShareMax' | 'tenantShareMax'}`
  | `admission.${'flowWaitMsMax' | 'flowWaitDeadlineShare' | 'refusedShareMax' | 'deadlineMsMin' | 'deadlineMsMax' | 'serviceTimesMin' | 'marginMin' | 'marginMax' | 'crowdedMarginMax'}`
  | `placement.${'heldMax' | 'nearTieRatio' | 'drainMsMax' | 'healthMin' | 'exploreEveryMs' | 'swapMs' | 'cacheUseMax' | 'cacheUseResume' | 'slotsDefault' | 'batchSlotsMax' | 'prefixBlockBytes'}`
  | `health.${'heartbeatMs' | 'suspectAfterMs' | 'reconcileMs' | 'suspectLeaseMs' | 'ejectMs' | 'ejectMsMax' | 'refusedMs' | 'slowStartTasks'}`
  | 'degrade.flowWaitTimes'
  | `cache.${'bytesMax' | 'entryBytesMax' | 'ttlMs' | 'compareEvery'}`
  | `models[].quality[].${'maxTokens' | 'maxTokensRatio' | 'steps'}`
  | `retry.${'attemptsMax' | 'budgetRatio' | 'budgetReserve'}`
  | PreemptionSetting
  | LadderSetting
  | ServerSetting
  | TimeoutSetting
  | IdempotencySetting
  | SeeingSetting
  | JournalSetting
  | SignalsSetting
  | `classes[].${'weight' | 'shareMin' | 'firstByteMs' | 'completionMs'}`
  | 'tenants[].weight'
  | LimitSetting
  | `groups[].shares[].${'min' | 'max'}`
  | 'nodes[].slots'
  | 'nodes[].prefixBlocks'
  | 'nodes[].telemetry.reservedUse';

const BOUNDS = {
  'bounds.tasksMax': whole(
    100_000,
    'tasks',
    [1, 10_000_000],
    [
      'The scheduler was measured up to this depth: about three times its cost with a short queue; less where the memory limit allows less (half of it at 24 KiB a waiting task).',
      'measured: 19 to 26 KB per waiting request of 300 B to 8 KB over node:http',
    ],
  ),
  'bounds.bytesMax': whole(
    GIB,
    'bytes',
    [64 * KIB, 1024 * GIB],
    [
      'Bodies wait in memory; the default is the smaller of 1 GiB and a quarter of the memory limit.',
      'own choice, so that bodies cannot take what connections and answers need',
    ],
  ),
  'bounds.workMsMax': whole(
    1_000_000_000,
    'reference ms',
    [1, 1e15],
    [
      'A thousand nodes busy for 1,000 s, beyond the longest default deadline: only wrong estimates or huge fleets meet it.',
      'own choice: fleet x longest default deadline',
    ],
  ),
  'bounds.classShareMax': real(0.9, 'ratio', PART, [
    'The last tenth of the queue stays open to other classes when one class floods it.',
    'own choice; one in, one out covers the rest',
  ]),
  'bounds.tenantShareMax': real(0.8, 'ratio', PART, [
    'One tenant alone may use nearly the whole queue, and never all of it.',
    'own choice; fairness between tenants comes from ordering and eviction, this bound from prudence',
  ]),
} as const;

const ADMISSION = {
  'admission.flowWaitMsMax': whole(
    5_000,
    'ms',
    [1, DAY_MS],
    [
      'A flow whose queue takes longer is refused at once: without the gate a third of the fleet works on what misses.',
      'experiment: gate of 0.5 and 0.25 of the deadline, sizes estimated with sigma 0.5',
    ],
  ),
  'admission.flowWaitDeadlineShare': real(0.25, 'ratio', PART, [
    'The lesser of this part of the deadline and flowWaitMsMax opens the gate.',
    'experiment, as above',
  ]),
  'admission.refusedShareMax': real(0.2, 'ratio', PART, [
    'A flow of which more is refused, over four times flowWaitMsMax, has a shorter queue: such a queue stands, and is no burst. 1 shortens none.',
    'experiment: users after an overload against the first class at twice the capacity; with 0.1 neither is better',
  ]),
  'admission.deadlineMsMin': whole(
    1,
    'ms',
    [1, DAY_MS],
    ['A shorter wish is a bad request, not a gain.', 'clock resolution of the gateway'],
  ),
  'admission.deadlineMsMax': whole(
    DAY_MS,
    'ms',
    [1, 30 * DAY_MS],
    ['Longer work belongs in a job, not in an open connection.', 'own choice: one day'],
  ),
  'admission.serviceTimesMin': real(
    4,
    'multiple',
    [1, 100],
    [
      'A class default shorter than four service times of the best node leaves no room to wait at all.',
      'experiment: attained falls steeply below four service times',
    ],
  ),
  'admission.marginMin': real(
    1.15,
    'multiple',
    [1, 10],
    [
      'With service noise of sigma 0.2 a smaller margin sends work that misses.',
      'experiment: margin 1.15 gives goodput 1.000 at sigma 0.1',
    ],
  ),
  'admission.marginMax': real(
    1.5,
    'multiple',
    [1, 10],
    [
      'With size errors of sigma 0.5 this margin wins goodput 0.98 instead of 0.93; more only refuses.',
      'experiment: margin 1.0 against 1.5',
    ],
  ),
  'admission.crowdedMarginMax': real(
    3,
    'multiple',
    [1, 10],
    [
      'Where not all that waits can be in time, who misses has had a node in place of others. Less than serviceTimesMin, or nothing with a default deadline could wait.',
      'experiment: at twice the capacity without gates, with size errors of sigma 0.5, goodput 0.98 instead of 0.95',
    ],
  ),
} as const;

const PLACEMENT = {
  'placement.heldMax': whole(
    16,
    'tasks',
    [1, 64],
    [
      'Tasks stepped over while they wait for a faster busy node, per dispatch: 4 collapse the tail, more than 16 costs time only.',
      'experiment: lookahead 1, 4, 16',
    ],
  ),
  'placement.nearTieRatio': real(
    0.05,
    'ratio',
    [0, 0.5],
    [
      'Completion times are not known better than this, so affinity may decide.',
      'experiment: rates settle within 5 % after twenty tasks',
    ],
  ),
  'placement.drainMsMax': whole(
    30_000,
    'ms',
    [1, DAY_MS],
    [
      'Work bound to a node that needs longer is better kept in the central queue.',
      'the default normal deadline on a first byte',
    ],
  ),
  'placement.healthMin': real(0.5, 'ratio', UNIT_SHARE, [
    'Half of the last tasks failed or took twice their time: others do better.',
    'outlier ejection practice; health = success rate x latency ratio',
  ]),
  'placement.exploreEveryMs': whole(
    30_000,
    'ms',
    [100, DAY_MS],
    ['An idle slow node gets a task so that its rate stays known.', 'own choice: the heartbeat interval'],
  ),
  'placement.swapMs': whole(
    0,
    'ms',
    [0, 3_600_000],
    [
      'Loading another model, for nodes that hold one at a time; most engines hold all they offer, so 0.',
      'experiment: 12 s for checkpoints of Stable Diffusion, priced at twice that: 0.21 loads per request instead of 0.84 over 87 models, and a mean of 12.3 s',
    ],
  ),
  'placement.cacheUseMax': real(
    0.9,
    'ratio',
    [0.1, 1],
    [
      'A batching engine above this use of its cache starts to preempt sequences.',
      'vLLM and SGLang documentation on preemption and retraction',
    ],
  ),
  'placement.cacheUseResume': real(
    0.85,
    'ratio',
    [0.05, 1],
    [
      'Room comes back below this use; the distance to cacheUseMax stops flapping.',
      'own choice: hysteresis of 0.05',
    ],
  ),
  'placement.slotsDefault': whole(
    4,
    'tasks',
    [1, 10_000],
    [
      'Tasks at once with which a node starts that states no slots and gives no readings; then it is learned.',
      'common default of local engines (parallel 1 to 4)',
    ],
  ),
  'placement.batchSlotsMax': whole(
    256,
    'tasks',
    [1, 100_000],
    ['Most tasks at once of a node that states no slots.', 'default of max_num_seqs in vLLM'],
  ),
  'placement.prefixBlockBytes': whole(
    2_048,
    'bytes',
    [64, 1_048_576],
    [
      'Some 500 tokens: 512 blocks follow a prompt of 260,000 tokens, and less than a block is hardly worth a detour.',
      'own choice: the block of 512 tokens in public traces of conversations (Mooncake)',
    ],
  ),
} as const;

const HEALTH = {
  'health.heartbeatMs': whole(
    30_000,
    'ms',
    [100, 3_600_000],
    [
      'Frequent enough to notice a lost volunteer node, rare enough for 10,000 of them.',
      'measured: 10,000 nodes cost a few per cent of a core at this interval',
    ],
  ),
  'health.suspectAfterMs': whole(
    60_000,
    'ms',
    [200, 7_200_000],
    ['Two heartbeats missed.', 'twice heartbeatMs'],
  ),
  'health.reconcileMs': whole(
    10_000,
    'ms',
    [50, 3_600_000],
    [
      'Every node is compared with its probe, so a missed event is repaired within 30 s.',
      'three tries inside the promised 30 s',
    ],
  ),
  'health.suspectLeaseMs': whole(
    30_000,
    'ms',
    [100, 3_600_000],
    [
      'A suspect mark that nobody renews expires: no gate needs completed work to reopen.',
      'three times reconcileMs',
    ],
  ),
  'health.ejectMs': whole(
    5_000,
    'ms',
    [10, 3_600_000],
    [
      'First sleep of an ejected node, then one trial.',
      'success-rate ejection with doubling sleep, as in common service meshes',
    ],
  ),
  'health.ejectMsMax': whole(
    60_000,
    'ms',
    [10, 86_400_000],
    [
      'A repaired node is back within a minute however often it failed.',
      'own choice: the longest wait an operator accepts after a repair',
    ],
  ),
  'health.refusedMs': whole(
    1_000,
    'ms',
    [10, 600_000],
    [
      'A node that says "full" without a time is left alone for a second.',
      'Retry-After has whole seconds (RFC 9110)',
    ],
  ),
  'health.slowStartTasks': whole(
    8,
    'tasks',
    [0, 1_000],
    [
      'A new node proves its rate with some tasks before it gets its full share.',
      'rate warm-up of 5 completions, and a few more',
    ],
  ),
} as const;

const RETRY = {
  'retry.attemptsMax': whole(
    3,
    'count',
    [1, 10],
    ['First try and two more; a body that broke two nodes is not tried on a third.', 'the poison rule'],
  ),
  'retry.budgetRatio': real(0.1, 'ratio', UNIT_SHARE, [
    'Retried work stays below a tenth of completed work, so retries cannot feed an outage.',
    'retry budgets of 10 to 20 % in published practice',
  ]),
  'retry.budgetReserve': whole(
    10,
    'count',
    [0, 100_000],
    [
      'Retries that are always allowed per ten seconds, so that a quiet gateway can retry at all.',
      'retry budgets in published practice keep one a second',
    ],
  ),
} as const;

const DEGRADE = {
  'degrade.flowWaitTimes': real(
    2,
    'multiple',
    [1, 10],
    [
      'A lesser task waits longer than a whole one before it is refused; otherwise the gate that refused the whole one would refuse it too.',
      'own choice: with half of the deadline and 10 s left it still is in time',
    ],
  ),
} as const;

const CACHE = {
  'cache.bytesMax': whole(
    32 * MIB,
    'bytes',
    [0, 64 * GIB],
    [
      'All remembered answers, and those that are being recorded.',
      'own choice: a tenth of the memory of a small gateway',
    ],
  ),
  'cache.entryBytesMax': whole(
    MIB,
    'bytes',
    [0, GIB],
    [
      'A larger answer is not remembered, so that one cannot drive out all others.',
      'own choice: an image of 768 pixels in base64',
    ],
  ),
  'cache.ttlMs': whole(
    600_000,
    'ms',
    [1_000, 30 * DAY_MS],
    [
      'Older answers are forgotten: weights and adapters change behind a name.',
      'own choice: the longest default deadline',
    ],
  ),
  'cache.compareEvery': whole(
    10,
    'count',
    [1, 1_000_000],
    [
      'One of so many fresh answers is compared with the remembered one: both are parsed for it.',
      'own choice',
    ],
  ),
} as const;

const LISTS = {
  seed: whole(
    1,
    'count',
    [0, 4_294_967_295],
    ['Breaks exact ties; equal seeds replay equally.', 'own choice'],
  ),
  'classes[].weight': real(
    1,
    'weight',
    [0.001, 1_000_000],
    ['Share of served work among backlogged classes.', 'experiment: 8 : 2 : 1'],
  ),
  'classes[].shareMin': real(0, 'ratio', UNIT_SHARE, [
    'Least share of served work while backlogged.',
    'floor below the share that 8 : 2 : 1 gives',
  ]),
  'classes[].firstByteMs': whole(
    30_000,
    'ms',
    [1, 30 * DAY_MS],
    ['Default bound on the first content byte of a stream.', 'design: 10, 30, 600 s'],
  ),
  'classes[].completionMs': whole(
    120_000,
    'ms',
    [1, 30 * DAY_MS],
    ['Default bound on completion.', 'design: 60, 120, 600 s'],
  ),
  'tenants[].weight': real(
    1,
    'weight',
    [0.001, 1_000_000],
    ['Share of a tenant inside its class.', 'equal shares'],
  ),
  'models[].quality[].maxTokens': whole(
    256,
    'count',
    [1, 10_000_000],
    ['Longest answer at this quality.', 'no default'],
  ),
  'models[].quality[].maxTokensRatio': real(0.5, 'ratio', PART, [
    'Longest answer at this quality, as a part of what was asked for.',
    'no default',
  ]),
  'models[].quality[].steps': whole(
    8,
    'count',
    [1, 1_000],
    ['Most diffusion steps at this quality.', 'no default'],
  ),
  'groups[].shares[].min': real(0, 'ratio', UNIT_SHARE, [
    'Slots of the group kept free for the holder, rounded down.',
    'nothing is kept unasked',
  ]),
  'groups[].shares[].max': real(1, 'ratio', UNIT_SHARE, [
    'Most slots of the group that the holder may take, rounded down, at least one.',
    'nothing is closed unasked',
  ]),
  'nodes[].slots': whole(1, 'tasks', [1, 100_000], ['Absent: the engine is asked.', 'no default']),
  'nodes[].prefixBlocks': whole(
    1,
    'blocks',
    [0, 10_000_000],
    [
      'Blocks of placement.prefixBlockBytes that fit the prefix cache: its tokens times four, over the bytes of a block.',
      'no default: engines do not tell',
    ],
  ),
  'nodes[].telemetry.reservedUse': real(0, 'ratio', UNIT_SHARE, [
    'What the engine takes at its start. Absent: what is used while nothing of ours runs there.',
    'no default',
  ]),
} as const;

export const SETTINGS: Readonly<Record<SettingPath, Setting>> = Object.freeze({
  ...BOUNDS,
  ...ADMISSION,
  ...PLACEMENT,
  ...HEALTH,
  ...RETRY,
  ...PREEMPTION,
  ...DEGRADE,
  ...CACHE,
  ...LADDER,
  ...TIMEOUTS,
  ...SERVER,
  ...SURVIVAL,
  ...IDEMPOTENCY,
  ...SEEING,
  ...JOURNAL,
  ...SIGNALS,
  ...LIMITS,
  ...LISTS,
});

export function defaultOf(path: SettingPath): number {
  return SETTINGS[path].value;
}
