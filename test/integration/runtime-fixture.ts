/**
 * What tests of the runtime stand on: a scheduler that is as simple as the contract allows (first come, first
 * served, first node with room), a clock moved by hand, a transport that only notes what it is told.
 */
import type { MonoUs, NodeId, TaskId } from '../../src/base/units.ts';
import { resolveConfig } from '../../src/core/config/index.ts';
import type { GatewayConfig, NodeConfig } from '../../src/core/config/types.ts';
import { EtaLedger } from '../../src/core/ledgers/eta.ts';
import { RefusalLedger } from '../../src/core/ledgers/refusals.ts';
import { ledgersView } from '../../src/core/ledgers/view.ts';
import { WasteLedger } from '../../src/core/ledgers/waste.ts';
import { NO_NEEDS } from '../../src/core/request/needs.ts';
import { NO_RETRY, type Outcome } from '../../src/core/request/outcome.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { Scheduler } from '../../src/core/scheduler/contract.ts';
import type { EffectSink } from '../../src/core/scheduler/effects.ts';
import type { NodeMemory, NodeSpec, SchedulerEvent } from '../../src/core/scheduler/events.ts';
import type { NodeView } from '../../src/core/scheduler/views.ts';
import type { EngineDriver, EngineProbe } from '../../src/ports/engine-driver.ts';
import type { NodeEndpoint, NodeTransport } from '../../src/ports/node-transport.ts';
import type { RuntimeClock } from '../../src/runtime/clock.ts';
import type { Assignment, SubmitSpec, TaskListener } from '../../src/runtime/contract.ts';
import { sampleAt, US_PER_S } from '../support/samples.ts';

/** It books nothing. */
const EMPTY = { refusals: new RefusalLedger(), eta: new EtaLedger(), waste: new WasteLedger() };

interface PlainNode {
  spec: NodeSpec;
  memory: NodeMemory;
  state: NodeView['state'];
  inflight: number;
}

interface PlainTask {
  readonly spec: TaskSpec;
  nodeId: NodeId;
  attempts: number;
  cancelled: boolean;
}

const FRESH: NodeMemory = { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0, rates: [] };

export interface PlainScheduler extends Scheduler {
  readonly seen: SchedulerEvent[];
  /** Set by a test to ask for a tick. */
  wakeAt: MonoUs;
  /** True while an event is being applied: effects must not come back inside. */
  readonly applying: boolean;
}

/** First come, first served; one retry for a retryable failure; no health. */
export function createPlainScheduler(): PlainScheduler {
  const nodes = new Map<NodeId, PlainNode>();
  const tasks = new Map<TaskId, PlainTask>();
  const queue: TaskId[] = [];
  const seen: SchedulerEvent[] = [];
  let down = false;
  let applying = false;

  function end(out: EffectSink, task: PlainTask, outcome: Outcome): void {
    tasks.delete(task.spec.id);
    out.outcome(task.spec.id, outcome);
  }

  function pump(out: EffectSink): void {
    for (let i = 0; i < queue.length; ) {
      const task = tasks.get(queue[i] as TaskId) as PlainTask;
      const node = [...nodes.values()].find(
        (one) =>
          !one.memory.cordoned &&
          !one.memory.draining &&
          one.memory.ejectedForUs === 0 &&
          one.inflight < Math.max(1, one.spec.slots) &&
          one.spec.models.some((offer) => offer.model === task.spec.model),
      );
      if (node === undefined) {
        i += 1;
        continue;
      }
      queue.splice(i, 1);
      node.inflight += 1;
      task.nodeId = node.spec.id;
      task.attempts += 1;
      out.assign(task.spec.id, node.spec.id, task.attempts);
    }
  }

  function submit(task: TaskSpec, out: EffectSink): void {
    if (down) {
      out.outcome(task.id, {
        kind: 'rejected',
        reason: 'shutting-down',
        hint: { retryable: true, afterUs: 1_000_000 },
      });
      return;
    }
    tasks.set(task.id, { spec: task, nodeId: '', attempts: 0, cancelled: false });
    out.admitted(task.id);
    queue.push(task.id);
  }

  function cancel(taskId: TaskId, out: EffectSink): void {
    const task = tasks.get(taskId);
    if (task === undefined) return;
    const waiting = queue.indexOf(taskId);
    if (waiting >= 0) {
      queue.splice(waiting, 1);
      end(out, task, { kind: 'cancelled' });
    } else {
      task.cancelled = true;
      out.abort(taskId, task.nodeId);
    }
  }

  function ended(event: Extract<SchedulerEvent, { kind: 'attempt-ended' }>, out: EffectSink): void {
    const task = tasks.get(event.taskId);
    if (task === undefined) throw new Error(`attempt-ended for a task that does not run: ${event.taskId}`);
    const node = nodes.get(task.nodeId);
    if (node !== undefined) {
      node.inflight -= 1;
      if (node.memory.draining && node.inflight === 0) out.nodeDrained(node.spec.id);
    }
    const { result } = event;
    if (task.cancelled || result.kind === 'aborted') end(out, task, { kind: 'cancelled' });
    else if (result.kind === 'ok') end(out, task, { kind: 'served' });
    else if (result.kind === 'failed' && result.retryable && task.attempts < 2) queue.push(task.spec.id);
    else end(out, task, { kind: 'failed', reason: 'node-failed', hint: NO_RETRY });
  }

  function remember(nodeId: NodeId, change: Partial<NodeMemory>): void {
    const node = nodes.get(nodeId);
    if (node !== undefined) node.memory = { ...node.memory, ...change };
  }

  function handle(event: SchedulerEvent, out: EffectSink): void {
    switch (event.kind) {
      case 'submit':
        return submit(event.task, out);
      case 'cancel':
        return cancel(event.taskId, out);
      case 'attempt-ended':
        return ended(event, out);
      case 'node-registered': {
        const known = nodes.get(event.node.id);
        if (known !== undefined) known.spec = event.node;
        else
          nodes.set(event.node.id, {
            spec: event.node,
            memory: event.memory ?? FRESH,
            state: 'unverified',
            inflight: 0,
          });
        return;
      }
      case 'node-removed':
        nodes.delete(event.nodeId);
        return;
      case 'node-probed': {
        const node = nodes.get(event.nodeId);
        const state = event.alive ? 'active' : 'suspect';
        if (node === undefined || node.state === state) return;
        node.state = state;
        return out.nodeState(event.nodeId, state);
      }
      case 'node-cordoned':
        return remember(event.nodeId, { cordoned: event.cordoned });
      case 'node-draining':
        remember(event.nodeId, { draining: event.draining });
        if (event.draining && nodes.get(event.nodeId)?.inflight === 0) out.nodeDrained(event.nodeId);
        return;
      case 'shutdown':
        down = true;
        for (const id of queue.splice(0)) {
          const hint = { retryable: true, afterUs: 1_000_000 };
          end(out, tasks.get(id) as PlainTask, { kind: 'evicted', reason: 'shutting-down', hint });
        }
        return;
      default:
        return;
    }
  }

  function view(node: PlainNode): NodeView {
    return {
      id: node.spec.id,
      state: node.memory.cordoned ? 'cordoned' : node.memory.ejectedForUs > 0 ? 'ejected' : node.state,
      spec: node.spec,
      health: 1,
      rates: node.memory.rates,
      inflight: node.inflight,
      slots: node.spec.slots,
      drainMs: 0,
      cordoned: node.memory.cordoned,
      draining: node.memory.draining,
      ejectedForMs: node.memory.ejectedForUs / 1000,
      ejections: node.memory.ejections,
      breakers: [],
    };
  }

  const group = { depth: 0, workMs: 0, oldestWaitMs: 0 };
  const plain: PlainScheduler = {
    ladder: () => ({ mode: 'off', stage: 0, override: null, models: [], modelsTotal: 0 }),
    seen,
    wakeAt: Number.POSITIVE_INFINITY,
    get applying() {
      return applying;
    },
    apply(event, _now, out) {
      if (applying) throw new Error('apply within apply');
      applying = true;
      seen.push(event);
      if (event.kind === 'tick') plain.wakeAt = Number.POSITIVE_INFINITY;
      handle(event, out);
      pump(out);
      applying = false;
    },
    nextWakeAt: () => plain.wakeAt,
    estimate: () => ({ workUs: 1, firstByteWorkUs: 1, contextTokens: 0, tokens: 0, promptTokens: 0 }),
    keepsPrompts: () => false,
    learn() {},
    watch() {},
    waiting: () => [],
    classDeadlineUs: () => 1_000_000,
    accounts: () => ({
      arrived: 0,
      served: 0,
      degraded: 0,
      rejected: 0,
      evicted: 0,
      failed: 0,
      cancelled: 0,
      queued: queue.length,
      running: tasks.size - queue.length,
    }),
    retryBudget: () => 1,
    preemptions: () => ({ queued: 0, ended: 0, late: 0 }),
    sample: (now) => sampleAt(now / US_PER_S),
    ledgers: (now) => ledgersView(EMPTY, now),
    nodes: () => [...nodes.values()].map(view),
    node: (nodeId) => {
      const node = nodes.get(nodeId);
      return node === undefined ? undefined : view(node);
    },
    nodeMemory: (nodeId) => nodes.get(nodeId)?.memory,
    models: () => [],
    gates: () => [],
    limitsOf: () => undefined,
    limits: () => [],
    queue: () => ({
      ...group,
      depth: queue.length,
      bytes: 0,
      running: tasks.size - queue.length,
      byClass: {},
      byTenant: {},
      byModel: {},
      byClassAndModel: {},
    }),
    explain: (id) => {
      const task = tasks.get(id);
      if (task === undefined) return undefined;
      const state = queue.includes(id) ? 'queued' : 'running';
      return {
        id,
        state,
        nodeId: task.nodeId,
        attempts: task.attempts,
        position: 0,
        etaMs: 0,
        etaError: null,
        gates: [],
        nodes: [],
        cure: null,
        unblock: '',
      };
    },
    attemptLimits: () => ({ firstByteUs: 0, idleUs: 0 }),
    dump: () => ({ tasks: tasks.size }),
  };
  return plain;
}

export interface HandClock extends RuntimeClock {
  /** Moves time and fires what became due, in order. */
  advance(ms: number): void;
  readonly timers: number;
}

export function createHandClock(): HandClock {
  let now = 1_000_000;
  let order = 0;
  let timers: { at: number; order: number; fire: () => void }[] = [];
  return {
    nowUs: () => now,
    wallMs: () => 1_700_000_000_000 + now / 1000,
    after(delayMs, fire) {
      order += 1;
      const timer = { at: now + Math.max(0, delayMs) * 1000, order, fire };
      timers.push(timer);
      return () => {
        timers = timers.filter((one) => one !== timer);
      };
    },
    advance(ms) {
      const end = now + ms * 1000;
      for (;;) {
        const next = timers.toSorted((a, b) => a.at - b.at || a.order - b.order)[0];
        if (next === undefined || next.at > end) break;
        timers = timers.filter((one) => one !== next);
        now = Math.max(now, next.at);
        next.fire();
      }
      now = end;
    },
    get timers() {
      return timers.length;
    },
  };
}

export interface NotingTransport extends NodeTransport {
  readonly opened: Map<NodeId, NodeEndpoint>;
  readonly closed: NodeId[];
  readonly calls: string[];
}

export function createNotingTransport(calls: string[] = []): NotingTransport {
  const opened = new Map<NodeId, NodeEndpoint>();
  const closed: NodeId[] = [];
  return {
    opened,
    closed,
    calls,
    open(endpoint) {
      opened.set(endpoint.id, endpoint);
    },
    close(nodeId) {
      opened.delete(nodeId);
      closed.push(nodeId);
    },
    send() {
      throw new Error('this transport sends nothing');
    },
    async shutdown() {
      calls.push('transport.shutdown');
    },
  };
}

/** A driver whose answers the test sets. */
export function createSetDriver(
  answer: (endpoint: NodeEndpoint) => EngineProbe | Promise<EngineProbe>,
): EngineDriver {
  return {
    protocol: 'openai',
    batching: false,
    abortFreesSlot: true,
    probe: async (endpoint) => answer(endpoint),
  };
}

export const ALIVE: EngineProbe = { alive: true, ready: true, detail: 'set by the test' };
export const DEAD: EngineProbe = { alive: false, ready: false, detail: 'set by the test' };

export function nodeConfig(id: string, change: Partial<NodeConfig> = {}): NodeConfig {
  return {
    id,
    url: `http://127.0.0.1:9/${id}`,
    protocol: 'openai',
    models: [{ model: 'm' }],
    slots: 1,
    hardware: '',
    labels: {},
    headers: {},
    ...change,
  };
}

export function gatewayConfig(input: Record<string, unknown> = {}): GatewayConfig {
  const resolved = resolveConfig(input);
  if (resolved.kind !== 'config') throw new Error(JSON.stringify(resolved));
  return resolved.config;
}

export function submitSpec(model = 'm', change: Partial<SubmitSpec> = {}): SubmitSpec {
  return {
    className: 'normal',
    tenant: 'anonymous',
    model,
    needs: NO_NEEDS,
    workUs: 1_000,
    firstByteWorkUs: 1_000,
    bytes: 300,
    deadlineUs: 60_000_000,
    deadlineWished: false,
    stream: false,
    fingerprint: '',
    receivedAt: 1_000_000,
    ...change,
  };
}

export interface NotedListener extends TaskListener {
  readonly calls: string[];
  last: Assignment | undefined;
  outcome: Outcome | undefined;
}

export function notedListener(): NotedListener {
  const listener: NotedListener = {
    calls: [],
    last: undefined,
    outcome: undefined,
    assigned(assignment) {
      listener.last = assignment;
      listener.calls.push(`assigned ${assignment.nodeId} ${assignment.attempt}`);
    },
    abort() {
      listener.calls.push('abort');
    },
    finished(outcome) {
      listener.outcome = outcome;
      listener.calls.push(`finished ${outcome.kind}`);
    },
  };
  return listener;
}

/** Lets queued microtasks run. */
export async function turn(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
}
