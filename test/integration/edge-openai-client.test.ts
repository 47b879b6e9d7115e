/** The official client against the data plane: what people's programs do, over real sockets. */
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import {
  CHAT,
  completion,
  type Edge,
  type EdgeOptions,
  type NodeScript,
  SOON,
  sendJson,
  startEdge,
  startNode,
  streamWords,
  type TestNode,
  until,
} from './edge-fixture.ts';

let edge: Edge;
let node: TestNode;

async function start(script: NodeScript, options: EdgeOptions = {}): Promise<OpenAI> {
  node = await startNode(script);
  edge = await startEdge({ ...options, nodes: [node] });
  return new OpenAI({ baseURL: `${edge.url}/v1`, apiKey: 'any', maxRetries: 0 });
}

afterEach(async () => {
  await edge.close();
  expect(edge.gateway.breaches, 'the data plane keeps the contract').toEqual([]);
  expect(edge.gateway.results.length, 'one end per assignment').toBe(edge.gateway.assignments);
});

describe('the official OpenAI client', () => {
  it('gets a chat completion', async () => {
    const client = await start((res) => sendJson(res, 200, completion('hello')));
    const answer = await client.chat.completions.create(CHAT);
    expect(answer.choices[0]?.message.content).toBe('hello');
    expect(answer.usage?.total_tokens).toBe(12);
  });

  it('gets a streamed chat completion without the usage chunk that only the gateway asked for', async () => {
    const client = await start((res) => streamWords(res, ['hel', 'lo']));
    const stream = await client.chat.completions.create({ ...CHAT, stream: true });
    let text = '';
    let usages = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (chunk.usage) usages++;
    }
    expect(text).toBe('hello');
    expect(usages).toBe(0);
    expect(JSON.parse(node.seen[0]?.body ?? '')).toMatchObject({ stream_options: { include_usage: true } });
    await until(() => edge.gateway.results.length === 1);
    expect(edge.gateway.results[0]).toEqual({ kind: 'ok', usage: { promptTokens: 9, outputTokens: 3 } });
  });

  it('keeps the usage chunk when it asks for it', async () => {
    const client = await start((res) => streamWords(res, ['hi']));
    const stream = await client.chat.completions.create({
      ...CHAT,
      stream: true,
      stream_options: { include_usage: true },
    });
    let total = 0;
    for await (const chunk of stream) total += chunk.usage?.total_tokens ?? 0;
    expect(total).toBe(12);
  });

  it('gets embeddings equal to those of the node', async () => {
    const vector = [0.25, -1, 3.5];
    const client = await start((res) =>
      sendJson(res, 200, {
        object: 'list',
        model: 'embed',
        data: [{ object: 'embedding', index: 0, embedding: vector }],
        usage: { prompt_tokens: 2, total_tokens: 2 },
      }),
    );
    const answer = await client.embeddings.create({ model: 'embed', input: 'x', encoding_format: 'float' });
    expect(answer.data[0]?.embedding).toEqual(vector);
    expect(node.seen[0]?.url).toBe('/v1/embeddings');
  });

  it('gets images', async () => {
    const client = await start((res) => sendJson(res, 200, { created: 1, data: [{ b64_json: 'aGk=' }] }));
    const answer = await client.images.generate({ model: 'paint', prompt: 'a cat', size: '1024x1024' });
    expect(answer.data?.[0]?.b64_json).toBe('aGk=');
    expect(edge.gateway.specs[0]?.needs.pixels).toBe(1_048_576);
  });

  it('lists models, and retrieves one whose id holds a slash', async () => {
    const client = await start(() => {});
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toEqual(edge.gateway.known);
    expect((await client.models.retrieve('org/big-model')).id).toBe('org/big-model');
    await expect(client.models.retrieve('nope')).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });

  it('aborting a stream stops the node', async () => {
    const client = await start((res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: {"choices":[{"index":0,"delta":{"content":"on"},"finish_reason":null}]}\n\n');
    });
    const stream = await client.chat.completions.create({ ...CHAT, stream: true });
    for await (const chunk of stream) {
      expect(chunk.choices[0]?.delta.content).toBe('on');
      stream.controller.abort();
    }
    await node.aborted(0);
    await until(() => edge.gateway.live === 0);
    expect(edge.gateway.results).toEqual([{ kind: 'aborted', passed: { outputTokens: 1 } }]);
  });

  it('timing out stops the node', async () => {
    const client = await start(() => {});
    await expect(client.chat.completions.create(CHAT, { timeout: 150 })).rejects.toBeInstanceOf(
      OpenAI.APIConnectionTimeoutError,
    );
    await node.aborted(0);
    await until(() => edge.gateway.live === 0);
  });

  it.each([
    ['a malformed field', { model: 'tiny', messages: 'no' }, OpenAI.BadRequestError, 400],
    ['an unknown model', { ...CHAT, model: 'nope' }, OpenAI.NotFoundError, 404],
  ])('raises its own class of error for %s', async (_title, body, errorClass, status) => {
    const client = await start(() => {});
    const failure = await client.chat.completions.create(body as never).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(errorClass);
    expect(failure).toMatchObject({ status, type: 'invalid_request_error' });
  });

  it('raises a rate-limit error for overload, with a wait that it honours', async () => {
    const client = await start(() => {});
    edge.gateway.isHolding = true;
    const answer = client.chat.completions.create(CHAT).catch((error: unknown) => error);
    await until(() => edge.gateway.live === 1);
    edge.gateway.finish({ kind: 'evicted', reason: 'evicted', hint: SOON });
    const failure = (await answer) as InstanceType<typeof OpenAI.RateLimitError>;
    expect(failure).toBeInstanceOf(OpenAI.RateLimitError);
    expect(failure.code).toBe('overloaded');
    expect(failure.headers.get('x-spillway-reason')).toBe('evicted');
    expect(Number(failure.headers.get('retry-after'))).toBeGreaterThanOrEqual(2);
  });

  it('retries by itself after a retryable refusal, and not after one that says not to', async () => {
    await start((res) => sendJson(res, 200, completion('second time')));
    const client = new OpenAI({ baseURL: `${edge.url}/v1`, apiKey: 'any', maxRetries: 1 });
    edge.gateway.isHolding = true;
    const retried = client.chat.completions.create(CHAT);
    await until(() => edge.gateway.live === 1);
    edge.gateway.finish({
      kind: 'rejected',
      reason: 'queue-full',
      hint: { retryable: true, afterUs: 1_000 },
    });
    edge.gateway.isHolding = false;
    expect((await retried).choices[0]?.message.content).toBe('second time');

    edge.gateway.isHolding = true;
    const refused = client.chat.completions.create(CHAT).catch((error: unknown) => error);
    await until(() => edge.gateway.live === 1);
    const before = edge.gateway.specs.length;
    edge.gateway.finish({ kind: 'rejected', reason: 'too-slow', hint: { retryable: false, afterUs: 0 } });
    expect(await refused).toBeInstanceOf(OpenAI.RateLimitError);
    expect(edge.gateway.specs.length).toBe(before);
  });

  it('raises an error inside a stream that fails after content', async () => {
    const client = await start((res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: {"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":null}]}\n\n');
      setImmediate(() => res.destroy());
    });
    const stream = await client.chat.completions.create({ ...CHAT, stream: true });
    let text = '';
    const read = async (): Promise<void> => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    };
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
    expect(text).toBe('half');
  });
});
