/**
 * A tenant's own request and usage in the words of the wire contract: nothing of other tenants, and of nodes only where
 * the tenant may know them. Why a request waits is told by gate and by how many nodes refuse it for which reason.
 */
import { US_PER_MS } from '../../base/units.ts';
import type { Cure } from '../../core/scheduler/views.ts';
import type { LimitsView, LimitView } from '../../core/request/outcome.ts';
import type { Gateway, RequestView } from '../../runtime/contract.ts';
import { type ExplainedRequest, wireRequest, type WireSurroundings } from '../admin/views.ts';

/** Every node of the fleet fits; the rows are counted, not sent. */
const WHOLE_FLEET = { offset: 0, limit: 1_000_000 };

/** Named instead of a node that the tenant may not know. */
const SOME_NODE = 'a node';

/** By gate: the operator's words may name the shares of others. */
const OWN_WORDS: Readonly<Record<string, string>> = {
  'no-open-node': 'Every node that could serve it is closed for the moment',
  'no-room': 'All nodes that could serve it are busy',
  bulkhead: 'The slots that it may use now are all taken',
  'held-for-faster-node': 'A busy node is expected to finish it sooner than a free one',
  'tried-before': 'Every node that could serve it now has failed it already',
  'no-node-in-time': 'The nodes that could serve it now would most likely miss its deadline',
  'too-late': 'No node would do it by its deadline any more',
  'free-nodes-too-slow': 'The free nodes would most likely miss its deadline',
  'not-looked-at': 'It waits for those ahead of it',
  'fleet-changed': 'Nodes came or went, and it is about to be told of them',
  preemption: 'It gave its place to a more important request and waits again',
};

/** By cure: the operator's words name nodes and groups. */
const OWN_UNBLOCK: Readonly<Record<Cure['kind'], string>> = {
  'node-gets-room': 'Room on a node',
  'marks-end': 'A node that opens again',
  'share-lifted': 'A slot within the shares that hold for it',
  'next-look': 'The next look at the queue',
  'node-joins': 'A node of its model that joins',
  none: 'A longer deadline would have',
};

export function ownRequest(view: RequestView, nodeVisible: boolean, around: WireSurroundings): unknown {
  const told = wireRequest(nodeVisible ? view : anonymous(view), WHOLE_FLEET, around);
  const { id, state, reason, class: className, model, attempts, timeline, workMs, deadlineMs } = told;
  return {
    id,
    state,
    reason,
    class: className,
    model,
    ...(nodeVisible ? { node: told.node } : {}),
    attempts,
    timeline,
    workMs,
    deadlineMs,
    failures: told.failures.map(({ node, ...failure }) => (nodeVisible ? { node, ...failure } : failure)),
    degraded: told.degraded,
    position: told.position,
    etaMs: told.etaMs,
    gates: view.live === undefined ? told.gates : told.gates.map(inOwnWords),
    refusals: refusalsOf(told),
    unblock: told.cure === null ? told.unblock : ownUnblock(told.cure),
  };
}

function anonymous(view: RequestView): RequestView {
  const nodeId = view.nodeId === '' ? '' : SOME_NODE;
  const { facts } = view;
  if (facts === undefined) return { ...view, nodeId };
  const failures = facts.failures.map((failure) => ({ ...failure, nodeId: SOME_NODE }));
  return { ...view, nodeId, facts: { ...facts, failures } };
}

function ownUnblock(cure: Cure): string {
  const inMs = 'inMs' in cure && cure.inMs !== undefined && cure.inMs > 0 ? `, in about ${cure.inMs} ms` : '';
  return `${OWN_UNBLOCK[cure.kind]}${inMs}.`;
}

function inOwnWords(gate: ExplainedRequest['gates'][number]): ExplainedRequest['gates'][number] {
  return { ...gate, detail: OWN_WORDS[gate.gate] ?? 'It waits' };
}

/** How many nodes refuse it for which reason; a node may have several. */
function refusalsOf({ nodes }: ExplainedRequest): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const node of nodes) {
    // Where it ran is in `node` and `failures`.
    if (node.attempt !== undefined) continue;
    for (const reason of node.reasons) counts[reason] = (counts[reason] ?? 0) + 1;
  }
  return counts;
}

export function ownUsage(gateway: Gateway, tenant: string): unknown {
  const limits = gateway.limitsOf(tenant);
  return { tenant, ...gateway.usageOf(tenant), limits: limits === undefined ? null : wireLimits(limits) };
}

function wireLimits({ requests, tokens }: LimitsView): unknown {
  return {
    ...(requests === undefined ? {} : { requests: wireLimit(requests) }),
    ...(tokens === undefined ? {} : { tokens: wireLimit(tokens) }),
  };
}

function wireLimit({ limit, remaining, resetUs }: LimitView): unknown {
  return { limit, remaining, resetMs: Math.ceil(resetUs / US_PER_MS) };
}
