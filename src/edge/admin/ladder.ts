/**
 * The overload ladder on the wire: instants in milliseconds since 1970, unknown as null. At the top stands the model at
 * the highest stage, so that one look tells what is held back and why.
 */
import { type DurationMs, US_PER_S, type WallMs } from '../../base/units.ts';
import { type LadderWish, OVERRIDE_US_MAX } from '../../core/overload/index.ts';
import type { LadderView, ModelLadderView, TriggerView } from '../../core/overload/index.ts';

export const OVERRIDE_SECONDS_MAX: number = OVERRIDE_US_MAX / US_PER_S;

/** Who sets the ladder, for how long and why; with a null stage, that it is given back. */
export interface LadderBody {
  readonly stage: LadderWish['stage'] | null;
  readonly seconds?: number | undefined;
  readonly why?: string | undefined;
  readonly who?: string | undefined;
}

export function wireLadder(view: LadderView, nowWallMs: WallMs): unknown {
  const ago = (ms: DurationMs): WallMs => Math.round(nowWallMs - ms);
  const models = view.models.map((row) => wireModel(row, ago));
  const [top] = models;
  const override =
    view.override === null
      ? null
      : {
          stage: view.override.stage,
          since: ago(view.override.forMs),
          expires: ago(-view.override.expiresInMs),
          who: view.override.who,
          why: view.override.why,
        };
  return {
    mode: view.mode,
    stage: view.stage,
    model: top?.model ?? null,
    since: override?.since ?? top?.since ?? null,
    expires: override?.expires ?? top?.expires ?? null,
    triggers: top?.triggers ?? [],
    queue: top?.queue ?? null,
    unblock: override === null ? (top?.unblock ?? 'Nothing is raised.') : 'It was set by hand: its own end.',
    override,
    models,
    modelsTotal: view.modelsTotal,
  };
}

type Ago = (ms: DurationMs) => WallMs;

/** What a model's row looks like; the same at the top. */
interface WireModel extends Pick<ModelLadderView, 'model' | 'stage' | 'queue' | 'unblock'> {
  readonly since: WallMs;
  readonly expires: WallMs | null;
  readonly triggers: readonly unknown[];
}

function wireModel(row: ModelLadderView, ago: Ago): WireModel {
  return {
    model: row.model,
    stage: row.stage,
    since: ago(row.forMs),
    expires: row.expiresInMs === null ? null : ago(-row.expiresInMs),
    triggers: row.triggers.map((trigger) => wireTrigger(trigger, ago)),
    queue: row.queue,
    unblock: row.unblock,
  };
}

function wireTrigger({ forMs, turningMs, ...row }: TriggerView, ago: Ago): unknown {
  return { ...row, since: ago(forMs), turningSince: turningMs === null ? null : ago(turningMs) };
}

/** What the body asks for; null gives the stage back to the evidence. */
export function ladderWish(body: LadderBody): LadderWish | null {
  if (body.stage === null) return null;
  return {
    stage: body.stage,
    forUs: (body.seconds ?? 0) * US_PER_S,
    who: body.who ?? 'admin token',
    why: body.why ?? '',
  };
}
