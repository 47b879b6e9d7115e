/**
 * A gate refuses while capacity is idle. Protection that was right a minute ago and holds on although nothing presses any
 * more turns users away from machines that do nothing. Refusals with a cause of their own (limits that a tenant was given,
 * places that are reserved) are no protection and do not count.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import type { Sample } from '../sample.ts';
import { percent, told } from '../statistics.ts';

const WINDOW_S = 10;
const REFUSED_MIN = 5;
const IDLE_RATIO = 0.5;
/** Part of the arrivals that is refused, at least: a gate that is right about a few is no latch. */
const REFUSED_RATIO = 0.2;

/** Gates that protect, and refusals that protect without a gate of their own. */
const PROTECTING: ReadonlySet<string> = new Set(['flow-wait', 'retry-shed', 'ladder']);
const PROTECTING_REASONS: Readonly<Record<string, string>> = {
  'queue-full': 'bounds',
  'self-protection': 'survival',
};

export const latchedGate: Rule = {
  signal: 'latched-gate',
  thresholds: {
    window: { value: WINDOW_S, unit: 's' },
    refusedMin: { value: REFUSED_MIN, unit: 'requests' },
    refusedRatio: { value: REFUSED_RATIO, unit: 'ratio of arrivals' },
    idle: { value: IDLE_RATIO, unit: 'ratio of places' },
  },
  enterSamples: 10,
  leaveSamples: 10,
  remedy:
    'See what holds the gate: `GET /spillway/v1/ladder` (an override set by hand is given back with {"stage": null}), the loop lag for survival, the deadlines that clients ask for with flow-wait.',
  look,
};

function look(past: Past): Look {
  const { now } = past;
  const then = past.ago(WINDOW_S);
  if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
  if (now.slots === 0) return { kind: 'blind', why: 'No node is open' };
  const idle = idleRatio(past.everySecond());
  if (idle < IDLE_RATIO) return { kind: 'seen', suspicions: [], why: 'The nodes are at work' };
  const arrived = now.accounts.arrived - then.accounts.arrived;
  const before = refusalsOf(then);
  const suspicions = [...refusalsOf(now)]
    .map(([gate, refused]): [string, number] => [gate, refused - (before.get(gate) ?? 0)])
    .filter(([, refused]) => refused >= REFUSED_MIN && refused >= arrived * REFUSED_RATIO)
    .map(([gate, refused]) =>
      suspicionOf({ gate, refused, arrived, idle, inS: past.lasting(WINDOW_S) }, now),
    );
  return { kind: 'seen', suspicions };
}

function refusalsOf({ gates, rejections }: Sample): ReadonlyMap<string, number> {
  const refusals = new Map<string, number>();
  for (const { gate, refused } of gates) if (PROTECTING.has(gate)) refusals.set(gate, refused);
  for (const [reason, gate] of Object.entries(PROTECTING_REASONS))
    refusals.set(gate, rejections[reason] ?? 0);
  return refusals;
}

/** Of the places of open nodes, on average over the samples. */
function idleRatio(samples: readonly Sample[]): number {
  let free = 0;
  let slots = 0;
  for (const sample of samples) {
    free += sample.slots - sample.inflight;
    slots += sample.slots;
  }
  return slots === 0 ? 0 : free / slots;
}

function suspicionOf(
  seen: {
    readonly gate: string;
    readonly refused: number;
    readonly arrived: number;
    readonly idle: number;
    readonly inS: number;
  },
  now: Sample,
): Suspicion {
  const { gate, refused, arrived, idle, inS } = seen;
  const why =
    gate === 'ladder'
      ? ` (stage ${now.ladderStage}${now.isLadderSet ? ', set by hand' : ''})`
      : gate === 'survival'
        ? ` (${now.shedClasses} classes)`
        : '';
  return {
    subject: { kind: 'gate', id: gate },
    severity: 'page',
    evidence: {
      refused,
      arrived,
      idle: told(idle),
      ladderStage: now.ladderStage,
      setByHand: now.isLadderSet ? 'yes' : 'no',
      shedClasses: now.shedClasses,
    },
    says: `${gate}${why} refused ${refused} of ${arrived} requests in ${inS} s while ${percent(idle)} of the places were idle`,
  };
}
