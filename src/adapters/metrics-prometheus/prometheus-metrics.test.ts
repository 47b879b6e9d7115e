import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { NodeView, QueueView } from '../../core/scheduler/views.ts';
import { createCounter, createHistogram, SETS_MAX } from './families.ts';
import { createPrometheusMetrics, type MetricsSource, type PrometheusMetrics } from './prometheus-metrics.ts';

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
    signals: () => [{ signal: 'ghost-queue', isActive: true }],
    nodes: () => state.nodes,
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
  test('tells what each gate refused, and would have refused in shadow', () => {
    const text = fixture().metrics.render();
    expect(text).toContain('# TYPE spillway_gate_refusals_total counter');
    expect(text).toContain('spillway_gate_refusals_total{gate="limits",effect="refused"} 2');
    expect(text).toContain('spillway_ladder_stage 2');
    expect(text).toContain('spillway_gate_refusals_total{gate="limits",effect="shadow"} 3');
  });

  test('counts what ended, with buckets that add up', () => {
    const { metrics } = fixture();
    metrics.sink.requestEnded('normal', 'llama', 'served', 0.3);
    metrics.sink.requestEnded('normal', 'llama', 'queue-full', 0.001);
    metrics.sink.firstByte('normal', 'llama', 0.2);
    metrics.sink.queueWait('normal', 'llama', 0.005);
    metrics.sink.dispatched(0.0002);
    metrics.sink.tokens('output', 'llama', 7);
    metrics.sink.retried();
    metrics.sink.spoolBytes(99);
    const found = samples(metrics.render());
    expect(found.get('spillway_requests_total{class="normal",model="llama",outcome="served"}')).toBe(1);
    expect(found.get('spillway_request_seconds_count{class="normal"}')).toBe(2);
    expect(found.get('spillway_request_seconds_bucket{class="normal",le="0.005"}')).toBe(1);
    expect(found.get('spillway_request_seconds_bucket{class="normal",le="+Inf"}')).toBe(2);
    expect(found.get('spillway_queue_wait_seconds_bucket{class="normal",le="0.005"}')).toBe(1);
    expect(found.get('spillway_tokens_total{direction="output",model="llama"}')).toBe(7);
    expect(found.get('spillway_retries_total')).toBe(1);
    expect(metrics.spoolBytes()).toBe(99);
  });

  test('reads queue, nodes and process when it is scraped', () => {
    const found = samples(fixture().metrics.render());
    expect(found.get('spillway_queue_depth{class="normal",model="llama"}')).toBe(3);
    expect(found.get('spillway_queue_work_seconds{class="normal"}')).toBe(1.5);
    expect(found.get('spillway_oldest_wait_seconds{class="normal"}')).toBe(0.25);
    expect(found.get('spillway_node_drain_seconds{node="gpu-1"}')).toBe(0.5);
    expect(found.get('spillway_node_rate_ratio{node="gpu-1"}')).toBe(2);
    expect(found.get('spillway_node_state{node="gpu-1",state="active"}')).toBe(1);
    expect(found.get('spillway_event_loop_lag_seconds')).toBe(0.02);
    expect(found.get('spillway_survival_shed_classes')).toBe(1);
  });

  test('renders at most once a second, however many scrape', () => {
    const state = fixture();
    const first = state.metrics.render();
    state.metrics.sink.retried();
    expect(state.metrics.render()).toBe(first);
    state.nowMs = 1_000;
    expect(samples(state.metrics.render()).get('spillway_retries_total')).toBe(1);
  });

  // Public report llm-d/llm-d-router#2119: label values taken from requests grew without bound.
  test('stays bounded under 100,000 distinct tenants, models, classes and outcomes, and still counts them', () => {
    const state = fixture();
    const byTenant: Record<string, typeof GROUP> = { acme: GROUP };
    for (let i = 0; i < 100_000; i++) {
      state.metrics.sink.requestEnded(`class-${i}`, `model-${i}`, `outcome-${i}`, 1);
      state.metrics.sink.firstByte('normal', `model-${i}`, 1);
      state.metrics.sink.tokens('input', `model-${i}`, 1);
      byTenant[`tenant-${i}`] = GROUP;
    }
    state.queue = queueView(byTenant);
    const page = state.metrics.render();
    const found = samples(page);
    expect(page.length).toBeLessThan(64 * 1024);
    const requests = [...found].filter(([name]) => name.startsWith('spillway_requests_total'));
    expect(requests.reduce((sum, [, value]) => sum + value, 0)).toBe(100_000);
    expect(found.get('spillway_tokens_total{direction="input",model="other"}')).toBe(100_000);
    expect(found.get('spillway_tenant_queue_depth{tenant="acme"}')).toBe(3);
    expect(found.get('spillway_tenant_queue_depth{tenant="other"}')).toBe(300_000);
  });

  test('keeps at most 200 models apart although every one is known', () => {
    const { metrics } = fixture();
    for (let i = 0; i < 1_000; i++) metrics.sink.tokens('input', `known-${i}`, 1);
    const found = samples(metrics.render());
    expect([...found.keys()].filter((name) => name.startsWith('spillway_tokens_total')).length).toBe(201);
    expect(found.get('spillway_tokens_total{direction="input",model="other"}')).toBe(800);
  });

  test('gives rows to the first thousand nodes and counts all of them', () => {
    const state = fixture();
    state.nodes = Array.from({ length: 3_000 }, (_, i) => node(`n${i}`));
    const found = samples(state.metrics.render());
    expect([...found.keys()].filter((name) => name.startsWith('spillway_node_health')).length).toBe(1_000);
    expect(found.get('spillway_nodes{state="active"}')).toBe(3_000);
  });

  test('has a row in the reference page for every metric', () => {
    const page = fixture().metrics.render();
    const reference = readFileSync(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8');
    const names = [...page.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1] as string);
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !reference.includes(`\`${name}\``))).toEqual([]);
  });

  test('escapes label values', () => {
    const state = fixture();
    state.nodes = [node('a"b\\c\nd')];
    expect(samples(state.metrics.render()).get('spillway_node_health{node="a\\"b\\\\c\\nd"}')).toBe(1);
  });
});

describe('families', () => {
  test('hold their bound on label sets and count what is beyond as other', () => {
    const counter = createCounter({ name: 'x_total', help: 'x.', labels: ['a'] });
    const histogram = createHistogram({ name: 'y_seconds', help: 'y.', labels: ['a'] }, [1]);
    for (let i = 0; i < SETS_MAX + 10; i++) {
      counter.add([`v${i}`], 1);
      histogram.observe([`v${i}`], 1);
    }
    const found = samples(counter.render() + histogram.render());
    expect([...found.keys()].filter((name) => name.startsWith('x_total')).length).toBe(SETS_MAX);
    expect(found.get('x_total{a="other"}')).toBe(11);
    expect(found.get('y_seconds_count{a="other"}')).toBe(11);
  });
});
