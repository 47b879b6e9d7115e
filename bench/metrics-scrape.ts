/**
 * What a scrape costs who is served meanwhile: a gateway of a thousand nodes with ten thousand requests waiting, the metrics
 * page asked for over its port again and again, and the longest time for which the event loop was held meanwhile. A baseline
 * without scrapes is told beside it, since the machine holds it too.
 *
 *   node bench/metrics-scrape.ts [--json] [--nodes N] [--queued N] [--scrapes N]
 */
import { parseArgs } from 'node:util';
import { createPrometheusMetrics } from '../src/adapters/metrics-prometheus/index.ts';
import { defaultSchedulerConfig } from '../src/core/config/defaults.ts';
import { NO_NEEDS } from '../src/core/request/needs.ts';
import { createScheduler } from '../src/core/scheduler/scheduler.ts';
import { SILENT_SINK } from '../src/core/scheduler/effects.ts';
import type { Scheduler } from '../src/core/scheduler/contract.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    nodes: { type: 'string', default: '1000' },
    queued: { type: 'string', default: '10000' },
    scrapes: { type: 'string', default: '5' },
  },
});
const NODES = Number(values.nodes);
const QUEUED = Number(values.queued);
const SCRAPES = Number(values.scrapes);
const MODELS = 50;
const CLASSES = ['critical', 'normal', 'low'];

/** All nodes busy, the rest of the tasks waiting. */
function loadedScheduler(): Scheduler {
  const scheduler = createScheduler(
    defaultSchedulerConfig({ seed: 1, gates: { 'flow-wait': 'off', ladder: 'off' } }),
  );
  for (let i = 0; i < NODES; i++) {
    const models = [0, 1, 2].map((step) => ({ model: `model-${(i + step * 7) % MODELS}` }));
    const spec = { slots: 1, batching: false, hardware: '', labels: {}, heartbeats: false };
    scheduler.apply({ kind: 'node-registered', node: { id: `node-${i}`, models, ...spec } }, 0, SILENT_SINK);
  }
  for (let id = 1; id <= NODES + QUEUED; id++) {
    const task = {
      id,
      className: CLASSES[id % 3] as string,
      tenant: `tenant-${id % 500}`,
      model: `model-${id % MODELS}`,
      needs: NO_NEEDS,
      workUs: 1_000_000,
      firstByteWorkUs: 1_000_000,
      bytes: 100,
      deadlineAt: 3_600_000_000,
      deadlineWished: true,
      stream: false,
      fingerprint: '',
    };
    scheduler.apply({ kind: 'submit', task }, id, SILENT_SINK);
  }
  return scheduler;
}

interface Block {
  readonly wallMs: number;
  /** Of this thread: what others on the machine take is not in it. */
  readonly cpuMs: number;
}

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** Turns of the event loop until told to stop; the longest time between two of them. */
function watchLoop(): { stop(): Block } {
  const longest = { wallMs: 0, cpuMs: 0 };
  let isOver = false;
  let last: Block = { wallMs: performance.now(), cpuMs: cpuMs() };
  const look = (): void => {
    const at = { wallMs: performance.now(), cpuMs: cpuMs() };
    longest.wallMs = Math.max(longest.wallMs, at.wallMs - last.wallMs);
    longest.cpuMs = Math.max(longest.cpuMs, at.cpuMs - last.cpuMs);
    last = at;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return {
    stop() {
      isOver = true;
      return longest;
    },
  };
}

const scheduler = loadedScheduler();
const now = 1_000_000;
const metrics = createPrometheusMetrics({
  isClass: (name) => CLASSES.includes(name),
  isModel: (name) => name.startsWith('model-'),
  isTenant: (name) => name.startsWith('tenant-'),
  classes: () => defaultSchedulerConfig().classes,
  queue: () => scheduler.queue(now),
  gates: () => scheduler.gates(),
  ladderStage: () => scheduler.ladder(now).stage,
  retryBudget: () => scheduler.retryBudget(now),
  preemptions: () => scheduler.preemptions(),
  ledgers: () => scheduler.ledgers(now),
  fleet: () => ({ nodes: scheduler.nodes(now), models: [] }),
  signals: () => [],
  traceSpans: () => ({ exported: 0, dropped: 0 }),
  process: () => ({
    rssBytes: 1,
    heapUsedBytes: 1,
    heapLimitBytes: 1,
    cpuSeconds: 1,
    loopLagMs: 0,
    loopLagMsMax: 0,
    shedClasses: 0,
  }),
  nowMs: () => performance.now(),
  turn: () => new Promise((resolve) => setImmediate(resolve)),
});
for (let i = 0; i < 50_000; i++) {
  const model = `model-${i % MODELS}`;
  metrics.sink.requestEnded(CLASSES[i % 3] as string, model, ['served', 'shed', 'cancelled'][i % 3] ?? '', 1);
  metrics.sink.firstByte(CLASSES[i % 3] as string, model, 0.1);
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const idle = watchLoop();
await pause(1_000);
const withoutScrape = idle.stop();
const blocks: Block[] = [];
let bytes = 0;
for (let scrape = 0; scrape < SCRAPES; scrape++) {
  // A page is kept for a second.
  await pause(1_100);
  const watch = watchLoop();
  await pause(1);
  bytes = (await metrics.render()).length;
  await pause(1);
  blocks.push(watch.stop());
}
const { depth } = scheduler.queue(now);
const longest = {
  wallMs: Math.max(...blocks.map(({ wallMs }) => wallMs)),
  cpuMs: Math.max(...blocks.map((block) => block.cpuMs)),
};
const result = { nodes: NODES, queued: depth, pageBytes: bytes, longest, blocks, withoutScrape };
if (values.json) process.stdout.write(`${JSON.stringify(result)}\n`);
else {
  const told = (block: Block): string => `${block.wallMs.toFixed(1)} (${block.cpuMs.toFixed(1)} of CPU)`;
  process.stdout.write(
    `${NODES} nodes, ${depth} waiting, a page of ${(bytes / 1_000).toFixed(0)} kB\n` +
      `longest block in ms: ${told(longest)}; by scrape: ${blocks.map(told).join(', ')}; without a scrape: ${told(withoutScrape)}\n`,
  );
}
