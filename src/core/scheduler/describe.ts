/** Views of the state for people: nodes, queue, dump. Computed on demand. */
import { invariant } from '../../base/assert.ts';
import { type DurationMs, type MonoUs, msToUs } from '../../base/units.ts';
import { laneCapacity } from '../admission/feasibility.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { NodeGroup } from '../placement/bulkhead.ts';
import { totalOf } from '../admission/bounds.ts';
import { ledgersView } from '../ledgers/view.ts';
import { type LadderView, ladderView } from '../overload/view.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { TaskSpec } from '../request/task.ts';
import type { Scheduler } from './contract.ts';
import type { NodeMemory } from './events.ts';
import { breakerMemory, breakersOf } from './breakers.ts';
import { explainTask } from './explain.ts';
import { limitView } from './concurrency.ts';
import { stateOf } from './marks.ts';
import { attemptLimits } from './patience.ts';
import { takeSample } from './sample.ts';
import { type SchedulerState, workModelOf } from './state.ts';
import type { Accounts, NodeView, QueueGroupView, QueueView } from './views.ts';

/** Tenants shown by name; the rest are in the totals. */
const TENANTS_SHOWN_MAX = 100;

/** The reading half of the scheduler's contract. */
export function viewsOf(state: SchedulerState): Omit<Scheduler, 'apply' | 'nextWakeAt'> {
  return {
    estimate: (model, shape) => workModelOf(state, model).estimate(shape),
    keepsPrompts: (model) => state.fleet.keepsPrompts(model, state.context.prefixes),
    learn: (model, shape, usage) => workModelOf(state, model).learn(shape, usage),
    classDeadlineUs(className, stream) {
      const record = state.classByName.get(className) ?? state.classByName.get(state.config.defaultClass);
      invariant(record !== undefined, 'The default class is configured');
      return msToUs(stream ? record.config.firstByteMs : record.config.completionMs);
    },
    watch(watch) {
      state.watch = watch;
      state.ladder.onStage = watch === null ? null : (model, stage) => watch.ladderStage(model, stage);
    },
    accounts: () => accountsOf(state),
    gates: () => state.gates.counts(),
    limitsOf: (tenant, now) => state.limits.viewOf(tenant, now),
    limits: (now) => state.limits.rows(now),
    ladder: (now) => ladderOf(state, now),
    retryBudget: (now) => state.budget.leftRatio(now, state.config.retry),
    preemptions: () => state.preemptions.counts,
    ledgers: (now) => ledgersView(state.ledgers, now),
    nodes: (now) => [...state.fleet.nodes.values()].map((node) => nodeView(state, node, now)),
    node(nodeId, now) {
      const node = state.fleet.nodes.get(nodeId);
      return node === undefined ? undefined : nodeView(state, node, now);
    },
    nodeMemory(nodeId, now) {
      const node = state.fleet.nodes.get(nodeId);
      return node === undefined ? undefined : memoryOf(state, node, now);
    },
    models: () => state.fleet.models(),
    queue: (now) => queueView(state, now),
    waiting(max) {
      const found: TaskSpec[] = [];
      for (const task of state.tasks.inOrder()) {
        if (found.length === max) break;
        if (task.lane !== null) found.push(task.spec);
      }
      return found;
    },
    attemptLimits: (taskId) => attemptLimits(state, taskId),
    explain(taskId, now) {
      const task = state.tasks.get(taskId);
      return task === undefined || task.isSettled ? undefined : explainTask(state, task, now);
    },
    sample: (now) => takeSample(state, now),
    dump: (now) => dumpOf(state, now),
  };
}

function ladderOf(state: SchedulerState, now: MonoUs): LadderView {
  return ladderView(state.ladder, state.config.gates.ladder, state.config.ladder, now);
}

function accountsOf(state: SchedulerState): Accounts {
  return { ...state.counts, queued: totalOf(state.classes).tasks };
}

function nodeView(state: SchedulerState, node: NodeRecord, now: MonoUs): NodeView {
  return {
    id: node.spec.id,
    state: stateOf(node, now),
    spec: node.spec,
    health: round(node.health, 3),
    rates: node.rates(),
    inflight: node.running.length,
    slots: node.slotsMax(state.config),
    ...limitView(state, node),
    drainMs: round(node.drainUs(now) / 1_000, 1),
    cordoned: node.cordoned,
    draining: node.draining,
    ejectedForMs: Math.max(0, node.ejectedUntil - now) / 1_000,
    ejections: node.ejections,
    breakers: breakersOf(state, node, now),
  };
}

function memoryOf(state: SchedulerState, node: NodeRecord, now: MonoUs): NodeMemory {
  const failures = node.failures.memory(now);
  const breakers = breakerMemory(state, node, now);
  const strikes = state.poison.strikesOf(node.spec.id, node.struckBy, now);
  return {
    cordoned: node.cordoned,
    draining: node.draining,
    ejectedForUs: Math.max(0, node.ejectedUntil - now),
    ejections: node.ejections,
    ...(failures === undefined ? {} : { failures }),
    ...(breakers.length === 0 ? {} : { breakers }),
    ...(strikes.length === 0 ? {} : { strikes }),
    rates: node.rates(),
  };
}

function groupView({ config, slots, free, kept, shares }: NodeGroup): unknown {
  return {
    name: config.name,
    slots,
    free,
    kept,
    shares: shares.map(({ config: { holder, name }, held, slotsMin, slotsMax }) => ({
      holder,
      name,
      held,
      slotsMin,
      slotsMax,
    })),
  };
}

/** From counters and heads: O(models + flows), whatever the number of queued tasks. */
function queueView(state: SchedulerState, now: MonoUs): QueueView {
  const byModel = new Map<string, Group>();
  const byClass = new Map<string, Group>();
  const byClassAndModel: Record<string, Record<string, QueueGroupView>> = {};
  let oldestWaitMs = 0;
  for (const record of state.classes) {
    const { tasks, workUs } = record.queued;
    const group: Group = { depth: tasks, workMs: workUs / 1_000, oldestWaitMs: 0 };
    const ofClass = new Map<string, Group>();
    for (const [model, queue] of record.models) {
      if (queue.tasks === 0) continue;
      const part = { depth: queue.tasks, workMs: queue.workUs / 1_000, oldestWaitMs: waitMs(queue, now) };
      group.oldestWaitMs = Math.max(group.oldestWaitMs, part.oldestWaitMs);
      ofClass.set(model, part);
      addGroup(byModel, model, part);
    }
    byClass.set(record.config.name, group);
    byClassAndModel[record.config.name] = asRecord(ofClass);
    oldestWaitMs = Math.max(oldestWaitMs, group.oldestWaitMs);
  }
  const total = totalOf(state.classes);
  return {
    depth: total.tasks,
    workMs: round(total.workUs / 1_000, 1),
    oldestWaitMs: round(oldestWaitMs, 1),
    bytes: total.bytes,
    running: state.counts.running,
    byClass: asRecord(byClass),
    byTenant: asRecord(tenantGroups(state, now)),
    byModel: asRecord(byModel),
    byClassAndModel,
  };
}

/**
 * Of each class the first flows of its heap by queued work, until there are as many tenants as are shown. Flows that have
 * nothing queued any more stand among them: O(flows) at worst, when few of many tenants still wait.
 */
function tenantGroups(state: SchedulerState, now: MonoUs): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>();
  for (const { victims } of state.classes) {
    for (const { tenant, tenantQueued, queuedTasks } of victims) {
      if (groups.size === TENANTS_SHOWN_MAX) break;
      if (queuedTasks === 0 || groups.has(tenant)) continue;
      const { tasks, workUs } = tenantQueued;
      groups.set(tenant, {
        depth: tasks,
        workMs: workUs / 1_000,
        oldestWaitMs: tenantWaitMs(state, tenant, now),
      });
    }
  }
  return groups;
}

function tenantWaitMs(state: SchedulerState, tenant: string, now: MonoUs): DurationMs {
  let longest = 0;
  for (const { flows } of state.classes) {
    const flow = flows.get(tenant);
    if (flow !== undefined) longest = Math.max(longest, waitMs(flow, now));
  }
  return longest;
}

function waitMs({ oldest }: { readonly oldest: TaskRecord | null }, now: MonoUs): DurationMs {
  return oldest === null ? 0 : (now - oldest.submittedAt) / 1_000;
}

/** The whole state without prompts, keys or credentials. */
function dumpOf(state: SchedulerState, now: MonoUs): unknown {
  return {
    now,
    accounts: accountsOf(state),
    gates: state.gates.counts(),
    permits: [...state.fleet.nodes.values()].reduce((sum, node) => sum + node.running.length, 0),
    margin: state.margin.usualWithin(0, Number.POSITIVE_INFINITY),
    sureMargin: state.margin.sureWithin(0, Number.POSITIVE_INFINITY),
    limits: state.limits.held(),
    retryMarks: state.retryMarks.size,
    keptRatio: round(state.retryMarks.keptRatio, 3),
    retryBudget: round(state.budget.leftRatio(now, state.config.retry), 4),
    preemptions: state.preemptions.counts,
    ledgers: ledgersView(state.ledgers, now),
    poisonMarks: state.poison.marked,
    poisonStrikes: state.poison.size,
    modelBreakers: [...state.modelBreakers.values()].map(({ model, breaker, failing, cause }) => ({
      model,
      state: breaker.state(now),
      openForUs: Math.max(0, breaker.openUntil - now),
      opens: breaker.opens,
      probeForUs: Math.max(0, breaker.probeUntil - now),
      failingNodes: failing.size,
      cause,
    })),
    shedClasses: state.shedClasses,
    ladder: ladderOf(state, now),
    classes: state.classes.map((record) => ({
      name: record.config.name,
      share: record.weight,
      served: record.counters.total,
      queued: record.queued,
      flows: [...record.flows.values()].slice(0, TENANTS_SHOWN_MAX).map((flow) => ({
        tenant: flow.tenant,
        weight: flow.weight,
        served: flow.counters.total,
        queued: flow.queued,
        running: flow.running,
      })),
    })),
    lanes: [...state.fleet.lanes.values()].map((lane) => ({
      key: lane.key,
      pools: lane.pools.map((pool) => pool.key),
      tasks: lane.tasks,
      workUs: lane.workUs,
      capacity: laneCapacity(lane),
      isHeld: state.heldLanes.has(lane),
      reservations: lane.reservations,
    })),
    groups: state.fleet.groups.map(groupView),
    nodes: [...state.fleet.nodes.values()].map((node) => ({
      ...nodeView(state, node, now),
      running: [...node.running].map((task) => task.id),
      reservedUs: node.reservedUs,
    })),
  };
}

interface Group {
  depth: number;
  workMs: DurationMs;
  oldestWaitMs: DurationMs;
}

function addGroup(groups: Map<string, Group>, name: string, part: Group): void {
  const group = groups.get(name) ?? { depth: 0, workMs: 0, oldestWaitMs: 0 };
  group.depth += part.depth;
  group.workMs += part.workMs;
  group.oldestWaitMs = Math.max(group.oldestWaitMs, part.oldestWaitMs);
  groups.set(name, group);
}

function asRecord(groups: ReadonlyMap<string, Group>): Record<string, QueueGroupView> {
  return Object.fromEntries(
    [...groups].map(([name, group]) => [
      name,
      { depth: group.depth, workMs: round(group.workMs, 1), oldestWaitMs: round(group.oldestWaitMs, 1) },
    ]),
  );
}

function round(value: number, digits: number): number {
  return Number.isFinite(value) ? Number(value.toFixed(digits)) : 0;
}
