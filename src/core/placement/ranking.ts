/**
 * The nodes that a placement compared, the best first, and how many others could not take the task for which reason: for
 * people who ask later. The tops of the buckets are looked at once more, as placement does, without moving anything:
 * O(pools x buckets). How many nodes refuse is counted from what the pools count anyway.
 */
import type { DurationUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { type ChooseContext, rankedUs, roomAt } from './choose.ts';
import { isShutFor } from './eligibility.ts';
import type { Pool, SeatGroup } from './pool.ts';

/** Nodes that are told of one placement. */
export const RANKED_MAX = 3;
/** Seats looked at in each heap of a bucket: as many as placement compares. */
const LOOKED_AT_MAX = 3;

/** Why nodes did not take the task, by the counters of its pools. */
export const REFUSAL_COUNTS = ['unfit', 'closed', 'no-room', 'bulkhead'] as const;

/** Time until the task would be done on the node, as placement ranks it: wait for room, swap and a kept prompt priced. */
export function completionUs(node: NodeRecord, task: TaskRecord, context: ChooseContext): DurationUs {
  const startUs = node.hasRoomAsPlanned(context.now)
    ? 0
    : roomAt(node, context) + node.reservedUs - context.now;
  return startUs + rankedUs(node, task, context) / node.rankFactor;
}

/** Used again for each placement. */
export class Ranking {
  /** The best first; `size` of them count. */
  readonly nodes: (NodeRecord | null)[] = [null, null, null];
  /** Time until the task would be done there, as placement ranks it: swap and a kept prompt priced. */
  readonly doneUs: Float64Array = new Float64Array(RANKED_MAX);
  size = 0;
  /** In the order of `REFUSAL_COUNTS`: nodes without the model or an ability, closed by a mark, busy, and shut by a share. */
  readonly refusals: Int32Array = new Int32Array(REFUSAL_COUNTS.length);

  /** The best nodes of the pools for a task that still waits, the chosen one among those compared. */
  rank(pools: readonly Pool[], task: TaskRecord, context: ChooseContext, chosen: NodeRecord): void {
    this.size = 0;
    this.#note(chosen, task, context);
    for (let at = 0; at < pools.length; at++) {
      const pool = pools[at] as Pool;
      if (pool.group !== null && pool.group.shutsOut(task)) continue;
      const { buckets } = pool;
      for (let index = 0; index < buckets.length; index++)
        this.#look(buckets[index] as SeatGroup, task, context);
    }
  }

  /** Counts the nodes that cannot take the task now. `nodes`: all of the fleet. */
  count(pools: readonly Pool[], task: TaskRecord, nodes: number): void {
    let seats = 0;
    let closed = 0;
    let busy = 0;
    let shut = 0;
    for (let at = 0; at < pools.length; at++) {
      const pool = pools[at] as Pool;
      seats += pool.seats.size;
      closed += pool.seats.size - pool.openSeats;
      if (pool.group !== null && pool.group.shutsOut(task)) shut += pool.openSeats;
      else busy += pool.openSeats - pool.roomySeats;
    }
    this.refusals[0] = Math.max(0, nodes - seats);
    this.refusals[1] = closed;
    this.refusals[2] = busy;
    this.refusals[3] = shut;
  }

  #look({ roomy, busy }: SeatGroup, task: TaskRecord, context: ChooseContext): void {
    for (let index = 0; index < LOOKED_AT_MAX && index < roomy.size; index++) {
      const seat = roomy.at(index);
      if (seat !== undefined) this.#note(seat.node, task, context);
    }
    for (let index = 0; index < LOOKED_AT_MAX && index < busy.size; index++) {
      const seat = busy.at(index);
      if (seat !== undefined) this.#note(seat.node, task, context);
    }
  }

  #note(node: NodeRecord, task: TaskRecord, context: ChooseContext): void {
    for (let at = 0; at < this.size; at++) if (this.nodes[at] === node) return;
    if (task.triedNodes?.includes(node.spec.id) === true || isShutFor(node, task.model, context)) return;
    this.#insert(node, completionUs(node, task, context));
  }

  #insert(node: NodeRecord, doneUs: DurationUs): void {
    let at = this.size;
    while (at > 0 && doneUs < (this.doneUs[at - 1] as number)) at -= 1;
    if (at === RANKED_MAX) return;
    for (let last = Math.min(this.size, RANKED_MAX - 1); last > at; last--) {
      this.nodes[last] = this.nodes[last - 1] as NodeRecord;
      this.doneUs[last] = this.doneUs[last - 1] as number;
    }
    this.nodes[at] = node;
    this.doneUs[at] = doneUs;
    if (this.size < RANKED_MAX) this.size += 1;
  }
}
