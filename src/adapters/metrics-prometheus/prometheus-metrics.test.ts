import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { LedgersView } from '../../core/ledgers/index.ts';
import type { NodeView, QueueView } from '../../core/scheduler/views.ts';
import { createCounter, createHistogram, HISTOGRAM_SETS_MAX, SETS_MAX } from './families.ts';
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
  nodes: NodeView[];
  queue: QueueView;
}

function fixture(): Fixture {
  const state = { nowMs: 0, nodes: [node('gpu-1')], queue: queueView() };
  const source: MetricsSource = {
    isClass: (name) => ['critical', 'normal', 'low'].includes(name),
    isModel: (name) => name === 'llama' || name.startsWith('known-'),
    isTenant: (name) => name === 'acme',
    queue: () => state.queue,
    gates: () => [{ gate: 'limits', mode: 'shadow', refused: 2, wouldRefuse: 3 }],
    ladderStage: () => 2,
    retryBudget: () => 0.25,
    preemptions: () => ({ queued: 3, ended: 1, late: 0 }),
    traceSpans: () => ({ exported: 7, dropped: 2 }),
    signals: () => [{ signal: 'ghost-queue', isActive: true, warnings: 2, pages: 1 }],
    classes: () => [{ name: 'normal', firstByteMs: 30_000, completionMs: 120_000 }],
    ledgers: () => LEDGERS,
    fleet: () => ({ nodes: state.nodes, models: ['llama'] }),
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
  test('hold their bound on label sets and count what is beyond as other', async () => {
    const counter = createCounter('spillway_wishes_ignored_total');
    const histogram = createHistogram('spillway_request_seconds', [1]);
    for (let i = 0; i < SETS_MAX + 10; i++) {
      counter.add([`v${i}`], 1);
      histogram.observe([`v${i}`], 1);
    }
    const found = samples([...counter.snapshot(), ...histogram.snapshot()].join(''));
    const named = (name: string): number => [...found.keys()].filter((key) => key.startsWith(name)).length;
    expect(named('spillway_wishes_ignored_total')).toBe(SETS_MAX);
    expect(named('spillway_request_seconds_count')).toBe(HISTOGRAM_SETS_MAX);
    expect(found.get('spillway_wishes_ignored_total{wish="other"}')).toBe(11);
    expect(found.get('spillway_request_seconds_count{class="other"}')).toBe(
      SETS_MAX + 11 - HISTOGRAM_SETS_MAX,
    );
  });
});
