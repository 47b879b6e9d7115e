/**
 * What a journal tells of a run, for playing it under another policy: who came when with what, who hung up, what operators
 * did, how long each request took on the node where it ran, and what became of it. Instants count from the journal's start.
 */
import type { DurationUs, MonoUs, NodeId, Rate, TaskId, WallMs } from '../../base/units.ts';
import type { SchedulerConfig } from '../../core/config/types.ts';
import { DECISION, type Decision, JournalDecoder, type JournalEntry } from '../../core/journal/index.ts';
import type { TaskSpec } from '../../core/request/task.ts';
import type { NodeMemory, NodeSpec, SchedulerEvent } from '../../core/scheduler/events.ts';
import { createScheduler, SILENT_SINK } from '../../core/scheduler/index.ts';
import type { ReplayLine } from './replay.ts';

export interface RecordedNode {
  /** As it was registered last. */
  readonly spec: NodeSpec;
  readonly memory: NodeMemory | undefined;
  /** When it was registered first. */
  readonly from: MonoUs;
  /** Most tasks that it had at once. */
  readonly inflightMax: number;
  /** Learned by the end of the run, by model; '' for all. */
  readonly rates: ReadonlyMap<string, Rate>;
}

export interface RecordedRequest {
  readonly task: TaskSpec;
  readonly at: MonoUs;
  /** The client hung up; absent where it did not. */
  cancelledAt?: MonoUs;
  end: string;
  /** Of a bad end; '' of another. */
  reason: string;
  endedAt: MonoUs;
  firstByteAt: MonoUs;
  /** First given to a node; -1 where it never was. */
  assignedAt: MonoUs;
}

/** Time on a node, from assignment: to the first byte (0 where none was told), and to the end. */
export interface RecordedService {
  readonly firstByteUs: DurationUs;
  readonly wholeUs: DurationUs;
}

export interface RecordedRun {
  readonly config: SchedulerConfig;
  readonly spanUs: DurationUs;
  /** When the journal began. */
  readonly wallMs: WallMs;
  readonly nodes: readonly RecordedNode[];
  readonly requests: readonly RecordedRequest[];
  /** Cordons, drains and removals. */
  readonly changes: readonly { readonly at: MonoUs; readonly event: SchedulerEvent }[];
  /** By task and node. */
  readonly services: ReadonlyMap<string, RecordedService>;
}

export function serviceKey(taskId: TaskId, nodeId: NodeId): string {
  return `${taskId} ${nodeId}`;
}

/** Undefined where the lines do not begin as a journal does, from its start. */
export async function readRun(
  lines: AsyncIterable<ReplayLine> | Iterable<ReplayLine>,
): Promise<RecordedRun | undefined> {
  const reader = new RunReader();
  for await (const line of lines) if (line.kind === 'line') reader.take(line.text ?? '');
  return reader.run();
}

interface Attempt {
  readonly nodeId: NodeId;
  readonly at: MonoUs;
  firstByteAt: MonoUs;
}

interface NodeNotes {
  spec: NodeSpec;
  memory: NodeMemory | undefined;
  readonly from: MonoUs;
  inflight: number;
  inflightMax: number;
}

class RunReader {
  readonly #decoder = new JournalDecoder(() => '');
  readonly #requests = new Map<TaskId, RecordedRequest>();
  readonly #attempts = new Map<TaskId, Attempt>();
  readonly #nodes = new Map<NodeId, NodeNotes>();
  readonly #changes: { at: MonoUs; event: SchedulerEvent }[] = [];
  readonly #services = new Map<string, RecordedService>();
  #config: SchedulerConfig | undefined;
  #scheduler: ReturnType<typeof createScheduler> | undefined;
  #base: MonoUs = 0;
  #wallMs: WallMs = 0;
  #now: MonoUs = 0;

  take(line: string): void {
    const entry = this.#decoder.decode(line);
    switch (entry.kind) {
      case 'head':
        return this.#begin(entry);
      case 'event':
        this.#now = entry.at - this.#base;
        this.#scheduler?.apply(entry.event, entry.at, SILENT_SINK);
        return this.#event(entry.event);
      case 'learn':
        return this.#scheduler?.learn(entry.model, entry.shape, entry.usage);
      case 'decision':
        return this.#decision(entry.decision);
      default:
    }
  }

  run(): RecordedRun | undefined {
    if (this.#config === undefined) return undefined;
    const views = this.#scheduler?.nodes(this.#now + this.#base) ?? [];
    const rates = new Map(
      views.map((view) => [
        view.id,
        new Map(view.rates.filter((row) => row.observations > 0).map((row) => [row.model, row.rate])),
      ]),
    );
    return {
      config: this.#config,
      spanUs: this.#now - 0,
      wallMs: this.#wallMs,
      nodes: [...this.#nodes].map(([id, { inflight: _, ...node }]) => ({
        ...node,
        rates: rates.get(id) ?? new Map(),
      })),
      requests: [...this.#requests.values()],
      changes: this.#changes,
      services: this.#services,
    };
  }

  #begin({ head }: Extract<JournalEntry, { kind: 'head' }>): void {
    if (this.#config !== undefined || head.segment > 1) return;
    this.#config = head.config;
    this.#base = head.at;
    this.#wallMs = head.wallMs;
    this.#scheduler = createScheduler(head.config);
  }

  #event(event: SchedulerEvent): void {
    switch (event.kind) {
      case 'submit': {
        const deadlineAt = event.task.deadlineAt - this.#base;
        const task = { ...event.task, fingerprint: '', deadlineAt };
        this.#requests.set(task.id, {
          task,
          at: this.#now,
          end: '',
          reason: '',
          endedAt: -1,
          firstByteAt: -1,
          assignedAt: -1,
        });
        return;
      }
      case 'cancel': {
        const request = this.#requests.get(event.taskId);
        if (request !== undefined) request.cancelledAt = this.#now;
        return;
      }
      case 'attempt-first-byte':
        return this.#firstByte(event.taskId);
      case 'attempt-ended':
        return this.#attemptEnded(event.taskId, event.result.kind === 'ok');
      case 'node-registered':
        return this.#registered(event.node, event.memory);
      case 'node-cordoned':
      case 'node-draining':
      case 'node-removed':
        this.#changes.push({ at: this.#now, event });
        return;
      default:
    }
  }

  #registered(spec: NodeSpec, memory: NodeMemory | undefined): void {
    const known = this.#nodes.get(spec.id);
    if (known === undefined)
      this.#nodes.set(spec.id, { spec, memory, from: this.#now, inflight: 0, inflightMax: 0 });
    else known.spec = spec;
  }

  #firstByte(taskId: TaskId): void {
    const attempt = this.#attempts.get(taskId);
    const request = this.#requests.get(taskId);
    if (attempt !== undefined) attempt.firstByteAt = this.#now;
    if (request !== undefined) request.firstByteAt = this.#now;
  }

  #attemptEnded(taskId: TaskId, isWhole: boolean): void {
    const attempt = this.#attempts.get(taskId);
    if (attempt === undefined) return;
    this.#attempts.delete(taskId);
    const node = this.#nodes.get(attempt.nodeId);
    if (node !== undefined) node.inflight -= 1;
    if (!isWhole) return;
    const { nodeId, at, firstByteAt } = attempt;
    const firstByteUs = firstByteAt < 0 ? 0 : firstByteAt - at;
    this.#services.set(serviceKey(taskId, nodeId), { firstByteUs, wholeUs: this.#now - at });
  }

  #decision({ code, taskId, nodeId, what }: Decision): void {
    if (code === DECISION.assign) {
      this.#attempts.set(taskId, { nodeId, at: this.#now, firstByteAt: -1 });
      const request = this.#requests.get(taskId);
      if (request !== undefined && request.assignedAt < 0) request.assignedAt = this.#now;
      const node = this.#nodes.get(nodeId);
      if (node === undefined) return;
      node.inflight += 1;
      node.inflightMax = Math.max(node.inflightMax, node.inflight);
    } else if (code === DECISION.outcome) {
      const request = this.#requests.get(taskId);
      if (request === undefined) return;
      const [end = '', reason = ''] = what.split(' ', 2);
      request.end = end;
      request.reason = reason;
      request.endedAt = this.#now;
    }
  }
}
