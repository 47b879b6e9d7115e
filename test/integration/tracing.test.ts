/**
 * Traces over real sockets: a gateway in front of two nodes, and a collector that takes what it exports. What a trace must
 * show, what must never be in one, and that nothing of it is felt by a request.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sha256Hex } from '../../src/adapters/config-file/index.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { formatTraceparent, parseTraceparent } from '../../src/base/trace-context.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import { ask, type CaseBench, createCaseBench, nodeAt, open, within } from '../support/case-bench.ts';
import { type Collector, type SeenSpan, startCollector } from '../support/otlp-collector.ts';
import { call, createFixture, type Fixture } from './cli-fixture.ts';
import {
  completion,
  delta,
  type NodeScript,
  ROLE,
  sendJson,
  streamHead,
  type TestNode,
} from './edge-fixture.ts';

const KEY = 'sk-a-key-that-nobody-may-see';
const PROMPT = 'a prompt that nobody may see';
const CLIENT = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', sampled: true };

let bench: CaseBench;
let collector: Collector;

beforeEach(async () => {
  bench = createCaseBench();
  collector = await startCollector();
});

afterEach(async () => {
  await bench.end();
  await collector.close();
});

interface World {
  readonly started: StartedGateway;
  readonly nodes: readonly TestNode[];
}

/** Two nodes of one script, and a tenant with a key. */
async function world(script: NodeScript, tracing: ConfigInput['tracing'] = {}): Promise<World> {
  const nodes = [await bench.node(script), await bench.node(script)];
  const started = await bench.gateway({
    nodes: nodes.map((node, i) => nodeAt(`n${i}`, node, { key: { value: 'node-secret', origin: 'test' } })),
    tenants: [{ id: 'acme', keys: [{ id: 'k', sha256: sha256Hex(KEY) }] }],
    retry: { budgetReserve: 1_000 },
    tracing: { endpoint: collector.endpoint, sampleRatio: 1, exportMs: 10, ...tracing },
  });
  return { started, nodes };
}

const WISH = {
  headers: { authorization: `Bearer ${KEY}` },
  body: { messages: [{ role: 'user', content: PROMPT }] },
};

function wishOf(traceparent: string): typeof WISH {
  return { ...WISH, headers: { ...WISH.headers, ...(traceparent === '' ? {} : { traceparent }) } };
}

const isRequest = (span: SeenSpan): boolean => span.kind === 2;
const attemptsOf = (request: SeenSpan): SeenSpan[] =>
  collector.spans
    .filter((span) => span.parentSpanId === request.spanId)
    .sort((a, b) => Number(a.attributes['spillway.attempt']) - Number(b.attributes['spillway.attempt']));

async function requestSpan(): Promise<SeenSpan> {
  return within(5_000, 'the span of the request has come', () => collector.spans.find(isRequest));
}

const postsTo = (nodes: readonly TestNode[]): (string | undefined)[] =>
  nodes
    .flatMap(({ seen }) => seen)
    .filter(({ method }) => method === 'POST')
    .map(({ headers }) => headers.traceparent as string | undefined);

/** The first call fails, whichever node gets it. */
function failsOnce(): NodeScript {
  let calls = 0;
  return (res) => {
    calls += 1;
    if (calls === 1) sendJson(res, 500, { error: { message: 'out of memory' } });
    else sendJson(res, 200, completion('hello'));
  };
}

describe('a traced request that is retried', () => {
  test('is one span of the client’s trace, with one below it for each attempt', async () => {
    const { started, nodes } = await world(failsOnce());
    const answer = await ask(started.dataUrl, wishOf(formatTraceparent(CLIENT)));
    expect(answer.status).toBe(200);
    const request = await requestSpan();
    const attempts = attemptsOf(request);
    expect(request).toMatchObject({
      traceId: CLIENT.traceId,
      parentSpanId: CLIENT.spanId,
      name: 'spillway chat tiny',
      service: 'spillway',
      status: 0,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'tiny',
        'gen_ai.usage.input_tokens': 9,
        'gen_ai.usage.output_tokens': 3,
        'spillway.request.id': answer.headers['x-spillway-id'],
        'spillway.class': 'normal',
        'spillway.tenant': 'acme',
        'spillway.outcome': 'served',
        'spillway.attempts': 2,
        'spillway.stream': false,
      },
    });
    expect(request.attributes['spillway.queue_wait_ms']).toBeGreaterThanOrEqual(0);
    expect(attempts.map(({ traceId, kind, status }) => ({ traceId, kind, status }))).toEqual([
      { traceId: CLIENT.traceId, kind: 3, status: 2 },
      { traceId: CLIENT.traceId, kind: 3, status: 0 },
    ]);
    expect(attempts.map(({ attributes }) => attributes['error.type'])).toEqual(['server-error', undefined]);
    expect(new Set(attempts.map(({ attributes }) => attributes['spillway.node']))).toEqual(
      new Set(['n0', 'n1']),
    );
    // What each node was told leads to the attempt that asked it.
    expect(new Set(postsTo(nodes))).toEqual(
      new Set(attempts.map(({ traceId, spanId }) => formatTraceparent({ traceId, spanId, sampled: true }))),
    );
  });

  test('tells when it was admitted, dispatched and answered, in that order and inside its span', async () => {
    const { started } = await world(failsOnce());
    await ask(started.dataUrl, wishOf(''));
    const request = await requestSpan();
    expect(request.parentSpanId).toBe('');
    expect(request.events.map(({ name }) => name)).toEqual([
      'spillway.admitted',
      'spillway.dispatched',
      'spillway.dispatched',
      'spillway.first_byte',
    ]);
    const [failed, good] = attemptsOf(request) as [SeenSpan, SeenSpan];
    expect(good.events.map(({ name }) => name)).toEqual(['spillway.sent', 'spillway.first_byte']);
    const instants = [
      request.startNs,
      ...request.events.slice(0, 2).map(({ atNs }) => atNs),
      failed.startNs,
      failed.endNs,
      good.startNs,
      ...good.events.map(({ atNs }) => atNs),
      request.events.at(-1)?.atNs ?? 0n,
      request.endNs,
    ];
    expect(instants).toEqual([...instants].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    expect(Math.abs(Number(request.startNs / 1_000_000n) - Date.now())).toBeLessThan(60_000);
  });

  test('shows no prompt, no answer and no key', async () => {
    const { started } = await world(failsOnce(), { headers: { authorization: 'Bearer collector-secret' } });
    await ask(started.dataUrl, wishOf(''));
    await requestSpan();
    expect(collector.headers[0]?.authorization).toBe('Bearer collector-secret');
    const text = collector.bodies.join('\n');
    for (const secret of [KEY, PROMPT, 'node-secret', 'collector-secret', 'out of memory', 'hello'])
      expect(text).not.toContain(secret);
    const config = await call(`${started.adminUrl}/spillway/v1/config`, { token: started.adminToken });
    expect(config.text).not.toContain('collector-secret');
  });
});

describe('a client that leaves', () => {
  test('is told in the span, with what it was waiting for', async () => {
    const { started } = await world((res) => {
      streamHead(res);
      res.write(ROLE + delta({ content: 'first' }));
    });
    const socket = await open(started.dataUrl, { ...wishOf(''), stream: true });
    await new Promise((resolve) => socket.once('data', resolve));
    socket.destroy();
    const request = await requestSpan();
    expect(request.attributes).toMatchObject({
      'spillway.outcome': 'cancelled',
      'spillway.client_left_while': 'streaming',
      'spillway.stream': true,
    });
    expect(request.status).toBe(0);
    expect(attemptsOf(request)[0]?.attributes['spillway.attempt.end']).toBe('aborted');
  });
});

describe('a request that is refused', () => {
  test('is a span that says why, with no attempt', async () => {
    const { started } = await world((res) => sendJson(res, 200, completion('hello')));
    await ask(started.dataUrl, { ...wishOf(''), body: { max_tokens: 1 }, model: 'nobody-has-it' });
    const request = await requestSpan();
    expect(request).toMatchObject({
      status: 2,
      attributes: { 'spillway.outcome': 'unknown-model', 'error.type': 'unknown-model' },
    });
    expect(JSON.stringify(collector.bodies)).not.toContain('nobody-has-it');
  });
});

describe('requests that share an answer', () => {
  test('are spans of their own: one has the attempts, the other ones none', async () => {
    const { started } = await world((res) => sendJson(res, 200, completion('hello')));
    const wish = { ...WISH, headers: { ...WISH.headers, 'idempotency-key': 'once' } };
    const first = await ask(started.dataUrl, wish);
    const again = await ask(started.dataUrl, wish);
    expect(again.headers['x-spillway-idempotency']).toBe('replayed');
    const requests = await within(5_000, 'both have come', () => {
      const found = collector.spans.filter(isRequest);
      return found.length === 2 && found;
    });
    const byId = new Map(requests.map((span) => [span.attributes['spillway.request.id'], span]));
    expect(byId.get(first.headers['x-spillway-id'] as string)?.attributes['spillway.attempts']).toBe(1);
    expect(byId.get(again.headers['x-spillway-id'] as string)).toMatchObject({
      name: 'spillway chat tiny',
      attributes: { 'spillway.attempts': 0, 'spillway.outcome': 'served', 'spillway.tenant': 'acme' },
    });
    expect(collector.spans.filter((span) => !isRequest(span))).toHaveLength(1);
  });
});

describe('tracestate', () => {
  test('goes on with the traceparent that it belongs to, and not without', async () => {
    const { started, nodes } = await world((res) => sendJson(res, 200, completion('hello')));
    const state = { tracestate: 'vendor=value' };
    const told = (): (string | string[] | undefined)[] =>
      nodes
        .flatMap(({ seen }) => seen)
        .flatMap(({ headers }) => ('traceparent' in headers ? [headers['tracestate']] : []));
    const good = wishOf(formatTraceparent(CLIENT));
    await ask(started.dataUrl, { ...good, headers: { ...good.headers, ...state } });
    expect(told()).toEqual(['vendor=value']);
    await ask(started.dataUrl, { ...WISH, headers: { ...WISH.headers, traceparent: 'nonsense', ...state } });
    expect(told().filter((value) => value === undefined)).toHaveLength(1);
  });
});

describe('what is not sampled', () => {
  test('is not exported whatever the client’s flag says, and still has ids for the nodes', async () => {
    const { started, nodes } = await world((res) => sendJson(res, 200, completion('hello')), {
      sampleRatio: 0,
    });
    for (let i = 0; i < 20; i++) await ask(started.dataUrl, wishOf(formatTraceparent(CLIENT)));
    await started.stop();
    expect(collector.spans).toEqual([]);
    const told = postsTo(nodes).map((header) => parseTraceparent(header ?? ''));
    expect(told).toHaveLength(20);
    for (const parent of told) {
      expect(parent).toMatchObject({ traceId: CLIENT.traceId, sampled: false });
      expect(parent?.spanId).not.toBe(CLIENT.spanId);
    }
    expect(new Set(told.map((parent) => parent?.spanId)).size).toBe(20);
  });

  test('is nothing at all without a configuration: the client’s header goes to the node as it came', async () => {
    const { started, nodes } = await world((res) => sendJson(res, 200, completion('hello')), {
      endpoint: undefined,
    });
    await ask(started.dataUrl, wishOf(formatTraceparent(CLIENT)));
    expect(postsTo(nodes)).toEqual([formatTraceparent(CLIENT)]);
  });
});

async function spansOf(started: StartedGateway, what: 'exported' | 'dropped'): Promise<number> {
  const page = await call(`${started.adminUrl}/metrics`, { token: started.metricsToken });
  return Number(new RegExp(`^spillway_trace_spans_${what}_total (\\d+)`, 'm').exec(page.text)?.[1]);
}

describe('a collector that does not work', () => {
  test.each([500, 'silent'] as const)('costs spans and no request, and no long stop: %s', async (answer) => {
    collector.answer = answer;
    const { started } = await world((res) => sendJson(res, 200, completion('hello')), { timeoutMs: 50 });
    for (let i = 0; i < 10; i++) expect((await ask(started.dataUrl, wishOf(''))).status).toBe(200);
    await within(5_000, 'lost spans are counted', async () => (await spansOf(started, 'dropped')) > 0);
    expect(await spansOf(started, 'exported')).toBe(0);
    await started.stop();
  });

  test('gets what waits when the gateway stops', async () => {
    const { started } = await world((res) => sendJson(res, 200, completion('hello')), { exportMs: 600_000 });
    await ask(started.dataUrl, wishOf(''));
    expect(collector.spans).toEqual([]);
    await started.stop();
    expect(collector.spans).toHaveLength(2);
  });
});

/** Writes the URL of every module of OpenTelemetry that the process loads to its standard error. */
const TELLS_MODULES = `--import=data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module';
registerHooks({ resolve(name, context, next) {
  const found = next(name, context);
  if (found.url.includes('/@opentelemetry/')) process.stderr.write('LOADED ' + found.url + '\\n');
  return found;
} });`)}`;

describe('the command line', () => {
  let fixture: Fixture;
  let folder: string;

  beforeEach(() => {
    fixture = createFixture();
    folder = mkdtempSync(join(tmpdir(), 'spillway-tracing-'));
  });

  afterEach(async () => {
    await fixture.end();
    rmSync(folder, { recursive: true, force: true });
  });

  async function served(config: object): Promise<string> {
    const file = join(folder, 'spillway.yaml');
    writeFileSync(file, JSON.stringify(config));
    const options = { NODE_OPTIONS: TELLS_MODULES, OTLP_TOKEN: 'Bearer from-the-environment' };
    const running = await fixture.serve(['--config', file, '--log-level', 'debug'], options);
    expect((await ask(running.document.dataUrl, { model: 'stub-model', body: WISH.body })).status).toBe(200);
    running.child.kill('SIGTERM');
    await running.ended();
    return running.stderr();
  }

  test('loads OpenTelemetry only where traces are configured', async () => {
    const { url } = await fixture.stub();
    const nodes = [{ id: 'n0', url }];
    expect(await served({ nodes })).not.toContain('LOADED');
    const headers = { authorization: { env: 'OTLP_TOKEN' } };
    const traced = await served({
      nodes,
      tracing: { endpoint: collector.endpoint, sampleRatio: 1, headers },
    });
    expect(traced).toContain('LOADED');
    expect(collector.headers[0]?.authorization).toBe('Bearer from-the-environment');
  });

  test('writes the ids of the trace into the log line of the request', async () => {
    const { url } = await fixture.stub();
    const log = await served({
      nodes: [{ id: 'n0', url }],
      tracing: { endpoint: collector.endpoint, sampleRatio: 1 },
    });
    const line = log.split('\n').find((text) => text.includes('"msg":"Request ended"'));
    const request = collector.spans.find(isRequest);
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      trace_id: request?.traceId,
      span_id: request?.spanId,
      request: request?.attributes['spillway.request.id'],
      outcome: 'served',
      model: 'stub-model',
      class: 'normal',
      node: 'n0',
      attempts: 1,
    });
    expect(log).not.toContain(PROMPT);
  });
});

test('a node that asks in turn with the trace of its attempt is a stage after that one', async () => {
  const asked: Promise<unknown>[] = [];
  const { started } = await world((res, { headers }) => {
    const { headers: own } = wishOf(String(headers['traceparent']));
    if (asked.length === 0)
      asked.push(ask(started.dataUrl, { headers: { ...own, 'x-spillway-stage': 'draw' } }));
    sendJson(res, 200, completion('hello'));
  });
  const submits = vi.spyOn(started.gateway, 'submit');
  await ask(started.dataUrl, { headers: { ...WISH.headers, 'x-spillway-stage': 'plan' } });
  await Promise.all(asked);
  expect(submits.mock.calls.map(([{ stage }]) => stage)).toEqual([
    { name: 'plan', parent: '' },
    { name: 'draw', parent: 'plan' },
  ]);
});
