/** What the metrics page keeps of those who are gone, and of names that nobody knew. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  createPrometheusMetrics,
  type PrometheusMetrics,
} from '../../src/adapters/metrics-prometheus/index.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { NodeConfig } from '../../src/core/config/types.ts';
import { createScheduler } from '../../src/core/scheduler/index.ts';
import { defaultSchedulerConfig } from '../../src/core/config/index.ts';
import { type CaseBench, createCaseBench, within } from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import { completion, sendJson } from './edge-fixture.ts';

const NODES = 5_000;
const NAMES = 1_000_000;
const MIB = 1_024 * 1_024;
const GUEST: Omit<NodeConfig, 'id' | 'url'> = {
  protocol: 'openai',
  models: [{ model: 'tiny' }],
  slots: 1,
  hardware: '',
  labels: {},
  headers: {},
};

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

async function pageOf({ adminUrl, adminToken }: StartedGateway): Promise<string> {
  return (await call(`${adminUrl}/metrics`, { token: adminToken })).text;
}

/** Names and label sets, without the numbers. */
const setsOf = (page: string): readonly string[] =>
  page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.slice(0, line.lastIndexOf(' ')));

test('forgets five thousand nodes that joined and left', async () => {
  const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
  const started = await bench.gateway({});
  const { gateway } = started;
  const before = setsOf(await pageOf(started));
  const ids = Array.from({ length: NODES }, (_, i) => `guest-${i}`);
  for (const id of ids) {
    const result = await gateway.register({ ...GUEST, id, url: `${node.url}/${id}` }, 'api', '');
    expect(result.kind).toBe('registered');
  }
  const full = await within(5_000, 'the page tells of them', async () => {
    const page = await pageOf(started);
    return /^spillway_model_nodes\{model="tiny"\} 5000$/m.test(page) && page;
  });
  expect(setsOf(full).filter((set) => set.includes('node="guest-'))).toHaveLength(6 * 1_000);
  for (const id of ids) expect(await gateway.removeNode(id)).toBe(true);
  const after = await within(5_000, 'the page has forgotten them', async () => {
    const sets = setsOf(await pageOf(started));
    return !sets.some((set) => set.includes('guest-')) && sets;
  });
  expect(after.filter((set) => !before.includes(set))).toEqual([]);
});

/** Every name counts as known: nothing but the bounds keeps them out. */
function gullible(): PrometheusMetrics {
  const config = defaultSchedulerConfig();
  const scheduler = createScheduler(config);
  return createPrometheusMetrics({
    isClass: () => true,
    isModel: () => true,
    isTenant: () => true,
    classes: () => config.classes,
    queue: () => scheduler.queue(0),
    gates: () => scheduler.gates(),
    ladderStage: () => 0,
    retryBudget: () => 1,
    preemptions: () => scheduler.preemptions(),
    ledgers: () => scheduler.ledgers(0),
    fleet: () => ({ nodes: [], models: [] }),
    signals: () => [],
    traceSpans: () => ({ exported: 0, dropped: 0 }),
    journalDropped: () => 0,
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
    turn: () => Promise.resolve(),
  });
}

function liveBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

test('keeps a page of a mebibyte and its memory under a million distinct names of every kind', async () => {
  const metrics = gullible();
  const { sink } = metrics;
  const count = (from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      sink.requestEnded(`class-${i}`, `model-${i}`, `outcome-${i}`, 1);
      sink.firstByte(`class-${i}`, `model-${i}`, 1);
      sink.queueWait(`class-${i}`, `model-${i}`, 1);
      sink.tokens('output', `model-${i}`, 1);
      sink.degraded(`class-${i}`, 'cache');
    }
  };
  count(0, 100_000);
  const warm = liveBytes();
  count(100_000, NAMES);
  const grown = liveBytes() - warm;
  const page = await metrics.render();
  expect(page.length).toBeLessThan(MIB);
  expect(grown, 'bytes kept of nine hundred thousand names').toBeLessThan(MIB);
  const total = [...page.matchAll(/^spillway_requests_total\{.*\} (\d+)$/gm)].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  );
  expect(total, 'every one is counted').toBe(NAMES);
});
