/**
 * A client that leaves is felt by the node in every phase (publicly reported elsewhere as BerriAI/litellm#31499,
 * ikawrakow/ik_llama.cpp#1929 and, for queued requests, BerriAI/litellm#20059).
 */
import { createServer, type Server as NetServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  CHAT,
  completion,
  DONE,
  delta,
  type Edge,
  type EdgeOptions,
  listen,
  type NodeScript,
  openRaw,
  ROLE,
  rawPost,
  sendJson,
  startEdge,
  startNode,
  streamHead,
  type TestNode,
  until,
} from './edge-fixture.ts';

let edge: Edge;
let node: TestNode;

async function start(script: NodeScript, options: EdgeOptions = {}): Promise<void> {
  node = await startNode(script);
  edge = await startEdge({ nodes: [node], ...options });
}

const STREAM = JSON.stringify({ ...CHAT, stream: true });
const WHOLE = JSON.stringify(CHAT);
const PATH = '/v1/chat/completions';

afterEach(async () => {
  await edge.close();
  expect(edge.gateway.breaches).toEqual([]);
  expect(edge.gateway.results.length, 'one end per assignment').toBe(edge.gateway.assignments);
  expect(edge.gateway.live, 'nothing lingers').toBe(0);
});

describe('a client that leaves', () => {
  it('while queued is taken off the queue, and no node is called', async () => {
    await start(() => {});
    edge.gateway.isHolding = true;
    const socket = await openRaw(edge.port, rawPost(PATH, WHOLE));
    await until(() => edge.gateway.live === 1);
    socket.destroy();
    await until(() => edge.gateway.live === 0);
    edge.gateway.release();
    expect(edge.gateway.outcomes).toEqual([{ kind: 'cancelled' }]);
    expect(node.seen.length).toBe(0);
  });

  it('while the gateway connects to the node releases the permit without a request', async () => {
    // A listener whose backlog is full answers no connection attempt; a port that never accepts behaves the same.
    const silent: NetServer = createServer({ pauseOnConnect: true });
    const port = await listen(silent);
    const connected: import('node:net').Socket[] = [];
    silent.on('connection', (socket) => connected.push(socket));
    // TLS against a silent port stays in the handshake, which is a connection that is still being made.
    node = await startNode(() => {});
    edge = await startEdge({ nodes: [{ ...node, url: `https://127.0.0.1:${port}` }] });
    const socket = await openRaw(edge.port, rawPost(PATH, WHOLE));
    await until(() => edge.gateway.assignments === 1 && connected.length === 1);
    socket.destroy();
    await until(() => edge.gateway.live === 0);
    expect(edge.gateway.results).toEqual([{ kind: 'aborted' }]);
    for (const open of connected) open.destroy();
    silent.close();
  });

  it('before the first token closes the connection to the node', async () => {
    await start((res) => {
      streamHead(res);
      res.write(ROLE);
    });
    const socket = await openRaw(edge.port, rawPost(PATH, STREAM));
    await until(() => node.seen.length === 1);
    socket.destroy();
    await node.aborted(0);
    expect(edge.gateway.results).toEqual([{ kind: 'aborted' }]);
  });

  it('in the middle of a stream closes the connection to the node', async () => {
    await start((res) => {
      streamHead(res);
      res.write(delta({ content: 'a' }));
    });
    const socket = await openRaw(edge.port, rawPost(PATH, STREAM));
    await new Promise((resolve) => socket.once('data', resolve));
    socket.destroy();
    await node.aborted(0);
    expect(edge.gateway.results).toEqual([{ kind: 'aborted', passed: { outputTokens: 1 } }]);
  });

  it('during a whole answer closes the connection to the node', async () => {
    await start(() => {});
    const socket = await openRaw(edge.port, rawPost(PATH, WHOLE));
    await until(() => node.seen.length === 1);
    socket.destroy();
    await node.aborted(0);
    expect(edge.gateway.results).toEqual([{ kind: 'aborted' }]);
  });

  it('leaves other requests on that node alone', async () => {
    const answers: (() => void)[] = [];
    await start((res) => answers.push(() => sendJson(res, 200, completion('kept'))));
    const leaving = await openRaw(edge.port, rawPost(PATH, WHOLE));
    const staying = fetch(`${edge.url}${PATH}`, { method: 'POST', body: WHOLE });
    await until(() => answers.length === 2);
    leaving.destroy();
    await until(() => edge.gateway.results.length === 1);
    for (const answer of answers) answer();
    expect(await (await staying).json()).toMatchObject({ choices: [{ message: { content: 'kept' } }] });
  });

  it('holds the slot of an engine that cannot abort until that engine has really ended', async () => {
    let finish = (): void => {};
    await start((res) => {
      streamHead(res);
      res.write(delta({ content: 'a' }));
      finish = () => res.end(DONE);
    });
    edge.gateway.abortFreesSlot = false;
    const socket = await openRaw(edge.port, rawPost(PATH, STREAM));
    await new Promise((resolve) => socket.once('data', resolve));
    socket.destroy();
    await until(() => [...edge.gateway.tasks.values()].every((task) => task.isCancelled));
    expect(edge.gateway.results, 'the engine is still busy').toEqual([]);
    finish();
    await until(() => edge.gateway.results.length === 1);
    expect(edge.gateway.results).toEqual([{ kind: 'aborted', passed: { outputTokens: 1 } }]);
  });
});

describe('the scheduler giving up', () => {
  it('at the deadline closes the node and answers the client with the reason', async () => {
    await start(() => {});
    const answer = fetch(`${edge.url}${PATH}`, { method: 'POST', body: WHOLE });
    await until(() => node.seen.length === 1);
    edge.gateway.finish({ kind: 'failed', reason: 'node-timeout', hint: { retryable: true, afterUs: 0 } });
    const refused = await answer;
    expect(refused.status).toBe(504);
    expect(refused.headers.get('x-spillway-reason')).toBe('node-timeout');
    await node.aborted(0);
  });

  it('answers at once although the engine cannot abort', async () => {
    let finish = (): void => {};
    await start((res) => {
      finish = () => sendJson(res, 200, completion('late'));
    });
    edge.gateway.abortFreesSlot = false;
    const answer = fetch(`${edge.url}${PATH}`, { method: 'POST', body: WHOLE });
    await until(() => node.seen.length === 1);
    edge.gateway.finish({ kind: 'failed', reason: 'node-timeout', hint: { retryable: true, afterUs: 0 } });
    expect((await answer).status).toBe(504);
    expect(edge.gateway.results).toEqual([]);
    finish();
    await until(() => edge.gateway.results.length === 1);
  });
});
