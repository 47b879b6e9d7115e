/** The ladder for people and machines: each model's stage, what holds it, and what would let it go. On demand. */
import type { DurationMs, ModelId, MonoUs } from '../../base/units.ts';
import type { GateMode, LadderConfig } from '../config/types.ts';
import type { Ladder } from './ladder.ts';
import type { LadderStage, ModelLadder } from './model-ladder.ts';
import type { Trigger } from './trigger.ts';

/** Models shown, those at the highest stages first. */
const MODELS_SHOWN_MAX = 100;

export interface TriggerView {
  readonly trigger: 'memory' | 'queue' | 'misses';
  /** The stage that it leads to. */
  readonly stage: LadderStage;
  /** The last sample; null while it is unknown. */
  readonly value: number | null;
  readonly enter: number;
  readonly leave: number;
  /** How long the value must be at or above `enter`, and below `leave`. */
  readonly enterMs: DurationMs;
  readonly leaveMs: DurationMs;
  readonly isLit: boolean;
  /** How long it is lit or dark. */
  readonly forMs: DurationMs;
  /** How long samples have spoken for the other state; null while they do not. */
  readonly turningMs: DurationMs | null;
}

export interface ModelLadderView {
  readonly model: ModelId;
  readonly stage: LadderStage;
  readonly forMs: DurationMs;
  /** Until the stage ends if nothing renews it; null at stage 0. */
  readonly expiresInMs: DurationMs | null;
  readonly triggers: readonly TriggerView[];
  /** What waited at the last sample. */
  readonly queue: {
    readonly depth: number;
    readonly depthMax: number;
    /** Of the class that presses most; null where no node is open. */
    readonly className: string;
    readonly drainMs: DurationMs | null;
    readonly targetMs: DurationMs;
  };
  /** One sentence: what would let it go. */
  readonly unblock: string;
}

export interface LadderView {
  readonly mode: GateMode;
  /** The stage that was set by hand, or the highest of any model. */
  readonly stage: LadderStage;
  readonly override: {
    readonly stage: LadderStage;
    readonly forMs: DurationMs;
    readonly expiresInMs: DurationMs;
    readonly who: string;
    readonly why: string;
  } | null;
  readonly models: readonly ModelLadderView[];
  readonly modelsTotal: number;
}

export function ladderView(ladder: Ladder, mode: GateMode, config: LadderConfig, now: MonoUs): LadderView {
  const sorted = [...ladder.models.values()].sort(
    (a, b) => b.stage - a.stage || (a.model < b.model ? -1 : 1),
  );
  const { override } = ladder;
  const isSet = override !== null && now < override.until;
  return {
    mode,
    stage: isSet ? override.stage : (sorted[0]?.stage ?? 0),
    override: isSet
      ? {
          stage: override.stage,
          forMs: ms(now - override.since),
          expiresInMs: ms(override.until - now),
          who: override.who,
          why: override.why,
        }
      : null,
    models: sorted.slice(0, MODELS_SHOWN_MAX).map((model) => modelView(model, config, now)),
    modelsTotal: sorted.length,
  };
}

function modelView(ladder: ModelLadder, config: LadderConfig, now: MonoUs): ModelLadderView {
  return {
    model: ladder.model,
    stage: ladder.stage,
    forMs: ms(now - ladder.since),
    expiresInMs: ladder.stage === 0 ? null : ms(Math.max(0, ladder.expiresAt - now)),
    triggers: triggersOf(ladder, config, now),
    queue: queueView(ladder.lastQueue),
    unblock: unblockOf(ladder, config, now),
  };
}

function triggersOf(ladder: ModelLadder, config: LadderConfig, now: MonoUs): readonly TriggerView[] {
  const leaveMs = config.calmMs;
  const row = (
    trigger: TriggerView['trigger'],
    stage: LadderStage,
    of: Trigger,
    limits: Pick<TriggerView, 'enter' | 'leave' | 'enterMs'>,
  ): TriggerView => ({
    trigger,
    stage,
    value: of.value === undefined ? null : Number(of.value.toFixed(4)),
    ...limits,
    leaveMs,
    isLit: of.isLit,
    forMs: ms(now - of.since),
    turningMs: Number.isFinite(of.turningSince) ? ms(now - of.turningSince) : null,
  });
  return [
    row('memory', 1, ladder.memory, {
      enter: config.memoryUseMax,
      leave: config.memoryUseResume,
      enterMs: config.memoryMs,
    }),
    row('queue', 2, ladder.queue, { enter: 1, leave: config.queueResumeRatio, enterMs: config.queueMs }),
    row('misses', 3, ladder.misses, {
      enter: config.missRatioMax,
      leave: config.missRatioResume,
      enterMs: 0,
    }),
  ];
}

function queueView(queue: ModelLadder['lastQueue']): ModelLadderView['queue'] {
  return {
    depth: queue.depth,
    depthMax: queue.depthMax,
    className: queue.className,
    drainMs: Number.isFinite(queue.drainUs) ? ms(queue.drainUs) : null,
    targetMs: ms(queue.targetUs),
  };
}

function unblockOf(ladder: ModelLadder, config: LadderConfig, now: MonoUs): string {
  const { stage } = ladder;
  if (stage === 0) return 'Nothing is raised.';
  if (ladder.wanted < stage) {
    const leftS = Math.max(0, ladder.expiresAt - now) / 1_000_000;
    return `Nothing holds it any more: it goes down by one in ${leftS.toFixed(1)} s.`;
  }
  const calm = `for ${config.calmMs / 1_000} s`;
  if (ladder.wanted === 1) return `Memory use below ${percent(config.memoryUseResume)} ${calm}.`;
  const queue = `a queue below ${percent(config.queueResumeRatio)} of its limit`;
  if (stage === 3) return `Missed deadlines below ${percent(config.missRatioResume)}, or ${queue}, ${calm}.`;
  return `${queue.replace('a', 'A')} ${calm}.`;
}

function percent(ratio: number): string {
  return `${Number((ratio * 100).toFixed(1))} %`;
}

function ms(us: number): DurationMs {
  return Math.round(us / 1_000);
}
