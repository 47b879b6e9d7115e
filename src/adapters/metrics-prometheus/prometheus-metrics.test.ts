import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { AcceleratorReading } from '../../core/health/index.ts';
import type { LedgersView } from '../../core/ledgers/index.ts';
import type { NodeView, QueueView } from '../../core/scheduler/views.ts';
import type { MeasuredNode } from './gauges.ts';
import { createCounter, createHistogram } from './families.ts';
import { budgetOf, foldsFromNothing, PAGE_BYTES_MAX } from './page-budget.ts';
import { createPrometheusMetrics, type MetricsSource, type PrometheusMetrics } from './prometheus-metrics.ts';

const ERROR = { p50: 0.25, p95: 2, bias: 1.1, samples: 7, sum: 3 };
const LEDGERS: LedgersView = {
  now: 0,
  refusals: {
    classes: [
      {
        className: 'normal',
        refused: 9,
        couldHaveServed: 2,
        couldNot: 6,
        pending: 1,
        unjudged: 0,
        byReason: [],
      },
      {
        className: 'gone',
        refused: 3,
        couldHaveServed: 1,
        couldNot: 2,
        pending: 0,
        unjudged: 0,
        byReason: [],
      },
    ],
    examples: [],
  },
  eta: {
    classes: [{ className: 'normal', admission: ERROR, dispatch: null }],
    hints: { kept: 3, broken: 1 },
  },
  work: {
    usefulUs: 9_000_000,
    wastedUs: 1_500_000,
    wastedRatio: 1 / 7,
    byCause: {
      failed: 1_000_000,
      'timed-out': 0,
      deadline: 0,
      'client-left': 500_000,
      preempted: 0,
      late: 0,
    },
  },
};
const GROUP = { depth: 3, workMs: 1_500, oldestWaitMs: 250 };

function queueView(byTenant: QueueView['byTenant'] = {}): QueueView {
  return {
    ...GROUP,
    bytes: 10,
    running: 2,
    byClass: { normal: GROUP },
    byModel: { llama: GROUP },
    byClassAndModel: { normal: { llama: GROUP } },
    byTenant,
  };
}

function node(id: string, models = 1): NodeView {
  return {
    id,
    state: 'active',
    spec: { id, models: [], slots: 1, batching: false, hardware: '', labels: {}, heartbeats: false },
    health: 1,
    rates: Array.from({ length: models }, (_, i) => ({ model: `m${i}`, rate: 2, observations: i + 1 })),
    inflight: 1,
    slots: 1,
    drainMs: 500,
    cordoned: false,
    draining: false,
    ejectedForMs: 0,
    ejections: 0,
    breakers: [],
  };
}

interface Fixture {
  readonly metrics: PrometheusMetrics;
  nowMs: number;
  nodes: MeasuredNode[];
  queue: QueueView;
  journalDropped: number | undefined;
}

/** One whose host tells of its accelerator. */
function hostedNode(id: string): MeasuredNode {
  const accelerators = [
    { busy: 1 / 3, memoryUsedBytes: 1e9, memoryFreeBytes: 2e9, temperatureC: 71 },
  ] as unknown as AcceleratorReading[];
  const measured = node(id);
  return {
    ...measured,
    drainMs: 1234.56789,
    health: 1 / 3,
    rates: [{ model: 'm', rate: 2 / 3, observations: 9 }],
    telemetry: { host: { isStale: false, accelerators } },
  };
}

interface Known {
  readonly models?: readonly string[];
  readonly tenants?: readonly string[];
}

function fixture({ models = [], tenants = [] }: Known = {}): Fixture {
  const state = {
    nowMs: 0,
    nodes: [node('gpu-1')] as MeasuredNode[],
    queue: queueView(),
    journalDropped: 4 as number | undefined,
  };
  const source: MetricsSource = {
    isClass: (name) => ['critical', 'normal', 'low'].includes(name),
    isModel: (name) => name === 'llama' || name.startsWith('known-'),
    isTenant: (name) => name === 'acme' || tenants.includes(name),
    queue: () => state.queue,
    gates: () => [{ gate: 'limits', mode: 'shadow', refused: 2, wouldRefuse: 3 }],
    ladderStage: () => 2,
    retryBudget: () => 0.25,
    preemptions: () => ({ queued: 3, ended: 1, late: 0 }),
    traceSpans: () => ({ exported: 7, dropped: 2 }),
    journalDropped: () => state.journalDropped,
    signals: () => [{ signal: 'ghost-queue', isActive: true, warnings: 2, pages: 1 }],
    classes: () => [{ name: 'normal', firstByteMs: 30_000, completionMs: 120_000 }],
    ledgers: () => LEDGERS,
    fleet: () => ({ nodes: state.nodes, models: ['llama', ...models] }),
    turn: () => Promise.resolve(),
    process: () => ({
      rssBytes: 1,
      heapUsedBytes: 1,
      heapLimitBytes: 1,
      cpuSeconds: 1,
      loopLagMs: 20,
      loopLagMsMax: 30,
      shedClasses: 1,
    }),
    nowMs: () => state.nowMs,
  };
  return Object.assign(state, { metrics: createPrometheusMetrics(source) });
}

/** Name, labels and value of each sample; throws on a line that is none. A small reading of the text format 0.0.4. */
function samples(page: string): Map<string, number> {
  const found = new Map<string, number>();
  const types = new Map<string, string>();
  for (const line of page.split('\n')) {
    if (line === '') continue;
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line);
    if (comment !== null) {
      if (comment[1] === 'TYPE') {
        if (types.has(comment[2] as string)) throw new Error(`A family twice: ${line}`);
        types.set(comment[2] as string, comment[3] as string);
      }
      continue;
    }
    const label = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
    const match = new RegExp(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{${label}(?:,${label})*\\})? (\\S+)$`).exec(line);
    if (match === null || (match[3] !== 'NaN' && Number.isNaN(Number(match[3]))))
      throw new Error(`No sample: ${line}`);
    const family = (match[1] as string).replace(/_(bucket|sum|count)$/, '');
    if (!types.has(family) && !types.has(match[1] as string)) throw new Error(`No type: ${line}`);
    const key = `${match[1]}${match[2] ?? ''}`;
    if (found.has(key)) throw new Error(`A sample twice: ${line}`);
    found.set(key, Number(match[3]));
  }
  return found;
}

describe('createPrometheusMetrics', () => {
  test('tells what each gate refused, and would have refused in shadow', async () => {
    const text = await fixture().metrics.render();
    expect(text).toContain('# TYPE spillway_gate_refusals_total counter');
    expect(text).toContain('spillway_gate_refusals_total{gate="limits",effect="refused"} 2');
    expect(text).toContain('spillway_ladder_stage 2');
    expect(text).toContain('spillway_gate_refusals_total{gate="limits",effect="shadow"} 3');
  });

  test('counts what ended, with buckets that add up', async () => {
    const { metrics } = fixture();
    metrics.sink.requestEnded('normal', 'llama', 'served', 0.3);
    metrics.sink.requestEnded('normal', 'llama', 'queue-full', 0.001);
    metrics.sink.firstByte('normal', 'llama', 0.2);
    metrics.sink.queueWait('normal', 'llama', 0.005);
    metrics.sink.dispatched(0.0002);
    metrics.sink.tokens('output', 'llama', 7);
    metrics.sink.retried();
    metrics.sink.spoolBytes(99);
    const found = samples(await metrics.render());
    expect(found.get('spillway_requests_total{class="normal",model="llama",outcome="served"}')).toBe(1);
    expect(found.get('spillway_request_seconds_count{class="normal"}')).toBe(2);
    expect(found.get('spillway_request_seconds_bucket{class="normal",le="0.005"}')).toBe(1);
    expect(found.get('spillway_request_seconds_bucket{class="normal",le="+Inf"}')).toBe(2);
    expect(found.get('spillway_queue_wait_seconds_bucket{class="normal",le="0.005"}')).toBe(1);
    expect(found.get('spillway_tokens_total{direction="output",model="llama"}')).toBe(7);
    expect(found.get('spillway_retries_total')).toBe(1);
    expect(metrics.spoolBytes()).toBe(99);
  });

  test('tells what the scheduler books of itself', async () => {
    const found = samples(await fixture().metrics.render());
    expect(found.get('spillway_rejected_capacity_total{class="normal"}')).toBe(9);
    expect(found.get('spillway_rejected_could_have_served_total{class="normal"}')).toBe(2);
    expect(found.get('spillway_rejected_could_have_served_total{class="other"}')).toBe(1);
    const error = 'spillway_eta_error_ratio{class="normal",prediction="admission",quantile="0.95"}';
    expect(found.get(error)).toBe(2);
    expect(found.get('spillway_eta_error_ratio_count{class="normal",prediction="admission"}')).toBe(7);
    expect(found.get('spillway_retry_hints_total{result="broken"}')).toBe(1);
    expect(found.get('spillway_useful_work_seconds_total')).toBe(9);
    expect(found.get('spillway_wasted_work_seconds_total{cause="client-left"}')).toBe(0.5);
  });

  test('tells lines that are missing in the journal, and nothing where none is kept', async () => {
    const state = fixture();
    expect(samples(await state.metrics.render()).get('spillway_journal_dropped_total')).toBe(4);
    state.journalDropped = undefined;
    state.nowMs = 1_000;
    expect(samples(await state.metrics.render()).has('spillway_journal_dropped_total')).toBe(false);
  });

  test('tells which silent failures are found, and how urgent they are', async () => {
    const found = samples(await fixture().metrics.render());
    expect(found.get('spillway_signal_active{signal="ghost-queue"}')).toBe(1);
    expect(found.get('spillway_signal_findings{signal="ghost-queue",severity="warn"}')).toBe(2);
    expect(found.get('spillway_signal_findings{signal="ghost-queue",severity="page"}')).toBe(1);
  });

  test('tells of each model how many nodes take its work, and 0 where none does', async () => {
    const state = fixture();
    const offer = (id: string, nodeState: NodeView['state']): NodeView => {
      const row = node(id);
      return { ...row, state: nodeState, spec: { ...row.spec, models: [{ model: 'known-1' }] } };
    };
    state.nodes = [offer('a', 'active'), offer('b', 'ejected')];
    const found = samples(await state.metrics.render());
    expect(found.get('spillway_model_nodes{model="known-1"}')).toBe(1);
    expect(found.get('spillway_model_nodes{model="llama"}')).toBe(0);
  });

  test('reads queue, nodes and process when it is scraped', async () => {
    const found = samples(await fixture().metrics.render());
    expect(found.get('spillway_queue_depth{class="normal",model="llama"}')).toBe(3);
    expect(found.get('spillway_queue_work_seconds{class="normal"}')).toBe(1.5);
    expect(found.get('spillway_oldest_wait_seconds{class="normal"}')).toBe(0.25);
    expect(found.get('spillway_node_drain_seconds{node="gpu-1"}')).toBe(0.5);
    expect(found.get('spillway_node_rate_ratio{node="gpu-1"}')).toBe(2);
    expect(found.get('spillway_node_state{node="gpu-1",state="active"}')).toBe(1);
    expect(found.get('spillway_event_loop_lag_seconds')).toBe(0.02);
    expect(found.get('spillway_survival_shed_classes')).toBe(1);
  });

  test('renders at most once a second, however many scrape', async () => {
    const state = fixture();
    const first = await state.metrics.render();
    state.metrics.sink.retried();
    expect(await state.metrics.render()).toBe(first);
    state.nowMs = 1_000;
    expect(samples(await state.metrics.render()).get('spillway_retries_total')).toBe(1);
  });

  // Public report llm-d/llm-d-router#2119: label values taken from requests grew without bound.
  test('stays bounded under 100,000 distinct tenants, models, classes and outcomes, and still counts them', async () => {
    const state = fixture();
    const byTenant: Record<string, typeof GROUP> = { acme: GROUP };
    for (let i = 0; i < 100_000; i++) {
      state.metrics.sink.requestEnded(`class-${i}`, `model-${i}`, `outcome-${i}`, 1);
      state.metrics.sink.firstByte('normal', `model-${i}`, 1);
      state.metrics.sink.tokens('input', `model-${i}`, 1);
      byTenant[`tenant-${i}`] = GROUP;
    }
    state.queue = queueView(byTenant);
    const page = await state.metrics.render();
    const found = samples(page);
    expect(page.length).toBeLessThan(64 * 1024);
    const requests = [...found].filter(([name]) => name.startsWith('spillway_requests_total'));
    expect(requests.reduce((sum, [, value]) => sum + value, 0)).toBe(100_000);
    expect(found.get('spillway_tokens_total{direction="input",model="other"}')).toBe(100_000);
    expect(found.get('spillway_tenant_queue_depth{tenant="acme"}')).toBe(3);
    expect(found.get('spillway_tenant_queue_depth{tenant="other"}')).toBe(300_000);
  });

  test('keeps at most 200 models apart although every one is known', async () => {
    const { metrics } = fixture();
    for (let i = 0; i < 1_000; i++) metrics.sink.tokens('input', `known-${i}`, 1);
    const found = samples(await metrics.render());
    expect([...found.keys()].filter((name) => name.startsWith('spillway_tokens_total')).length).toBe(201);
    expect(found.get('spillway_tokens_total{direction="input",model="other"}')).toBe(800);
  });

  test('gives rows to the first thousand nodes and counts all of them', async () => {
    const state = fixture();
    state.nodes = Array.from({ length: 3_000 }, (_, i) => node(`n${i}`));
    const found = samples(await state.metrics.render());
    expect([...found.keys()].filter((name) => name.startsWith('spillway_node_health')).length).toBe(1_000);
    expect(found.get('spillway_nodes{state="active"}')).toBe(3_000);
  });

  test.each([
    ['usual names', (kind: string, i: number) => `${kind}-${i}`],
    ['names of 200 characters', (kind: string, i: number) => `${kind}-${i}-`.padEnd(200, 'x')],
  ])(
    'keeps the page within its bound with 1,000,000 names, 200 models of 3 classes and 1,000 nodes: %s',
    async (_title, nameOf) => {
      const models = Array.from({ length: 200 }, (_, i) => nameOf('known', i));
      const classes = ['critical', 'normal', 'low'];
      const state = fixture({ models, tenants: models });
      const { sink } = state.metrics;
      const outcomes = ['served', 'queue-full', 'deadline-infeasible', 'cancelled', 'node-failed'];
      for (const model of models)
        for (const className of classes) {
          for (const outcome of outcomes) sink.requestEnded(className, model, outcome, 12_345.678901);
          sink.firstByte(className, model, 1.2345678901);
          for (const direction of ['input', 'output'] as const) sink.tokens(direction, model, 987_654_321);
        }
      for (let i = 0; i < 1_000_000; i++) sink.requestEnded('normal', `model-${i}`, 'unknown-model', 0.1);
      const byModel = Object.fromEntries(models.map((model) => [model, GROUP]));
      state.queue = {
        ...queueView(byModel),
        byClassAndModel: Object.fromEntries(classes.map((className) => [className, byModel])),
      };
      state.nodes = Array.from({ length: 1_000 }, (_, i) => hostedNode(nameOf('node', i)));
      const page = await state.metrics.render();
      expect(Buffer.byteLength(page)).toBeLessThan(PAGE_BYTES_MAX);
      const found = samples(page);
      const sum = (name: string): number =>
        [...found].reduce((total, [key, n]) => total + (key.startsWith(name) ? n : 0), 0);
      const told = (name: string): number => [...found.keys()].filter((key) => key.startsWith(name)).length;
      // Nothing is lost, and what is not told apart is told.
      expect(sum('spillway_requests_total')).toBe(1_003_000);
      expect(sum('spillway_time_to_first_byte_seconds_count')).toBe(600);
      expect(sum('spillway_queue_depth')).toBe(1_800);
      expect(sum('spillway_tenant_queue_depth')).toBe(600);
      expect(
        found.get('spillway_metrics_folded{family="spillway_time_to_first_byte_seconds"}'),
      ).toBeGreaterThan(0);
      expect(told('spillway_node_health')).toBe(
        1_000 - (found.get('spillway_metrics_folded{family="nodes"}') as number),
      );
    },
  );

  test('tells a thousand usual nodes and 200 usual models apart but for their histograms', async () => {
    const models = Array.from({ length: 200 }, (_, i) => `known-${i}`);
    const state = fixture({ models });
    for (const model of models)
      for (const className of ['critical', 'normal', 'low']) {
        state.metrics.sink.requestEnded(className, model, 'served', 1);
        state.metrics.sink.tokens('output', model, 7);
      }
    state.nodes = Array.from({ length: 1_000 }, (_, i) => hostedNode(`node-${i}`));
    const found = samples(await state.metrics.render());
    const folded = [...found].filter(
      ([key, value]) => key.startsWith('spillway_metrics_folded') && value > 0,
    );
    expect(folded).toEqual([]);
    expect([...found.keys()].filter((key) => key.startsWith('spillway_node_health')).length).toBe(1_000);
  });

  test('folds what waits least, and never a model without nodes before one that has some', async () => {
    const models = Array.from({ length: 200 }, (_, i) => `known-${i}-`.padEnd(200, 'x'));
    const state = fixture({ models });
    const byModel = Object.fromEntries(models.map((model, i) => [model, { ...GROUP, depth: i }]));
    state.queue = { ...queueView(), byClassAndModel: { normal: byModel } };
    state.nodes = models.slice(0, 190).map((model, i) => {
      const row = node(`n${i}`);
      return { ...row, spec: { ...row.spec, models: [{ model }] } };
    });
    const found = samples(await state.metrics.render());
    expect(found.get(`spillway_queue_depth{class="normal",model="${models[199]}"}`)).toBe(199);
    expect(found.has(`spillway_queue_depth{class="normal",model="${models[0]}"}`)).toBe(false);
    for (const model of models.slice(190))
      expect(found.get(`spillway_model_nodes{model="${model}"}`)).toBe(0);
    expect(found.get('spillway_metrics_folded{family="spillway_model_nodes"}')).toBeGreaterThan(100);
  });

  test('has a row in the reference page for every metric', async () => {
    const page = await fixture().metrics.render();
    const reference = readFileSync(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8');
    const names = [...page.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1] as string);
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !reference.includes(`\`${name}\``))).toEqual([]);
  });

  test('escapes label values', async () => {
    const state = fixture();
    state.nodes = [node('a"b\\c\nd')];
    expect(samples(await state.metrics.render()).get('spillway_node_health{node="a\\"b\\\\c\\nd"}')).toBe(1);
  });
});

describe('families', () => {
  test('hold their part of the page, and count what is beyond as other', () => {
    const counter = createCounter('spillway_wishes_ignored_total');
    const histogram = createHistogram('spillway_request_seconds', [1]);
    const names = 4_000;
    for (let i = 0; i < names; i++) {
      counter.add([`v${i}`], 1);
      histogram.observe([`v${i}`], 1);
    }
    const texts = [counter, histogram].map((family) => [...family.snapshot()].join(''));
    const folds = foldsFromNothing();
    for (const family of [counter, histogram]) family.tellFolded(folds);
    for (const [i, name] of (
      ['spillway_wishes_ignored_total', 'spillway_request_seconds'] as const
    ).entries()) {
      const found = samples(texts[i] as string);
      const counts = [...found].filter(([key]) => key.startsWith(i === 0 ? name : `${name}_count`));
      expect(counts.reduce((sum, [, value]) => sum + value, 0)).toBe(names);
      expect(counts.at(-1)?.[0]).toContain('"other"');
      expect(counts.at(-1)?.[1]).toBe(folds.get(name));
      expect(texts[i]?.length).toBeLessThan(budgetOf(name).bytesMax + 500);
      expect(texts[i]?.length).toBeGreaterThan(budgetOf(name).bytesMax / 2);
    }
  });

  test('fold models before anything else, so that sums by class and outcome stay true', () => {
    const counter = createCounter('spillway_requests_total');
    const long = 'm'.repeat(250);
    for (let i = 0; i < 2_000; i++)
      counter.add([i % 2 === 0 ? 'low' : 'normal', `${long}${i}`, i % 4 === 0 ? 'served' : 'shed'], 1);
    const found = samples([...counter.snapshot()].join(''));
    const sum = (...parts: readonly string[]): number =>
      [...found].reduce((total, [key, n]) => total + (parts.every((part) => key.includes(part)) ? n : 0), 0);
    expect(sum('class="low"')).toBe(1_000);
    expect(sum('outcome="served"')).toBe(500);
    expect(sum('class="normal",model="other",outcome="shed"')).toBeGreaterThan(500);
    expect(sum('class="other"')).toBe(0);
  });
});
