/**
 * The scheduler as its drivers see it: the gateway's loop and the simulator run the same one.
 * Pure: it reads no clock, draws no outside randomness, performs nothing. Equal events give equal effects.
 */
import type { DurationUs, MonoUs, NodeId, Ratio, RefUs, TaskId, TenantId, Tokens } from '../../base/units.ts';
import type { PreemptionCounts } from '../retry/preemptions.ts';
import type { RequestShape, TaskSpec, Usage } from '../request/task.ts';
import type { GateCount } from '../admission/gates.ts';
import type { LedgersView } from '../ledgers/index.ts';
import type { LimiterView } from '../limits/index.ts';
import type { LimitsView } from '../request/outcome.ts';
import type { LadderView } from '../overload/view.ts';
import type { Sample } from '../signals/index.ts';
import type { EffectSink } from './effects.ts';
import type { NodeMemory, SchedulerEvent } from './events.ts';
import type { DecisionWatch } from './watch.ts';
import type { Accounts, NodeView, QueueView, TaskView } from './views.ts';

export interface WorkEstimate {
  readonly workUs: RefUs;
  readonly firstByteWorkUs: RefUs;
  /** Estimated prompt plus the most output asked for, for matching context length. */
  readonly contextTokens: number;
  /** Prompt plus the output asked for, or else the output to be expected: what limits reserve. */
  readonly tokens: Tokens;
  /** Estimated tokens of the prompt. */
  readonly promptTokens: Tokens;
  /** Part of the work that reading the prompt is; absent where the model's profile does not tell. */
  readonly promptWorkUs?: RefUs;
}

/** When a silent attempt is given to another node: it ends as failed, `timeout`. 0 is no bound. */
export interface AttemptLimits {
  /** From when it was sent to the whole answer, or to a stream's first content byte. */
  readonly firstByteUs: DurationUs;
  /** Silence inside a stream after that. */
  readonly idleUs: DurationUs;
}

export interface Scheduler {
  /** Applies one event. `now` never goes back. Effects are appended to `out` in the order to perform them. */
  apply(event: SchedulerEvent, now: MonoUs, out: EffectSink): void;
  /** When `tick` is needed next, or Infinity. */
  nextWakeAt(): MonoUs;
  /** Work of a request by the model's profile and what was learned; unknown models use the generic profile. */
  estimate(model: string, shape: RequestShape): WorkEstimate;
  /** Whether a registered node of the model keeps prompts. */
  keepsPrompts(model: string): boolean;
  /** Corrects token estimates of a model from a node's own usage. */
  learn(model: string, shape: RequestShape, usage: Usage): void;
  /** Default deadline of a class, from the submit instant. */
  classDeadlineUs(className: string, stream: boolean): DurationUs;
  /** Tells why tasks are placed or wait, while they are; null ends it. Nothing is worked out for it without a watch. */
  watch(watch: DecisionWatch | null): void;
  accounts(): Accounts;
  /** What each protective gate refused, or would have refused in shadow. */
  gates(): readonly GateCount[];
  /** What is left to a tenant of limits of its own; undefined when it has none, or they are not in force. O(1). */
  limitsOf(tenant: TenantId, now: MonoUs): LimitsView | undefined;
  /** Everything that is limited: O(names). */
  limits(now: MonoUs): readonly LimiterView[];
  /** The overload ladder: stage, evidence, and what would leave it. */
  ladder(now: MonoUs): LadderView;
  /** What is left to pay retries from, 0 to 1. */
  retryBudget(now: MonoUs): Ratio;
  /** How preemptions ended. */
  preemptions(): Readonly<PreemptionCounts>;
  /** Refusals that could have been served, errors of predictions, work that nobody got. */
  ledgers(now: MonoUs): LedgersView;
  nodes(now: MonoUs): readonly NodeView[];
  node(nodeId: NodeId, now: MonoUs): NodeView | undefined;
  nodeMemory(nodeId: NodeId, now: MonoUs): NodeMemory | undefined;
  /** Models that at least one registered node offers, sorted. */
  models(): readonly string[];
  queue(now: MonoUs): QueueView;
  /** The first tasks that wait, in order of arrival. O(live tasks x log). */
  waiting(max: number): readonly TaskSpec[];
  /** Bounds on the silence of the attempt under way; none when it is unknown or the gate does not hold. */
  attemptLimits(taskId: TaskId): AttemptLimits;
  explain(taskId: TaskId, now: MonoUs): TaskView | undefined;
  /** What detectors look at. Changes no decision. O(nodes + classes x models), and a bounded search for who could run what waits. */
  sample(now: MonoUs): Sample;
  /** The whole state as JSON, without secrets or prompts. */
  dump(now: MonoUs): unknown;
}
