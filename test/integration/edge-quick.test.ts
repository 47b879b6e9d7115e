/**
 * Connections that are read by ourselves, by node's server, or first by the one and then by the other: a client must not
 * be able to tell.
 */
import { request as httpRequest, Agent } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  CHAT,
  completion,
  type Edge,
  type EdgeOptions,
  openRaw,
  rawExchange,
  rawPost,
  sendJson,
  startEdge,
  startNode,
  type TestNode,
  until,
} from './edge-fixture.ts';

let edge: Edge;
let node: TestNode;
const PATH = '/v1/chat/completions';
const WHOLE = JSON.stringify(CHAT);
const GET_MODELS = 'GET /v1/models HTTP/1.1\r\nhost: localhost\r\n';

async function start(options: EdgeOptions = {}): Promise<void> {
  node = await startNode((res, seen) => sendJson(res, 200, completion(`got ${seen.body.length}`)));
  edge = await startEdge({ nodes: [node], ...options });
}

afterEach(async () => {
  await edge.close();
  expect(edge.gateway.breaches).toEqual([]);
  expect(edge.gateway.live, 'nothing lingers').toBe(0);
});

function statuses(text: string): string[] {
  return Array.from(text.matchAll(/HTTP\/1\.1 (\d{3})/g), (match) => match[1] as string);
}

describe('one connection', () => {
  it('serves usual and unusual requests one after the other', async () => {
    await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    const call = (method: string, path: string, body?: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const req = httpRequest(
          { port: edge.port, host: '127.0.0.1', method, path, agent, headers: { host: 'localhost' } },
          (res) => {
            ports.add(req.socket?.localPort);
            res.resume().on('end', () => resolve(res.statusCode as number));
          },
        );
        req.on('error', reject);
        req.end(body);
      });
    expect(await call('POST', PATH, WHOLE)).toBe(200);
    expect(await call('POST', PATH, WHOLE)).toBe(200);
    expect(await call('GET', '/v1/models')).toBe(200);
    expect(await call('POST', PATH, WHOLE)).toBe(200);
    expect(await call('POST', PATH, '{')).toBe(400);
    agent.destroy();
    expect(ports.size, 'all of them on one connection').toBe(1);
  });

  it('answers requests in order that came in one packet, also across the two readers', async () => {
    await start();
    const text = await rawExchange(
      edge.port,
      `${rawPost(PATH, WHOLE)}${rawPost(PATH, '{}')}${GET_MODELS}\r\n${rawPost(PATH, WHOLE)}${GET_MODELS}connection: close\r\n\r\n`,
    );
    expect(statuses(text)).toEqual(['200', '400', '200', '200', '200']);
  });

  it('gives the same answer wherever the bytes are cut', async () => {
    await start();
    const bytes = rawPost(PATH, WHOLE);
    for (let cut = 1; cut < bytes.length; cut += 7) {
      const socket = connect(edge.port, '127.0.0.1').setNoDelay(true);
      let text = '';
      socket.on('data', (part) => {
        text += part;
      });
      socket.write(bytes.slice(0, cut));
      await new Promise((resolve) => setImmediate(resolve));
      socket.write(bytes.slice(cut));
      await until(() => text.includes(`got ${WHOLE.length}`));
      socket.destroy();
    }
  });

  it('is kept after a refusal when the rest of the body is small, and the next request is read from its start', async () => {
    await start();
    edge.gateway.ready = false;
    const socket = await openRaw(edge.port, rawPost(PATH, WHOLE).slice(0, -10));
    let text = '';
    socket.on('data', (part) => {
      text += part;
    });
    await until(() => statuses(text).length === 1);
    edge.gateway.ready = true;
    socket.write(WHOLE.slice(-10) + rawPost(PATH, WHOLE));
    await until(() => statuses(text).length === 2);
    expect(statuses(text)).toEqual(['503', '200']);
    socket.destroy();
  });

  it('carries bodies of many packets, and large answers, whole', async () => {
    const large = 'y'.repeat(300_000);
    node = await startNode((res, seen) => sendJson(res, 200, completion(`${seen.body.length} ${large}`)));
    edge = await startEdge({ nodes: [node] });
    const body = JSON.stringify({ ...CHAT, messages: [{ role: 'user', content: 'x'.repeat(200_000) }] });
    const answer = await fetch(`${edge.url}${PATH}`, { method: 'POST', body });
    const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
    expect(choices[0]?.message.content).toBe(`${body.length} ${large}`);
  });
});

describe('a client that closes', () => {
  it('its own side only, before the answer, is taken as gone', async () => {
    await start();
    edge.gateway.isHolding = true;
    const socket = await openRaw(edge.port, rawPost(PATH, WHOLE));
    await until(() => edge.gateway.live === 1);
    socket.end();
    await until(() => edge.gateway.live === 0);
    expect(edge.gateway.outcomes).toEqual([{ kind: 'cancelled' }]);
  });

  it('after it sent a second request ahead is noticed all the same', async () => {
    await start();
    edge.gateway.isHolding = true;
    const socket = await openRaw(edge.port, rawPost(PATH, WHOLE) + rawPost(PATH, WHOLE));
    await until(() => edge.gateway.live === 1);
    socket.destroy();
    await until(() => edge.gateway.live === 0);
  });

  it('in the middle of its body leaves nothing behind', async () => {
    await start();
    const socket = await openRaw(edge.port, rawPost(PATH, WHOLE).slice(0, -5));
    socket.destroy();
    await until(() => edge.metricCalls.some(([name, open]) => name === 'connections' && open === 0));
    expect(edge.gateway.specs).toEqual([]);
  });
});

describe('bodies that are being read', () => {
  it('are bounded together, and the bound is free again when they are gone', async () => {
    await start({ config: { scheduler: { bounds: { bytesMax: 1_000 } } } });
    const half = 'x'.repeat(600);
    const first = await openRaw(edge.port, rawPost(PATH, `${half}${half}`).slice(0, -half.length));
    const refused = await rawExchange(edge.port, rawPost(PATH, half.repeat(2), 'connection: close\r\n'));
    expect(statuses(refused)).toEqual(['503']);
    first.destroy();
    await until(() => edge.metricCalls.some(([name, open]) => name === 'connections' && open === 0));
    expect((await fetch(`${edge.url}${PATH}`, { method: 'POST', body: WHOLE })).status).toBe(200);
  });
});

describe('a gateway that stops', () => {
  it('closes idle connections at once and the others after their answer', async () => {
    await start();
    const idle = await openRaw(edge.port, rawPost(PATH, WHOLE));
    await new Promise((resolve) => idle.once('data', resolve));
    const idleClosed = new Promise((resolve) => idle.once('close', resolve));
    edge.gateway.isHolding = true;
    const busy = rawExchange(edge.port, rawPost(PATH, WHOLE));
    await until(() => edge.gateway.live === 1);
    const closed = edge.plane.close();
    await idleClosed;
    edge.gateway.release();
    const text = await busy;
    expect(statuses(text)).toEqual(['200']);
    expect(text).toContain('connection: close');
    await closed;
  });
});
