/**
 * Why a request ended as it did, for people: the gate that refused it with the numbers of its decision, the nodes that
 * it ran on, and what would let the same request through. Rendered when somebody asks; the table of requests keeps
 * only the few numbers that this needs.
 */
import { alternativeLabel } from '../../core/degrade/index.ts';
import type { SchedulerConfig } from '../../core/config/types.ts';
import type { NodeRow, RequestFacts, RequestView } from '../../runtime/contract.ts';

export interface GateRow {
  readonly gate: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly detail: string;
}

export interface NodeLine {
  readonly id: string;
  readonly eligible: boolean;
  readonly reasons: readonly string[];
  /** Set where the request ran on the node. Counts from 1. */
  readonly attempt?: number;
  /** How that attempt ended. */
  readonly result?: string;
}

export interface Ending {
  /** Estimate until the same request would be served, 0 when it was, null when there is none. */
  readonly etaMs: number | null;
  readonly gates: readonly GateRow[];
  readonly nodes: readonly NodeLine[];
  readonly unblock: string;
}

/** What is true of the gateway while somebody asks. */
export interface Surroundings {
  readonly scheduler: SchedulerConfig;
  nodes(): readonly NodeRow[];
}

type Ended = RequestView & { readonly facts: RequestFacts };

export function endingOf(view: RequestView, surroundings: Surroundings): Ending {
  const facts = view.facts ?? NO_FACTS;
  const ended: Ended = { ...view, facts };
  const isServed = view.state === 'served' || view.state === 'degraded';
  const row = view.reason === '' ? undefined : (REASONS[view.reason] ?? UNKNOWN_REASON);
  const gate = row === undefined ? [] : [gateOf(ended, row, surroundings)];
  return {
    etaMs: isServed ? 0 : hintMs(facts),
    gates: gate,
    nodes: view.reason === 'no-node' ? candidatesNow(ended, surroundings) : ranOn(ended),
    unblock: row === undefined ? unblockWithout(ended, isServed) : row.unblock(ended, surroundings.scheduler),
  };
}

const NO_FACTS: RequestFacts = {
  workMs: 0,
  deadlineMs: 0,
  deadlineWished: false,
  stream: false,
  failures: [],
};

function gateOf(ended: Ended, row: ReasonRow, { scheduler }: Surroundings): GateRow {
  const { received, ...offsets } = ended.timeline;
  const closedMs = ended.state === 'rejected' ? offsets.done : Math.max(offsets.admitted, offsets.sent);
  return {
    gate: ended.reason,
    since: received + Math.max(0, closedMs),
    detail: detailOf(ended, row, scheduler),
  };
}

/** What the reason's row says, and which limit, stage or mark it was. */
function detailOf(ended: Ended, row: ReasonRow, scheduler: SchedulerConfig): string {
  const detail = row.detail(ended, scheduler);
  return ended.facts.cause === undefined ? detail : `${detail} (${ended.facts.cause})`;
}

/** Name of the lesser answer that was taken last; undefined where none was. */
export function standsIn({ facts }: RequestView): string | undefined {
  const taken = facts?.lookedAt?.findLast((step) => step.verdict === 'taken');
  return taken === undefined ? undefined : alternativeLabel(taken.alternative);
}

function unblockWithout(ended: Ended, isServed: boolean): string {
  if (ended.state === 'degraded') {
    const because = ended.facts.lookedAt?.findLast((step) => step.verdict === 'taken')?.because ?? 'unknown';
    return `Room for the whole request: it got ${standsIn(ended) ?? 'less'} instead of ${because}.`;
  }
  if (isServed) return 'Nothing: it was served.';
  return `Nothing: its client left after ${span(ended.timeline.done)}.`;
}

/** Milliseconds that the client was told to wait, or null where a retry cannot help or no estimate was made. */
function hintMs({ hint }: RequestFacts): number | null {
  return hint === undefined || !hint.retryable || hint.afterUs === 0 ? null : Math.ceil(hint.afterUs / 1_000);
}

/** Each attempt in its order. What the last one came to is told by the outcome, unless it failed by itself. */
function ranOn(ended: Ended): readonly NodeLine[] {
  const lines = ended.facts.failures.map(
    ({ nodeId, attempt, failure }): NodeLine => ({
      id: nodeId,
      eligible: false,
      reasons: [failure],
      attempt,
      result: 'failed',
    }),
  );
  if (ended.nodeId === '' || lines.at(-1)?.attempt === ended.attempts) return lines;
  const result = lastResult(ended);
  const reasons = result === 'timeout' || result === 'failed' ? [ended.reason] : [];
  lines.push({ id: ended.nodeId, eligible: reasons.length === 0, reasons, attempt: ended.attempts, result });
  return lines;
}

function lastResult({ state, reason }: Ended): string {
  if (state === 'served' || state === 'degraded') return 'served';
  if (state === 'cancelled') return 'cancelled';
  if (reason === 'declined') return 'declined';
  return reason === 'node-timeout' ? 'timeout' : 'failed';
}

/** Nodes that offer the model, as they are now: at the decision they were at least as closed. */
function candidatesNow({ model }: Ended, surroundings: Surroundings): readonly NodeLine[] {
  return surroundings
    .nodes()
    .filter((node) => node.spec.models.some((offer) => offer.model === model))
    .map((node) => {
      const isOpen = node.state === 'active' || node.state === 'unverified';
      const isShut = node.breakers.some((row) => row.model === model && row.state !== 'closed');
      const reasons = [...(isOpen ? [] : [node.state]), ...(isShut ? ['breaker-open'] : [])];
      return { id: node.id, eligible: reasons.length === 0, reasons };
    });
}

interface ReasonRow {
  readonly detail: (ended: Ended, scheduler: SchedulerConfig) => string;
  readonly unblock: (ended: Ended, scheduler: SchedulerConfig) => string;
}

const later = ({ facts }: Ended): string => {
  const ms = hintMs(facts);
  return ms === null ? 'again later' : `again after about ${span(ms)}`;
};

/** One row a reason; a test holds them against the outcome table. */
export const REASONS: Readonly<Record<string, ReasonRow>> = Object.freeze({
  'unknown-model': {
    detail: ({ model }) => `No node offers ${model}, and no configured model or alias has this name`,
    unblock: () => 'A node that offers the model, or an alias of this name.',
  },
  'context-too-long': {
    detail: ({ model }) => `Prompt and output asked for are longer than the context of any node of ${model}`,
    unblock: () => 'A shorter prompt, fewer output tokens, or a node with a longer context.',
  },
  'capability-missing': {
    detail: ({ model }) => `No node of ${model} states every ability that the request needs`,
    unblock: () => 'A node that states the ability: see its models in GET /nodes.',
  },
  'too-slow': {
    detail: (ended) =>
      `Its ${span(ended.facts.workMs)} of work fit on no node within ${deadline(ended)}, even an idle one`,
    unblock: () =>
      'A longer deadline, a smaller request, or a faster node; the same request again would not.',
  },
  'rate-limited': {
    detail: ({ className, tenant }) =>
      `A limit of tenant ${tenant}, class ${className} or the model was reached`,
    unblock: (ended) => `The same request ${later(ended)}, or a higher limit.`,
  },
  shed: {
    detail: ({ className }) =>
      `The fleet was overloaded, and requests of class ${className} like this one were refused first`,
    unblock: (ended) => `The same request ${later(ended)}, or a more important class.`,
  },
  preempted: {
    detail: (ended) =>
      `A more important request took its place on ${ended.nodeId} before it had sent anything, and it could not wait again`,
    unblock: (ended) => `The same request ${later(ended)}, or a more important class.`,
  },
  'queue-full': {
    detail: (_ended, { bounds }) =>
      `The queue was at a bound (${bounds.tasksMax} tasks, ${mib(bounds.bytesMax)}, ${span(bounds.workMsMax)} of work; at most ${percent(bounds.classShareMax)} of each for a class, ${percent(bounds.tenantShareMax)} for a tenant), and nothing less important could leave for it`,
    unblock: (ended) => `The same request ${later(ended)}, when the queue has drained.`,
  },
  'deadline-infeasible': {
    detail: flowGate,
    unblock: (ended) =>
      `The same request ${later(ended)}, a longer deadline, or less sent by the same tenant.`,
  },
  'no-node': {
    detail: ({ model }) =>
      `No node of ${model} could take work: each was cordoned, draining, suspect, ejected or gone, or a breaker kept the model off it`,
    unblock: (ended) => `A node of the model that is back or uncordoned; the same request ${later(ended)}.`,
  },
  poison: {
    detail: ({ attempts }) =>
      attempts > 0
        ? `Its ${attempts} attempts broke healthy nodes, so it is not tried on another`
        : 'The same body broke healthy nodes shortly before, so it is not tried on another',
    unblock: () => 'Another body; the mark on this one expires by itself.',
  },
  'self-protection': {
    detail: ({ className }) =>
      `The gateway refused its lowest classes, ${className} among them, to protect its own event loop, memory or descriptors`,
    unblock: () => 'The same request in some seconds, or in a more important class.',
  },
  'shutting-down': {
    detail: () => 'The gateway was shutting down',
    unblock: () => 'Another gateway, or this one when it is back.',
  },
  evicted: {
    detail: (ended) =>
      `The queue was full and a more important request came; this one had waited ${waited(ended)} and was the newest of the tenant with most queued work in class ${ended.className}`,
    unblock: (ended) => `The same request ${later(ended)}, or a more important class.`,
  },
  'wait-expired': {
    detail: (ended) =>
      `It waited ${waited(ended)} and could not be served any more within ${deadline(ended)}`,
    unblock: (ended) => `The same request ${later(ended)}, a longer deadline, or more nodes.`,
  },
  'node-failed': {
    detail: ({ facts, attempts }) =>
      facts.failures.length === 0
        ? 'The gateway cut it: the drain limit at shutdown was over, or it failed in the gateway itself'
        : `${attempts} of its attempts failed: ${facts.failures.map(({ nodeId, failure }) => `${nodeId} (${failure})`).join(', ')}`,
    unblock: () => 'A healthy node of the model; see GET /nodes for health and ejections.',
  },
  'node-timeout': {
    detail: (ended) =>
      `${ended.nodeId} had it for ${span(ended.timeline.done - ended.timeline.decided)} and did not ${ended.facts.stream ? 'send a first byte' : 'finish'} within ${deadline(ended)}`,
    unblock: () => 'A longer deadline, or a node that answers sooner; see its rate in GET /nodes.',
  },
  declined: {
    detail: ({ nodeId }) => `${nodeId} judged the request itself wrong (4xx); its answer went to the client`,
    unblock: () => 'A request that the engine accepts; its own message says what was wrong.',
  },
});

const UNKNOWN_REASON: ReasonRow = { detail: ({ reason }) => reason, unblock: () => '' };

/** The gate per flow with both of its numbers: what waited, and how much was let wait. */
function flowGate(ended: Ended, { admission, classes }: SchedulerConfig): string {
  const { facts, className, tenant } = ended;
  const shareMs = facts.deadlineMs * admission.flowWaitDeadlineShare;
  const isOfFirst = classes.length > 1 && classes[0]?.name === className;
  const limitMs = isOfFirst ? shareMs : Math.min(shareMs, admission.flowWaitMsMax);
  // A class default may have been raised for a slow model, and with it this limit.
  const isExact = facts.deadlineWished || limitMs < shareMs;
  const ms = hintMs(facts);
  const waiting = ms === null ? 'longer' : `about ${span(ms)}`;
  return `What ${className} of tenant ${tenant} had waiting would take ${waiting} at its share; at most ${isExact ? '' : 'about '}${span(limitMs)} may wait for ${deadline(ended)}`;
}

function deadline({ facts, className }: Ended): string {
  const origin = facts.deadlineWished ? 'asked for' : `default of ${className}`;
  return `its deadline of ${span(facts.deadlineMs)} (${origin})`;
}

function waited({ timeline }: Ended): string {
  return span(timeline.done - Math.max(0, timeline.admitted));
}

function span(ms: number): string {
  const whole = Math.max(0, ms);
  if (whole < 1_000) return `${Math.round(whole)} ms`;
  return whole < 120_000 ? `${(whole / 1_000).toFixed(1)} s` : `${(whole / 60_000).toFixed(1)} min`;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / (1024 * 1024))} MiB`;
}

function percent(ratio: number): string {
  return `${Math.round(ratio * 100)} %`;
}
