/**
 * A request of a higher class waits for places that lower ones hold: they began before it came, and go on for so long
 * that it has waited for a good part of its time. Named are class, tenant and node of the longest holder.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import { hostLack, type Sample, type WaitingRow } from '../sample.ts';
import { percent, seconds, told } from '../statistics.ts';

const WAIT_S = 2;
/** Of the time that it has to its deadline. */
const WAIT_RATIO = 0.25;
const HELD_RATIO = 0.5;

export const priorityInversion: Rule = {
  signal: 'priority-inversion',
  thresholds: {
    waitMin: { value: WAIT_S, unit: 's' },
    wait: { value: WAIT_RATIO, unit: 'ratio of the time to the deadline' },
    held: { value: HELD_RATIO, unit: 'ratio of places' },
    enter: { value: 3, unit: 'samples' },
  },
  enterSamples: 3,
  leaveSamples: 15,
  remedy:
    'Let the first class take places (gate preemption), bound how long low work may run (its deadline, its size), or reserve places for the class (node groups).',
  look({ now }: Past): Look {
    const worst = new Map<string, WaitingRow>();
    for (const row of now.waiting)
      if (isInverted(row) && !worst.has(row.className)) worst.set(row.className, row);
    return { kind: 'seen', suspicions: [...worst.values()].map((row) => suspicionOf(row, now)) };
  },
};

function isInverted({ held, oldestWaitUs, allowedUs }: WaitingRow): boolean {
  if (held === undefined || held.byLower < held.places * HELD_RATIO) return false;
  return oldestWaitUs >= Math.max(WAIT_S * 1_000_000, allowedUs * WAIT_RATIO);
}

function suspicionOf(row: WaitingRow, now: Sample): Suspicion {
  const held = row.held as NonNullable<WaitingRow['held']>;
  const part = held.byLower / held.places;
  const host = hostLack(now, held.nodeId);
  return {
    subject: { kind: 'class', id: row.className },
    severity: row.oldestWaitUs > row.allowedUs / 2 ? 'page' : 'warn',
    evidence: {
      model: row.model,
      waiting: row.depth,
      oldestWaitS: seconds(row.oldestWaitUs),
      allowedS: seconds(row.allowedUs),
      heldByLower: told(part),
      holderClass: held.className,
      holderTenant: held.tenant,
      holderNode: held.nodeId,
      holderRunningS: seconds(held.runningUs),
      ...(host === undefined ? {} : { holderHost: host }),
    },
    says: `${row.className} waits ${seconds(row.oldestWaitUs)} s for ${row.model} while ${percent(part)} of its places are held by lower classes, the longest by ${held.className} on ${held.nodeId} for ${seconds(held.runningUs)} s`,
  };
}
