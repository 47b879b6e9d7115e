/**
 * A model of the llm-d router's flow control and scheduling (the endpoint picker in front of a pool of model servers).
 *
 * Source: github.com/llm-d/llm-d-inference-scheduler, `pkg/epp/flowcontrol` (controller, registry) and
 * `pkg/epp/framework/plugins` (fairness, ordering, saturation detector, scorers, picker), as of May 2026.
 *
 * Modelled, per model: strict bands by class; in a band flows by tenant, in turn by count (`round-robin`) or as one queue
 * (`global-strict`, the project's default); in a flow by arrival or by deadline. At most 1 GB waits per band. The head of
 * the highest band goes out whenever the pool is not saturated, which is the mean over its servers of
 * max(waiting / 5, cache use / 0.8) below 1. It goes to the server with the best sum of scores for waiting requests, cache
 * use and running requests, each scaled to 0..1 over the pool, among those with fewer than 5 waiting; ties by chance. What a
 * server cannot run waits inside it.
 *
 * Kinder than the original: its numbers come from a page that is polled, and are ignored once they are 200 ms old; here
 * running is exact, waiting too where a node states its slots, and the rest is as old as the last reading (1 min at most). The score for running
 * requests is one of its plug-ins that its sample configuration does not name; without it (`runningWeight: 0`) an idle and a busy
 * server with nothing waiting look alike.
 *
 * Left out: prefix and adapter affinity, predicted latency, disaggregated prefill, eviction of running requests, limits on
 * bands by use, several replicas of the picker. It retries nothing and knows no failures but a probe's.
 */
import { msToUs } from '../../base/units.ts';
import type { EngineReading } from '../../core/scheduler/events.ts';
import type { BaselineNode } from './frame/baseline-node.ts';
import type { BaselineTask } from './frame/baseline-task.ts';
import type { Desk, Discipline } from './frame/discipline.ts';
import { anyOf, leastOf } from './frame/early-binding.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';
import type { TaskQueue } from './frame/lanes.ts';
import { numberOption, type OptionsOf, type OptionTable, wordOption } from './frame/options.ts';
import { keyedQueue } from './frame/task-queues.ts';

const BAND_BYTES_MAX = 1_000_000_000;
/** A reading that is older says nothing of the cache; ours come with heartbeats, not every few milliseconds. */
const READING_US_MAX = msToUs(60_000);

const OPTIONS = {
  fairness: wordOption('round-robin', ['round-robin', 'global-strict'], 'which flow of a band is next'),
  ordering: wordOption('fcfs', ['fcfs', 'edf'], 'order within a flow'),
  queueDepth: numberOption(5, [1, 1_000], 'queueDepthThreshold: waiting requests at which a server is full'),
  cacheUse: numberOption(0.8, [0.01, 1], 'kvCacheUtilThreshold'),
  queueWeight: numberOption(1, [0, 100], 'weight of the score for waiting requests'),
  cacheWeight: numberOption(1, [0, 100], 'weight of the score for the use of the cache'),
  runningWeight: numberOption(1, [0, 100], 'weight of the score for running requests'),
} as const satisfies OptionTable;

type Options = OptionsOf<typeof OPTIONS>;

interface Band {
  /** By tenant; empty ones are forgotten. */
  readonly flows: Map<string, TaskQueue>;
  /** Of the flow that was served last. */
  cursor: string;
  bytes: number;
}

interface Pool {
  readonly bands: Map<number, Band>;
  waiting: number;
}

class FlowControl implements Discipline {
  readonly #desk: Desk;
  readonly #options: Options;
  /** By model; those without waiting requests are forgotten. */
  readonly #pools: Map<string, Pool> = new Map();

  constructor(desk: Desk, options: Options) {
    this.#desk = desk;
    this.#options = options;
  }

  enter(task: BaselineTask): void {
    const { model, bytes } = task.spec;
    const pool = getOrCreate(this.#pools, model, (): Pool => ({ bands: new Map(), waiting: 0 }));
    const band = getOrCreate(pool.bands, task.rank, (): Band => ({ flows: new Map(), cursor: '', bytes: 0 }));
    if (!task.isAdmitted && band.bytes + bytes > BAND_BYTES_MAX) return this.#desk.reject(task, 'queue-full');
    const key = this.#flowOf(task);
    getOrCreate(band.flows, key, () => this.#createQueue()).push(task);
    task.lane = model;
    band.bytes += bytes;
    pool.waiting += 1;
    this.#desk.admit(task);
    this.#dispatch(model);
  }

  leave(task: BaselineTask): void {
    const pool = this.#pools.get(task.spec.model);
    const band = pool?.bands.get(task.rank);
    if (pool === undefined || band === undefined || task.lane === '') return;
    const key = this.#flowOf(task);
    const queue = band.flows.get(key) as TaskQueue;
    queue.remove(task);
    if (queue.size === 0) band.flows.delete(key);
    task.lane = '';
    band.bytes -= task.spec.bytes;
    pool.waiting -= 1;
  }

  offer(node: BaselineNode): void {
    for (const model of [...this.#pools.keys()]) if (node.kindFor(model) !== undefined) this.#dispatch(model);
  }

  *waiting(): Iterable<BaselineTask> {
    for (const pool of this.#pools.values())
      for (const band of pool.bands.values()) for (const queue of band.flows.values()) yield* queue;
  }

  #dispatch(model: string): void {
    const pool = this.#pools.get(model) as Pool;
    const { now, nodes } = this.#desk;
    const servers = nodes.filter((node) => node.kindFor(model) !== undefined && node.isOpen(now));
    while (pool.waiting > 0 && this.#saturation(servers) < 1) {
      const task = this.#next(pool);
      this.leave(task);
      const candidates = this.#desk.candidates(task);
      if (candidates.length === 0) this.#desk.evict(task, 'no-node');
      else this.#desk.start(task, this.#pick(candidates));
    }
    if (pool.waiting === 0) this.#pools.delete(model);
  }

  #saturation(servers: readonly BaselineNode[]): number {
    const { queueDepth, cacheUse } = this.#options;
    let sum = 0;
    for (const node of servers)
      sum += Math.max(this.#waitingOf(node) / queueDepth, this.#cacheUseOf(node) / cacheUse);
    return servers.length === 0 ? 1 : sum / servers.length;
  }

  /** The head of the flow whose turn it is in the highest band. */
  #next(pool: Pool): BaselineTask {
    const rank = Math.min(...[...pool.bands].filter(([, { flows }]) => flows.size > 0).map(([key]) => key));
    const band = pool.bands.get(rank) as Band;
    let first: string | undefined;
    let after: string | undefined;
    for (const key of band.flows.keys()) {
      if (first === undefined || key < first) first = key;
      if (key > band.cursor && (after === undefined || key < after)) after = key;
    }
    band.cursor = (after ?? first) as string;
    return band.flows.get(band.cursor)?.peek() as BaselineTask;
  }

  #pick(candidates: readonly BaselineNode[]): BaselineNode {
    const { queueDepth, cacheUse, queueWeight, cacheWeight, runningWeight } = this.#options;
    const below = candidates.filter(
      (node) => this.#waitingOf(node) < queueDepth && this.#cacheUseOf(node) < cacheUse,
    );
    const servers = below.length > 0 ? below : candidates;
    const waiting = scale(servers.map((node) => this.#waitingOf(node)));
    const running = scale(servers.map((node) => runningOf(node)));
    const scores = new Map(
      servers.map((node, index) => {
        const counts = queueWeight * (waiting[index] as number) + runningWeight * (running[index] as number);
        return [node, counts + cacheWeight * (1 - this.#cacheUseOf(node))];
      }),
    );
    return leastOf(servers, (node) => -(scores.get(node) as number), anyOf(this.#desk));
  }

  /** By the gateway's own count where slots are stated, else what the engine says. */
  #waitingOf(node: BaselineNode): number {
    if (node.spec.slots > 0) return Math.max(0, node.running.length - node.slots);
    return this.#readingOf(node)?.waiting ?? 0;
  }

  #cacheUseOf(node: BaselineNode): number {
    return this.#readingOf(node)?.cacheUse ?? 0;
  }

  #readingOf(node: BaselineNode): EngineReading | undefined {
    return this.#desk.now - node.readAt > READING_US_MAX ? undefined : node.reading;
  }

  #flowOf({ spec }: BaselineTask): string {
    return this.#options.fairness === 'round-robin' ? spec.tenant : '';
  }

  #createQueue(): TaskQueue {
    const { ordering } = this.#options;
    return keyedQueue(({ spec, order }) => (ordering === 'edf' ? spec.deadlineAt : order));
  }
}

function runningOf(node: BaselineNode): number {
  return Math.min(node.running.length, node.slots);
}

/** 1 for the least, 0 for the most; all 1 where they are equal. */
function scale(counts: readonly number[]): number[] {
  const least = Math.min(...counts);
  const most = Math.max(...counts);
  return counts.map((count) => (most === least ? 1 : (most - count) / (most - least)));
}

function getOrCreate<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}

export const MODEL_OF_LLM_D: PolicyEntry = baseline({
  name: 'model-of-llm-d',
  about:
    'llm-d’s flow control: strict bands, flows in turn by count, held back while servers are saturated; scored choice',
  source: 'github.com/llm-d/llm-d-inference-scheduler',
  options: OPTIONS,
  defaults: { attempts: 1, failuresMax: 0 },
  discipline: (options) => (desk) => new FlowControl(desk, options),
});
