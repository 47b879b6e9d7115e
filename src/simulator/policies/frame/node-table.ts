/** Nodes of a baseline: who is registered, who is open, and who could take a task. */
import { type DurationUs, type MonoUs, msToUs, type NodeId } from '../../../base/units.ts';
import type { SchedulerConfig } from '../../../core/config/types.ts';
import type { TaskSpec } from '../../../core/request/task.ts';
import type { EngineReading, NodeMemory, NodeSpec, SchedulerEvent } from '../../../core/scheduler/events.ts';
import { saneMemory, saneNode } from '../../../core/scheduler/index.ts';
import { BaselineNode } from './baseline-node.ts';
import type { BaselineTask } from './baseline-task.ts';

type Registration = Extract<SchedulerEvent, { kind: 'node-registered' }>;
type NodeNews = Extract<SchedulerEvent, { nodeId: NodeId }>;

export class NodeTable {
  /** In order of registration. */
  readonly nodes: BaselineNode[] = [];
  /** When the first node in cooldown opens, or earlier. */
  opensAt: MonoUs = Number.POSITIVE_INFINITY;
  readonly #byId: Map<NodeId, BaselineNode> = new Map();
  #order = 0;

  get(nodeId: NodeId): BaselineNode | undefined {
    return this.#byId.get(nodeId);
  }

  describe(config: SchedulerConfig): void {
    for (const node of this.nodes) node.describe(node.spec, config);
  }

  /** `isChanged`: it was known, and offers something else now. */
  register(
    { node: given, memory }: Registration,
    config: SchedulerConfig,
  ): { readonly node: BaselineNode; readonly isNew: boolean; readonly isChanged: boolean } {
    const spec = saneNode(given);
    const sane = memory === undefined ? undefined : saneMemory(memory, msToUs(60_000));
    const known = this.#byId.get(spec.id);
    const isChanged = known !== undefined && !isSame(known.spec, spec);
    const node = known ?? new BaselineNode(spec, this.#order++, sane?.rates ?? []);
    node.describe(spec, config);
    node.isAlive = true;
    node.cordoned = sane?.cordoned ?? node.cordoned;
    node.draining = sane?.draining ?? node.draining;
    if (known === undefined) {
      this.#byId.set(spec.id, node);
      this.nodes.push(node);
    }
    return { node, isNew: known === undefined, isChanged };
  }

  remove(node: BaselineNode): void {
    node.isGone = true;
    node.isAlive = false;
    this.#byId.delete(node.spec.id);
    this.nodes.splice(this.nodes.indexOf(node), 1);
  }

  /** Takes note of what is said of a node. */
  note(node: BaselineNode, event: NodeNews, now: MonoUs): void {
    if (event.kind === 'node-reading') {
      node.reading = saneReading(event.reading);
      node.readAt = now;
    } else if (event.kind === 'node-cordoned') node.cordoned = event.cordoned;
    else if (event.kind === 'node-draining') node.draining = event.draining;
    else if (event.kind === 'node-heartbeat') node.isAlive = true;
    else if (event.kind === 'node-probed') node.isAlive = event.alive;
  }

  coolDown(node: BaselineNode, cooldownUs: DurationUs, now: MonoUs): void {
    node.failures = 0;
    node.closedUntil = now + cooldownUs;
    this.opensAt = Math.min(this.opensAt, node.closedUntil);
  }

  /** Nodes whose cooldown is over. */
  takeOpened(now: MonoUs): readonly BaselineNode[] {
    const opened: BaselineNode[] = [];
    this.opensAt = Number.POSITIVE_INFINITY;
    for (const node of this.nodes) {
      if (node.closedUntil > now) this.opensAt = Math.min(this.opensAt, node.closedUntil);
      else if (node.closedUntil > 0) {
        node.closedUntil = 0;
        opened.push(node);
      }
    }
    return opened;
  }

  /** Whether any node could do it, open or not. */
  anyFits(spec: TaskSpec): boolean {
    return this.nodes.some((node) => node.fits(spec));
  }

  /** Whether any node could do it that has not failed it. */
  anyLeft(task: BaselineTask): boolean {
    return this.nodes.some((node) => node.fits(task.spec) && !task.tried.includes(node));
  }

  candidates(task: BaselineTask, now: MonoUs): readonly BaselineNode[] {
    const fitting = this.nodes.filter((node) => node.fits(task.spec) && !task.tried.includes(node));
    const open = fitting.filter((node) => node.isOpen(now));
    return open.length > 0 ? open : fitting.filter(isOpenButCooling);
  }

  mayTake(node: BaselineNode, task: BaselineTask, now: MonoUs): boolean {
    if (!node.fits(task.spec) || task.tried.includes(node)) return false;
    return node.isOpen(now) || (isOpenButCooling(node) && this.candidates(task, now).includes(node));
  }
}

function isOpenButCooling(node: BaselineNode): boolean {
  return node.isAlive && !node.cordoned && !node.draining;
}

function isSame(one: NodeSpec, other: NodeSpec): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** What is no number is unknown. */
function saneReading({ waiting, running, cacheUse }: EngineReading): EngineReading {
  return {
    ...(isCount(waiting) ? { waiting } : {}),
    ...(isCount(running) ? { running } : {}),
    ...(isCount(cacheUse) ? { cacheUse } : {}),
  };
}

function isCount(value: number | undefined): value is number {
  return value !== undefined && value >= 0 && value < Number.POSITIVE_INFINITY;
}

/** What its registration said of its rates, as a registry keeps it. */
export function memoryOf({ cordoned, draining, pace }: BaselineNode): NodeMemory {
  return { cordoned, draining, ejectedForUs: 0, ejections: 0, rates: pace.remembered };
}
