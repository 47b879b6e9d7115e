/**
 * A request waits although a node that could serve it is idle, and would have had it done by now: its service time is shorter
 * than both have been waiting for each other. A shorter wait is no loss yet, since the scheduler holds tasks for faster
 * nodes on purpose.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import type { WaitingRow } from '../sample.ts';
import { seconds } from '../statistics.ts';

const WAIT_S = 2;
const ENTER = 5;

export const phantomStarvation: Rule = {
  signal: 'phantom-starvation',
  thresholds: {
    waitMin: { value: WAIT_S, unit: 's' },
    enter: { value: ENTER, unit: 'samples' },
  },
  enterSamples: ENTER,
  leaveSamples: 15,
  remedy:
    'The reason that is named keeps the node from the work: look at its readings, its refusals and its health page. `spillway explain` the waiting request for every node.',
  look({ now }: Past): Look {
    const suspicions = now.waiting.flatMap((row) => suspicionOf(row));
    return { kind: 'seen', suspicions: mergeByModel(suspicions) };
  },
};

function suspicionOf(row: WaitingRow): readonly Suspicion[] {
  const { idle } = row;
  if (idle === undefined || row.oldestWaitUs < WAIT_S * 1_000_000) return [];
  const reason = idle.reasons.join(', ');
  const others = idle.nodes > 1 ? ` and ${idle.nodes - 1} more` : '';
  return [
    {
      subject: { kind: 'model', id: row.model },
      severity: row.oldestWaitUs > row.allowedUs / 2 ? 'page' : 'warn',
      evidence: {
        class: row.className,
        waiting: row.depth,
        oldestWaitS: seconds(row.oldestWaitUs),
        idleNode: idle.nodeId,
        idleNodes: idle.nodes,
        idleS: seconds(idle.idleUs),
        serviceS: seconds(idle.serviceUs),
        reason,
      },
      says: `${row.depth} ${row.className} request(s) wait for ${row.model} while ${idle.nodeId}${others} is idle: ${reason}`,
    },
  ];
}

/** One per model: the one that has waited longest, which comes first. */
function mergeByModel(suspicions: readonly Suspicion[]): readonly Suspicion[] {
  const seen = new Set<string>();
  return suspicions.filter(({ subject }) => {
    const isNew = !seen.has(subject.id);
    seen.add(subject.id);
    return isNew;
  });
}
