/**
 * What the scheduler can tell beside its effects: why a task was placed where it was, and what an arriving one waits for.
 * Told while the event is applied; what is handed over is used again and must be copied by who keeps it.
 */
import type { ModelId, NodeId, TaskId } from '../../base/units.ts';
import type { LadderStage } from '../overload/model-ladder.ts';
import type { Ranking } from '../placement/ranking.ts';

export interface DecisionWatch {
  /** Before the `assign` effect of the same task. */
  placed(taskId: TaskId, nodeId: NodeId, ranking: Ranking): void;
  /** A task that was let in and not placed; only the ranking's counts are its own. */
  queued(taskId: TaskId, ranking: Ranking): void;
  /** The overload ladder moved a model to another stage by evidence. */
  ladderStage(model: ModelId, stage: LadderStage): void;
}
