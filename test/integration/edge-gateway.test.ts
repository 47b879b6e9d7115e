/** The data plane in the real gateway: official client, real scheduler, real sockets. */
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { type StartedGateway, startGateway } from '../../src/apps/gateway/start-gateway.ts';
import { defaultGatewayConfig } from '../../src/core/config/index.ts';
import {
  CHAT,
  completion,
  DONE,
  delta,
  type NodeScript,
  ROLE,
  sendJson,
  startNode,
  streamHead,
  streamWords,
  type TestNode,
  until,
} from './edge-fixture.ts';

const SLOTS = 4;
const MODELS = ['tiny', 'embed'].map((model) => ({ model }));

let started: StartedGateway;
let nodes: TestNode[] = [];

/** Answers what nodes are asked besides requests, and leaves the requests to the script. */
function withProbes(script: NodeScript): NodeScript {
  return (res, seen) => {
    if (seen.method === 'GET')
      sendJson(res, 200, { object: 'list', data: MODELS.map((row) => ({ id: row.model })) });
    else script(res, seen);
  };
}

async function start(...scripts: NodeScript[]): Promise<OpenAI> {
  nodes = await Promise.all(scripts.map((script) => startNode(withProbes(script))));
  const config = defaultGatewayConfig({
    server: { port: 0 },
    nodes: nodes.map((node, index) => ({
      id: `n${index}`,
      url: node.url,
      protocol: 'openai',
      models: MODELS,
      slots: SLOTS,
      hardware: '',
      labels: {},
      headers: {},
    })),
    scheduler: {
      models: [{ id: 'tiny', aliases: ['gpt-alias'], profile: { kind: 'generic', meanMs: 5 } }],
    },
  });
  started = await startGateway(config);
  return new OpenAI({ baseURL: `${started.dataUrl}/v1`, apiKey: 'any', maxRetries: 0 });
}

const inflight = (): number => started.gateway.nodes().reduce((sum, node) => sum + node.inflight, 0);
const posts = (node: TestNode): number => node.seen.filter((row) => row.method === 'POST').length;

afterEach(async () => {
  await started.stop();
  await Promise.all(nodes.map((node) => node.close()));
});

describe('the official client through the gateway', () => {
  it('gets whole and streamed answers, under an alias too', async () => {
    const client = await start((res, seen) => {
      const body = JSON.parse(seen.body);
      expect(body.model).toBe('tiny');
      if (body.stream === true) streamWords(res, ['hel', 'lo']);
      else sendJson(res, 200, completion('hello'));
    });
    const whole = await client.chat.completions.create({ ...CHAT, model: 'gpt-alias' });
    expect(whole.choices[0]?.message.content).toBe('hello');
    let text = '';
    for await (const chunk of await client.chat.completions.create({ ...CHAT, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe('hello');
    await until(() => inflight() === 0);
  });

  it('gets embeddings equal to those of the node', async () => {
    const data = [{ object: 'embedding', index: 0, embedding: [0.1, 2e-7, -3] }];
    const client = await start((res) => sendJson(res, 200, { object: 'list', data, model: 'embed' }));
    const answer = await client.embeddings.create({ model: 'embed', input: 'x', encoding_format: 'float' });
    expect(answer.data).toEqual(data);
  });

  it('is answered by another node when one breaks, and finds its request in the admin plane', async () => {
    const good: NodeScript = (res) => sendJson(res, 200, completion('good'));
    const client = await start((res) => res.destroy(), good);
    for (let i = 0; i < 4; i++) {
      const { data, response } = await client.chat.completions.create(CHAT).withResponse();
      expect(data.choices[0]?.message.content).toBe('good');
      const id = response.headers.get('x-spillway-id') as string;
      expect(started.gateway.request(id)).toMatchObject({ state: 'served', nodeId: 'n1' });
    }
  });

  it('sees an unknown model and a wrong type as its own errors', async () => {
    const client = await start(() => {});
    await expect(client.chat.completions.create({ ...CHAT, model: 'nope' })).rejects.toBeInstanceOf(
      OpenAI.NotFoundError,
    );
    await expect(client.chat.completions.create({ ...CHAT, messages: 3 as never })).rejects.toBeInstanceOf(
      OpenAI.BadRequestError,
    );
  });

  it('by aborting frees the slot at once', async () => {
    const client = await start((res) => {
      streamHead(res);
      res.write(ROLE + delta({ content: 'on' }));
    });
    const stream = await client.chat.completions.create({ ...CHAT, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'on') stream.controller.abort();
    await until(() => inflight() === 0);
    expect(started.gateway.queue().running).toBe(0);
  });
});

describe('permits', () => {
  // Publicly reported elsewhere as smg-project/smg#2064 and vllm-project/production-stack#1072.
  it('are all back after many mixed cancels, errors and broken answers, and the whole capacity serves again', async () => {
    let calls = 0;
    let isCalm = false;
    const script: NodeScript = (res) => {
      if (isCalm) {
        sendJson(res, 200, completion('calm'));
        return;
      }
      switch (calls++ % 6) {
        case 0:
          sendJson(res, 200, completion('ok'));
          break;
        case 1:
          sendJson(res, 422, { error: { message: 'no' } });
          break;
        case 2:
          res.destroy();
          break;
        case 3:
          sendJson(res, 503, {}, { 'retry-after': '0' });
          break;
        case 4:
          streamHead(res);
          res.end(ROLE + delta({ content: 'x' }) + DONE);
          break;
        default:
          // Says nothing; the client leaves.
          break;
      }
    };
    await start(script, script, script);
    const one = async (index: number): Promise<void> => {
      const leaving = new AbortController();
      if (index % 3 === 0) setTimeout(() => leaving.abort(), index % 40);
      else if (index % 3 === 1) setTimeout(() => leaving.abort(), 300);
      const body = JSON.stringify({ ...CHAT, stream: index % 2 === 0 });
      await fetch(`${started.dataUrl}/v1/chat/completions`, {
        method: 'POST',
        body,
        signal: index % 3 === 2 ? AbortSignal.timeout(500) : leaving.signal,
      })
        .then((answer) => answer.text())
        .catch(() => '');
    };
    for (let round = 0; round < 10; round++) {
      await Promise.all(Array.from({ length: 60 }, (_, index) => one(round * 60 + index)));
    }
    await until(() => inflight() === 0 && started.gateway.queue().depth === 0);
    expect(started.gateway.queue().running).toBe(0);
    expect(started.gateway.dump()).toMatchObject({
      runtime: { liveRequests: 0, permitsReleasedTwice: 0, listenerErrors: 0 },
    });
    isCalm = true;
    const before = nodes.reduce((sum, node) => sum + posts(node), 0);
    let served = 0;
    while (served < SLOTS) {
      const answer = await fetch(`${started.dataUrl}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(CHAT),
      });
      if (answer.status === 200) served++;
      await answer.text();
    }
    expect(nodes.reduce((sum, node) => sum + posts(node), 0)).toBeGreaterThanOrEqual(before + SLOTS);
  });
});
