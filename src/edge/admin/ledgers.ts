/** The ledgers as the admin plane tells them; see docs/concepts/ledgers.md. */
import { US_PER_MS, US_PER_S } from '../../base/units.ts';
import type { FailureCause, LedgersView } from '../../core/ledgers/index.ts';
import type { Gateway } from '../../runtime/contract.ts';
import { sendJson } from './reply.ts';
import type { Route } from './route.ts';

export function ledgersRoute(gateway: Gateway, wallMs: () => number): Route {
  return {
    scope: 'admin',
    methods: {
      GET: ({ res }) =>
        sendJson(
          res,
          200,
          wireLedgers(gateway.ledgers(), {
            wallMs: wallMs(),
            idOf: (taskId) => gateway.publicId(taskId),
            causes: gateway.failureCauses(),
          }),
        ),
    },
  };
}

interface Surroundings {
  readonly wallMs: number;
  idOf(taskId: number): string;
  readonly causes: readonly FailureCause[];
}

function wireLedgers(
  { now, refusals, eta, work }: LedgersView,
  { wallMs, idOf, causes }: Surroundings,
): unknown {
  const at = (instant: number): number => Math.round(wallMs + (instant - now) / US_PER_MS);
  return {
    refusals: {
      classes: refusals.classes.map(({ className, byReason, ...counts }) => ({
        class: className,
        ...counts,
        byReason: Object.fromEntries(byReason.map(({ reason, refused }) => [reason, refused])),
      })),
      examples: refusals.examples.map((example) => ({
        id: idOf(example.taskId),
        class: example.className,
        model: example.model,
        reason: example.reason,
        node: example.nodeId,
        refusedAt: at(example.refusedAt),
        couldStartAt: at(example.startAt),
        couldBeDoneAt: at(example.doneAt),
        deadlineAt: at(example.deadlineAt),
      })),
    },
    eta: {
      classes: eta.classes.map(({ className, admission, dispatch }) => ({
        class: className,
        admission,
        dispatch,
      })),
      hints: eta.hints,
    },
    work: {
      usefulSeconds: work.usefulUs / US_PER_S,
      wastedSeconds: work.wastedUs / US_PER_S,
      wastedRatio: work.wastedRatio,
      wastedByCause: Object.fromEntries(
        Object.entries(work.byCause).map(([cause, workUs]) => [cause, workUs / US_PER_S]),
      ),
    },
    failures: causes.map(({ failure, status, pattern, count, node, onNode, nodes, firstAt, lastAt }) => ({
      failure,
      status: status === 0 ? null : status,
      pattern,
      count,
      nodes,
      node,
      onNode,
      firstAt: at(firstAt),
      lastAt: at(lastAt),
    })),
  };
}
