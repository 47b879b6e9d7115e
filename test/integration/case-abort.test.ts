/**
 * Abort not propagated (publicly reported as BerriAI/litellm#31499 and ikawrakow/ik_llama.cpp#1929). Phase by phase
 * through the whole gateway; engines that cannot abort are in `edge-abort.test.ts`, the real LLM engine in
 * `engine-gateway.test.ts`.
 */
import { createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  inflightOf,
  nodeAt,
  nodeRow,
  open,
  queueDepth,
  TEXT_MODEL,
  within,
  type Wish,
} from '../support/case-bench.ts';
import { delta, listen, ROLE, streamHead, type NodeScript, type TestNode } from './edge-fixture.ts';

/** The node must see it within this time. */
const ABORT_MS = 1_000;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

async function start(script: NodeScript, slots = 2): Promise<{ node: TestNode; started: StartedGateway }> {
  const node = await bench.node(script);
  const started = await bench.gateway({ nodes: [nodeAt('one', node, { slots })] });
  return { node, started };
}

const posts = (node: TestNode): number => node.seen.filter((row) => row.method === 'POST').length;
const indexOfLast = (node: TestNode): number => node.seen.findLastIndex((row) => row.method === 'POST');

async function felt(node: TestNode): Promise<void> {
  let isAborted = false;
  void node.aborted(indexOfLast(node)).then(() => {
    isAborted = true;
  });
  await within(ABORT_MS, 'the node sees the abort', () => isAborted);
}

describe('a client that leaves', () => {
  it.each<[string, NodeScript, Wish, 'at-once' | 'after-bytes']>([
    ['before the head of a whole answer', () => undefined, {}, 'at-once'],
    ['before the head of a stream', () => undefined, { stream: true }, 'at-once'],
    [
      'after the head and before the first token',
      (res) => {
        streamHead(res);
        res.write(ROLE);
      },
      { stream: true },
      'at-once',
    ],
    [
      'in the middle of a stream',
      (res) => {
        streamHead(res);
        res.write(ROLE + delta({ content: 'on and on' }));
      },
      { stream: true },
      'after-bytes',
    ],
    [
      'in the middle of a whole answer',
      (res) => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
        res.write('{"id":');
      },
      {},
      'at-once',
    ],
  ])('%s is felt by the node within a second', async (_title, script, wish, when) => {
    const { node, started } = await start(script);
    const socket = await open(started.dataUrl, wish);
    const hasBytes = new Promise((resolve) => socket.once('data', resolve));
    await within(5_000, 'the node was called', () => posts(node) === 1);
    if (when === 'after-bytes') await hasBytes;
    socket.destroy();
    await felt(node);
    await expectAllReleased(started);
  });

  it('while it waits costs no call of a node', async () => {
    const { node, started } = await start(() => undefined, 1);
    const running = await open(started.dataUrl);
    await within(5_000, 'the node is busy', () => posts(node) === 1);
    const waiting = await open(started.dataUrl);
    await within(5_000, 'the second waits', async () => (await queueDepth(started)) === 1);
    waiting.destroy();
    await within(ABORT_MS, 'the queue is empty', async () => (await queueDepth(started)) === 0);
    running.destroy();
    await felt(node);
    await expectAllReleased(started);
    expect(posts(node)).toBe(1);
  });

  it('while the gateway connects to the node ends the attempt', async () => {
    // A port that accepts and then stays silent keeps TLS in its handshake: a connection that is still being made.
    const accepted: Socket[] = [];
    const silent = createServer((socket) => accepted.push(socket.on('error', () => undefined)));
    const port = await listen(silent);
    bench.onEnd(() => {
      for (const socket of accepted) socket.destroy();
      silent.close();
    });
    const started = await bench.gateway({ nodes: [nodeAt('one', { url: `https://127.0.0.1:${port}` })] });
    const socket = await open(started.dataUrl);
    await within(5_000, 'the attempt runs', () => inflightOf(started) === 1);
    socket.destroy();
    await within(ABORT_MS, 'the permit is back', () => inflightOf(started) === 0);
    await expectAllReleased(started);
  });

  it('leaves the other requests on that node untouched, and frees its sequence for the next', async () => {
    const fleet = await bench.fleet({
      speedup: 4,
      nodes: [
        {
          id: 'batching',
          kind: 'text',
          model: TEXT_MODEL,
          statedHardware: 'H100',
          trueHardware: 'H100',
          sequencesMax: 2,
        },
      ],
    });
    const [node] = fleet.nodes;
    const started = await bench.gateway({
      nodes: [nodeAt('batching', { url: node?.url ?? '' }, { models: [{ model: TEXT_MODEL }], slots: 2 })],
    });
    const wish = { model: TEXT_MODEL, stream: true, body: { max_tokens: 150 } };
    // A new node opens one seat after the other.
    expect((await ask(started.dataUrl, { ...wish, body: { max_tokens: 2 } })).status).toBe(200);
    const leaving = await open(started.dataUrl, wish);
    const staying = ask(started.dataUrl, wish);
    await within(5_000, 'both run', () => fleet.truth()[0]?.running === 2);
    leaving.destroy();
    await within(ABORT_MS, 'the engine dropped one', () => fleet.truth()[0]?.aborted === 1);
    const next = ask(started.dataUrl, { ...wish, body: { max_tokens: 2 } });
    expect((await next).status, 'its sequence serves the next').toBe(200);
    expect(fleet.truth()[0]?.running, 'while the other still runs').toBe(1);
    const { text } = await staying;
    expect(text.match(/"content":/g)?.length).toBeGreaterThanOrEqual(150);
    expect(text).toContain('[DONE]');
    await expectAllReleased(started);
    expect(await nodeRow(started, 'batching')).toMatchObject({ state: 'active', health: 1 });
  });
});
