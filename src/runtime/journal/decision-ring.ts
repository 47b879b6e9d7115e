/**
 * The last decisions in memory, for people: what happened to each request, and where it was placed among which nodes. In
 * columns that are written over, so that keeping them makes no garbage: a decision is a few numbers and references.
 */
import type { DurationUs, ModelId, MonoUs, NodeId, TaskId } from '../../base/units.ts';
import type { DegradeStep } from '../../core/degrade/index.ts';
import type { NodeState } from '../../core/health/state.ts';
import type { LadderStage } from '../../core/overload/model-ladder.ts';
import { RANKED_MAX, type Ranking, REFUSAL_COUNTS } from '../../core/placement/index.ts';
import type { Outcome } from '../../core/request/outcome.ts';
import type { EffectSink } from '../../core/scheduler/effects.ts';
import type { SchedulerEvent } from '../../core/scheduler/events.ts';
import type { DecisionWatch } from '../../core/scheduler/watch.ts';

/** Decisions that are kept: about as many as the finished requests led to that stay explainable. */
export const DECISIONS_MAX = 65_536;
/** Placements of which the nodes and refusals are kept, those of arrivals that wait included. */
export const PLACEMENTS_MAX = 32_768;

const KINDS = [
  'admitted',
  'queued',
  'placed',
  'sent',
  'first-byte',
  'attempt-failed',
  'lesser-answer',
  'aborted',
  'done',
  'rejected',
  'evicted',
  'failed',
  'cancelled',
  'node-joined',
  'node-left',
  'node-state',
  'node-drained',
  'ladder',
  'config',
  'shutdown',
] as const;

export type DecisionRowKind = (typeof KINDS)[number];

/** A decision for people. */
export interface DecisionRow {
  /** Counts from 1, without gaps. */
  readonly seq: number;
  readonly at: MonoUs;
  readonly kind: DecisionRowKind;
  /** 0 where it is about no request. */
  readonly taskId: TaskId;
  readonly nodeId: NodeId | '';
  /** Of a placement, from 1; of the ladder, the stage. */
  readonly number: number;
  /** Reason, state, lesser answer, or model of the ladder; '' where there is none. */
  readonly what: string;
  readonly placement?: PlacementFacts;
}

export interface PlacementFacts {
  /** The nodes that would be done with it first, the best first; empty for one that waits. */
  readonly nodes: readonly { readonly nodeId: NodeId; readonly doneUs: DurationUs }[];
  /** How many nodes could not take it, by reason; reasons without a node are left out. */
  readonly refusals: Readonly<Record<string, number>>;
}

export interface DecisionPage {
  readonly decisions: readonly DecisionRow[];
  /** The oldest that is kept; 0 while there is none. */
  readonly oldest: number;
  readonly newest: number;
}

const NO_PLACEMENT = 0;
const NUMBER_OF: ReadonlyMap<DecisionRowKind, number> = new Map(KINDS.map((kind, index) => [kind, index]));

/** A class, since every event of the gateway passes it. */
export class DecisionRing implements DecisionWatch, EffectSink {
  readonly #ats = new Float64Array(DECISIONS_MAX);
  readonly #kinds = new Uint8Array(DECISIONS_MAX);
  readonly #taskIds = new Float64Array(DECISIONS_MAX);
  readonly #numbers = new Uint32Array(DECISIONS_MAX);
  /** Number of the placement that it tells of, from 1. */
  readonly #placementOf = new Float64Array(DECISIONS_MAX);
  readonly #nodeIds: (NodeId | '')[] = new Array<NodeId | ''>(DECISIONS_MAX).fill('');
  readonly #whats: string[] = new Array<string>(DECISIONS_MAX).fill('');
  readonly #rankedIds: (NodeId | '')[] = new Array<NodeId | ''>(PLACEMENTS_MAX * RANKED_MAX).fill('');
  readonly #rankedUs = new Float64Array(PLACEMENTS_MAX * RANKED_MAX);
  readonly #refusals = new Int32Array(PLACEMENTS_MAX * REFUSAL_COUNTS.length);
  #written = 0;
  #placements = 0;
  /** Told of the event under way, for the effects that follow. */
  readonly #toldTasks: TaskId[] = [];
  readonly #toldPlacements: number[] = [];
  readonly #toldQueued: boolean[] = [];
  #now: MonoUs = 0;

  /** Before the event is applied. */
  event(event: SchedulerEvent, now: MonoUs): void {
    this.#now = now;
    if (this.#toldTasks.length > 0) {
      this.#toldTasks.length = 0;
      this.#toldPlacements.length = 0;
      this.#toldQueued.length = 0;
    }
    switch (event.kind) {
      case 'attempt-sent':
        return this.#write('sent', event.taskId, '', '');
      case 'attempt-first-byte':
        return this.#write('first-byte', event.taskId, '', '');
      case 'attempt-ended':
        if (event.result.kind === 'failed')
          this.#write('attempt-failed', event.taskId, '', event.result.failure);
        return;
      case 'node-registered':
        return this.#write('node-joined', 0, event.node.id, '');
      case 'node-removed':
        return this.#write('node-left', 0, event.nodeId, '');
      case 'ladder-override':
        this.#write('ladder', 0, '', event.override === null ? 'given back' : 'set by hand');
        this.#numbers[this.#last] = event.override?.stage ?? 0;
        return;
      case 'config':
        return this.#write('config', 0, '', '');
      case 'shutdown':
        return this.#write('shutdown', 0, '', '');
      default:
    }
  }

  /** After the effects were shown: who was let in and was not placed. */
  settle(): void {
    for (let at = 0; at < this.#toldTasks.length; at++) {
      if (this.#toldQueued[at] !== true) continue;
      this.#write('queued', this.#toldTasks[at] as TaskId, '', '');
      this.#placementOf[this.#last] = this.#toldPlacements[at] as number;
    }
  }

  // What the scheduler tells while it decides.

  placed(taskId: TaskId, _nodeId: NodeId, ranking: Ranking): void {
    this.#tell(taskId, ranking, false);
  }

  queued(taskId: TaskId, ranking: Ranking): void {
    this.#tell(taskId, ranking, true);
  }

  ladderStage(model: ModelId, stage: LadderStage): void {
    this.#write('ladder', 0, '', model);
    this.#numbers[this.#last] = stage;
  }

  // Its effects.

  admitted(taskId: TaskId): void {
    this.#write('admitted', taskId, '', '');
  }

  assign(taskId: TaskId, nodeId: NodeId, attempt: number): void {
    this.#write('placed', taskId, nodeId, '');
    this.#numbers[this.#last] = attempt;
    for (let at = 0; at < this.#toldTasks.length; at++) {
      if (this.#toldTasks[at] !== taskId || this.#toldQueued[at] === true) continue;
      this.#placementOf[this.#last] = this.#toldPlacements[at] as number;
      this.#toldTasks[at] = -1;
      return;
    }
  }

  degraded(taskId: TaskId, { alternative, verdict }: DegradeStep): void {
    if (verdict === 'taken') this.#write('lesser-answer', taskId, '', alternative.how);
  }

  abort(taskId: TaskId, nodeId: NodeId): void {
    this.#write('aborted', taskId, nodeId, '');
  }

  outcome(taskId: TaskId, outcome: Outcome): void {
    const { kind } = outcome;
    const isDone = kind === 'served' || kind === 'degraded';
    this.#write(
      isDone ? 'done' : kind,
      taskId,
      '',
      'reason' in outcome ? outcome.reason : isDone ? kind : '',
    );
  }

  nodeState(nodeId: NodeId, state: NodeState): void {
    this.#write('node-state', 0, nodeId, state);
  }

  nodeDrained(nodeId: NodeId): void {
    this.#write('node-drained', 0, nodeId, '');
  }

  // For people.

  /** Those after `since`, the oldest first. */
  page(since: number, limit: number): DecisionPage {
    const oldest = this.#oldest;
    const from = Math.max(since + 1, oldest);
    const rows: DecisionRow[] = [];
    for (let seq = from; seq <= this.#written && rows.length < limit; seq++) rows.push(this.#row(seq));
    return { decisions: rows, oldest: this.#written === 0 ? 0 : oldest, newest: this.#written };
  }

  /** Those about one request that are still kept, the oldest first. O(decisions kept). */
  of(taskId: TaskId, limit: number): readonly DecisionRow[] {
    const rows: DecisionRow[] = [];
    for (let seq = this.#written; seq >= this.#oldest && rows.length < limit; seq--) {
      if (this.#taskIds[seq % DECISIONS_MAX] === taskId) rows.push(this.#row(seq));
    }
    return rows.reverse();
  }

  get #oldest(): number {
    return Math.max(1, this.#written - DECISIONS_MAX + 1);
  }

  get #last(): number {
    return this.#written % DECISIONS_MAX;
  }

  #write(kind: DecisionRowKind, taskId: TaskId, nodeId: NodeId | '', what: string): void {
    this.#written += 1;
    const at = this.#last;
    this.#ats[at] = this.#now;
    this.#kinds[at] = NUMBER_OF.get(kind) as number;
    this.#taskIds[at] = taskId;
    this.#numbers[at] = 0;
    this.#placementOf[at] = NO_PLACEMENT;
    this.#nodeIds[at] = nodeId;
    this.#whats[at] = what;
  }

  #tell(taskId: TaskId, ranking: Ranking, isQueued: boolean): void {
    this.#placements += 1;
    const place = (this.#placements % PLACEMENTS_MAX) * RANKED_MAX;
    const size = isQueued ? 0 : ranking.size;
    for (let at = 0; at < RANKED_MAX; at++) {
      this.#rankedIds[place + at] = at < size ? (ranking.nodes[at]?.spec.id ?? '') : '';
      this.#rankedUs[place + at] = at < size ? (ranking.doneUs[at] as number) : 0;
    }
    this.#refusals.set(ranking.refusals, (this.#placements % PLACEMENTS_MAX) * REFUSAL_COUNTS.length);
    this.#toldTasks.push(taskId);
    this.#toldPlacements.push(this.#placements);
    this.#toldQueued.push(isQueued);
  }

  #row(seq: number): DecisionRow {
    const at = seq % DECISIONS_MAX;
    const placement = this.#placementOf[at] as number;
    const isKept = placement !== NO_PLACEMENT && placement > this.#placements - PLACEMENTS_MAX;
    return {
      seq,
      at: this.#ats[at] as number,
      kind: KINDS[this.#kinds[at] as number] as DecisionRowKind,
      taskId: this.#taskIds[at] as number,
      nodeId: this.#nodeIds[at] as string,
      number: this.#numbers[at] as number,
      what: this.#whats[at] as string,
      ...(isKept ? { placement: this.#facts(placement % PLACEMENTS_MAX) } : {}),
    };
  }

  #facts(place: number): PlacementFacts {
    const nodes: { nodeId: NodeId; doneUs: DurationUs }[] = [];
    for (let at = place * RANKED_MAX; at < (place + 1) * RANKED_MAX; at++) {
      const nodeId = this.#rankedIds[at] as string;
      if (nodeId !== '') nodes.push({ nodeId, doneUs: Math.round(this.#rankedUs[at] as number) });
    }
    const refusals: Record<string, number> = {};
    for (const [index, reason] of REFUSAL_COUNTS.entries()) {
      const count = this.#refusals[place * REFUSAL_COUNTS.length + index] as number;
      if (count > 0) refusals[reason] = count;
    }
    return { nodes, refusals };
  }
}
