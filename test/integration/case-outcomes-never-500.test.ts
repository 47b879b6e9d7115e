/**
 * Decisions surfacing as 500 (publicly reported as llm-d/llm-d-router#2162): in every phase of a request what the
 * gateway decides is a typed answer of the outcome table, in the wire's own shape. Refusals at shutdown are in
 * `case-shutdown.test.ts`, those of bad input in `case-bad-input.test.ts`.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  nodeAt,
  queueDepth,
  within,
  type Wish,
} from '../support/case-bench.ts';
import type { Answer } from './cli-fixture.ts';
import {
  completion,
  delta,
  ROLE,
  sendJson,
  streamHead,
  type NodeScript,
  type TestNode,
} from './edge-fixture.ts';

let bench: CaseBench;
/** Answers held back by nodes that wait to be told. */
let held: (() => void)[];
const HOLD: NodeScript = (res) => held.push(() => sendJson(res, 200, completion('hello')));
const MODELS = [{ id: 'tiny', profile: { kind: 'generic', meanMs: 50 } }] as const;

beforeEach(() => {
  bench = createCaseBench();
  held = [];
});

afterEach(() => bench.end());

/** What every refusal must be, whatever its phase. */
function expectTyped(answer: Answer, status: number, reason: string, retry: 'retry' | 'no-retry'): void {
  expect(answer.text, 'no insides').not.toMatch(/\.ts:\d|node_modules|\bat \w+ \(/);
  expect([answer.status, answer.headers['x-spillway-reason']]).toEqual([status, reason]);
  const error = answer.json['error'] as Record<string, unknown>;
  expect(Object.keys(error)).toEqual(expect.arrayContaining(['message', 'type', 'param', 'code']));
  const seconds = answer.headers['retry-after'];
  if (retry === 'no-retry') expect(seconds).toBeUndefined();
  else {
    expect(seconds).toMatch(/^\d+$/);
    expect(Number(seconds)).toBeGreaterThanOrEqual(1);
    expect(Number(seconds)).toBeLessThanOrEqual(60);
    expect(Number(answer.headers['retry-after-ms'])).toBeGreaterThan(0);
  }
}

async function finish(started: StartedGateway, running: readonly Promise<Answer>[]): Promise<void> {
  const release = setInterval(() => held.splice(0).forEach((answer) => answer()), 5);
  for (const answer of await Promise.all(running)) expect(answer.status).not.toBe(500);
  clearInterval(release);
  await expectAllReleased(started);
}

/** One node that is busy until told, and requests that wait for it. */
async function busy(
  wishes: readonly Wish[],
  config: ConfigInput = {},
): Promise<{ started: StartedGateway; waiting: Promise<Answer>[] }> {
  const node = await bench.node(HOLD);
  const started = await bench.gateway({ nodes: [nodeAt('one', node)], models: MODELS, ...config });
  const waiting = [ask(started.dataUrl)];
  await within(5_000, 'the node is busy', () => held.length === 1);
  for (const [index, wish] of wishes.entries()) {
    waiting.push(ask(started.dataUrl, wish));
    await within(5_000, 'it waits', async () => (await queueDepth(started)) === index + 1);
  }
  return { started, waiting };
}

describe('a decision at arrival', () => {
  const LOW = { className: 'low' };
  const CRITICAL = { className: 'critical' };

  it('of a full queue is 429, or what the configuration says', async () => {
    for (const overloadStatus of [429, 503] as const) {
      const config = {
        bounds: { tasksMax: 2, classShareMax: 1, tenantShareMax: 1 },
        server: { overloadStatus },
      };
      const { started, waiting } = await busy([CRITICAL, CRITICAL], config);
      expectTyped(await ask(started.dataUrl, LOW), overloadStatus, 'queue-full', 'retry');
      await finish(started, waiting);
    }
  });

  it('of a queue that the deadline could not survive is 429', async () => {
    const { started, waiting } = await busy([{}, {}], { admission: { flowWaitMsMax: 60 } });
    expectTyped(await ask(started.dataUrl), 429, 'deadline-infeasible', 'retry');
    await finish(started, waiting);
  });

  it('that no node can do it in time is 429 without a time to come back', async () => {
    const { started, waiting } = await busy([]);
    expectTyped(await ask(started.dataUrl, { deadlineMs: 1 }), 429, 'too-slow', 'no-retry');
    await finish(started, waiting);
  });

  it('that no node is there is 503', async () => {
    const started = await bench.gateway({ models: MODELS });
    expectTyped(await ask(started.dataUrl), 503, 'no-node', 'retry');
    await expectAllReleased(started);
  });

  it('to protect the gateway itself is 503', async () => {
    const { started, waiting } = await busy([]);
    started.gateway.setSurvival(1);
    expectTyped(await ask(started.dataUrl, LOW), 503, 'self-protection', 'retry');
    started.gateway.setSurvival(0);
    await finish(started, waiting);
  });
});

describe('a decision while it waits', () => {
  it('for a more important one is 429', async () => {
    const config = { bounds: { tasksMax: 2, classShareMax: 1, tenantShareMax: 1 } };
    const { started, waiting } = await busy([{ className: 'low' }, { className: 'low' }], config);
    waiting.push(ask(started.dataUrl, { className: 'critical' }));
    expectTyped(await (waiting[2] as Promise<Answer>), 429, 'evicted', 'retry');
    await finish(started, waiting);
  });

  it('that the deadline can no longer be met is 429', async () => {
    const { started, waiting } = await busy([{ deadlineMs: 250 }]);
    expectTyped(await (waiting[1] as Promise<Answer>), 429, 'wait-expired', 'retry');
    await finish(started, waiting);
  });

  it('that the last node left is 503', async () => {
    const { started, waiting } = await busy([{}]);
    await started.gateway.removeNode('one');
    held.splice(0).forEach((answer) => answer());
    expect((await (waiting[0] as Promise<Answer>)).status).toBe(200);
    expectTyped(await (waiting[1] as Promise<Answer>), 503, 'no-node', 'retry');
    await expectAllReleased(started);
  });

  it('after the status was committed stands in the stream, and nothing says that it is done', async () => {
    const { started, waiting } = await busy([{ stream: true, deadlineMs: 250 }], {
      server: { earlyCommitMs: 20 },
    });
    const answer = await (waiting[1] as Promise<Answer>);
    expect(answer.status).toBe(200);
    expect(answer.text).toMatch(/data: \{"error":\{.*"reason":"wait-expired".*\}\}\n\n$/);
    expect(answer.text).not.toContain('[DONE]');
    await finish(started, waiting);
  });
});

describe('a decision while a node has it', () => {
  async function withNodes(
    ...scripts: NodeScript[]
  ): Promise<{ started: StartedGateway; nodes: TestNode[] }> {
    const nodes = await Promise.all(scripts.map((script) => bench.node(script)));
    const started = await bench.gateway({
      nodes: nodes.map((node, index) => nodeAt(`n${index}`, node)),
      models: MODELS,
    });
    return { started, nodes };
  }

  it('that cannot be connected to is 502', async () => {
    const started = await bench.gateway({
      nodes: [nodeAt('gone', { url: 'http://127.0.0.1:9' })],
      models: MODELS,
    });
    expectTyped(await ask(started.dataUrl), 502, 'node-failed', 'retry');
    await expectAllReleased(started);
  });

  it.each<[string, NodeScript]>([
    ['resets', (res) => res.destroy()],
    ['itself says 500', (res) => sendJson(res, 500, { error: { message: 'CUDA out of memory' } })],
    ['answers with garbage', (res) => res.end('<html>')],
    [
      'breaks off its body',
      (res) => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': '900' });
        res.write('{"id":1', () => res.destroy());
      },
    ],
  ])('that %s is 502', async (_title, script) => {
    const { started } = await withNodes(script);
    const answer = await ask(started.dataUrl);
    expectTyped(answer, 502, 'node-failed', 'retry');
    expect(answer.text).not.toContain('CUDA');
    await expectAllReleased(started);
  });

  it('that stays silent is 504 at the deadline', async () => {
    const { started } = await withNodes(() => undefined);
    expectTyped(await ask(started.dataUrl, { deadlineMs: 300 }), 504, 'node-timeout', 'retry');
    await expectAllReleased(started);
  });

  it('for a body that broke two nodes is 422, and no node sees that body again', async () => {
    const breaks: NodeScript = (res) => res.destroy();
    const { started, nodes } = await withNodes(breaks, breaks, breaks);
    const calls = (): number =>
      nodes.flatMap((node) => node.seen).filter((row) => row.method === 'POST').length;
    expectTyped(await ask(started.dataUrl), 422, 'poison', 'no-retry');
    expect(calls(), 'the third one is spared').toBe(2);
    const before = calls();
    expectTyped(await ask(started.dataUrl), 422, 'poison', 'no-retry');
    expect(calls()).toBe(before);
    await expectAllReleased(started);
  });

  it('after content reached the client stands in the stream, and nothing says that it is done', async () => {
    const { started } = await withNodes((res) => {
      streamHead(res);
      res.write(ROLE + delta({ content: 'half' }), () => res.destroy());
    });
    const answer = await ask(started.dataUrl, { stream: true });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('half');
    expect(answer.text).toMatch(/data: \{"error":\{.*"reason":"node-failed".*\}\}\n\n$/);
    expect(answer.text).not.toContain('[DONE]');
    await expectAllReleased(started);
  });
});

describe('a decision between two attempts', () => {
  it('that the deadline passed while the other node was busy is typed, and the broken one is not asked again', async () => {
    const slow = await bench.node(HOLD);
    let broken = 0;
    const breaking = await bench.node((res) => {
      broken += 1;
      res.destroy();
    });
    const started = await bench.gateway({
      nodes: [nodeAt('slow', slow), nodeAt('breaking', breaking)],
      models: MODELS,
    });
    await started.gateway.setCordoned('breaking', true);
    const running = ask(started.dataUrl);
    await within(5_000, 'the slow node is busy', () => held.length === 1);
    await started.gateway.setCordoned('breaking', false);
    expectTyped(await ask(started.dataUrl, { deadlineMs: 400 }), 429, 'wait-expired', 'retry');
    expect(broken).toBe(1);
    await finish(started, [running]);
  });
});
