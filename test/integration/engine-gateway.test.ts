/**
 * Real engines behind the real gateway, over real sockets: what a client gets through the gateway is what the node gives,
 * and what a client does is felt by the node. The part with the LLM engine is left out when it is not installed.
 */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { llamaEngineMissing } from '../../engines/llama/installation.ts';
import { type EngineProcess, spawnEngine } from '../../engines/common/spawn.ts';
import { type StartedGateway, startGateway } from '../../src/apps/gateway/start-gateway.ts';
import { type NodeInput, resolveConfig } from '../../src/core/config/index.ts';

const POLL_MS = 10;
const LONG_TOKENS = 3_000;

async function gatewayOver(nodes: readonly NodeInput[]): Promise<StartedGateway> {
  const resolved = resolveConfig({ server: { port: 0 }, nodes });
  if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
  return await startGateway(resolved.config);
}

function clientOf(url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
}

/** Asks until it holds; the test's own time limit ends a wait that never does. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

describe('an embedding node behind the gateway', () => {
  const model = 'embeddings-en';
  let engine: EngineProcess;
  let gateway: StartedGateway;

  beforeAll(async () => {
    engine = await spawnEngine('embedding');
    gateway = await gatewayOver([{ id: 'embedding', url: engine.url, protocol: 'openai' }]);
  });

  afterAll(async () => {
    await gateway.stop();
    await engine.stop();
  });

  test.each(['float', 'base64', undefined] as const)(
    'gives the vectors of the node, encoding %s',
    async (encoding) => {
      const ask = {
        model,
        input: ['A cat sits on the mat', 'Quarterly revenue fell'],
        ...(encoding === undefined ? {} : { encoding_format: encoding }),
      };
      const through = await clientOf(gateway.dataUrl).embeddings.create(ask);
      const direct = await clientOf(engine.url).embeddings.create(ask);
      expect(through).toEqual(direct);
      expect(through.data.length).toBe(2);
    },
  );

  test('stays in rotation while it computes and answers no probe', async () => {
    const input = Array.from({ length: 60 }, (_, index) => `sentence number ${index}`);
    const client = clientOf(gateway.dataUrl);
    const answers = await Promise.all([1, 2, 3, 4].map(() => client.embeddings.create({ model, input })));
    expect(answers.map((answer) => answer.data.length)).toEqual([60, 60, 60, 60]);
    const [node] = gateway.gateway.nodes();
    expect(node?.state).toBe('active');
    await until(() => gateway.gateway.nodes()[0]?.inflight === 0);
  });
});

describe.skipIf(llamaEngineMissing() !== undefined)('a batching llama node behind the gateway', () => {
  const model = 'tiny-llama';
  const messages = [{ role: 'user' as const, content: 'the people said' }];
  let engine: EngineProcess;
  let gateway: StartedGateway;
  let client: OpenAI;

  beforeAll(async () => {
    engine = await spawnEngine('llama', ['--parallel', '2']);
    gateway = await gatewayOver([{ id: 'llama', url: engine.url, protocol: 'llama.cpp' }]);
    client = clientOf(gateway.dataUrl);
    // A new node starts with a small share; it gets both of its slots by serving.
    await until(async () => {
      await client.chat.completions.create({ model, messages, max_tokens: 1 });
      return gateway.gateway.nodes()[0]?.slots === 2;
    });
  });

  afterAll(async () => {
    await gateway.stop();
    await engine.stop();
  });

  async function reading(name: string): Promise<number> {
    const text = await (await fetch(`${engine.url}/metrics`)).text();
    return Number(new RegExp(`^llamacpp:${name} (\\d+)$`, 'm').exec(text)?.[1]);
  }

  /** Resolves once the first content has arrived; reads on in the background until the signal ends it. */
  async function streamUntilContent(signal: AbortSignal): Promise<void> {
    const ask = { model, messages, max_tokens: LONG_TOKENS, stream: true as const };
    const stream = await client.chat.completions.create(ask, { signal });
    const chunks = stream[Symbol.asyncIterator]();
    for (let chunk = await chunks.next(); !chunk.done; chunk = await chunks.next()) {
      if (chunk.value.choices[0]?.delta.content) break;
    }
    void (async () => {
      for (let chunk = await chunks.next(); !chunk.done; ) chunk = await chunks.next();
    })().catch(() => undefined);
  }

  test('streams the text that the node gives for the same seed, and its usage when asked', async () => {
    const ask = { model, messages, max_tokens: 20, seed: 11 };
    const direct = await clientOf(engine.url).chat.completions.create(ask);
    const stream = await client.chat.completions.create({
      ...ask,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe(direct.choices[0]?.message.content);
    expect(usage).toEqual(direct.usage);
  });

  test('hides the usage chunk from a client that did not ask for it', async () => {
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 5, stream: true });
    for await (const chunk of stream) {
      expect(chunk.choices.length, 'only the usage chunk has no choice').toBe(1);
      expect(chunk.usage ?? undefined).toBeUndefined();
    }
  });

  test('runs two streams at once and keeps a third in the gateway, not in the engine', async () => {
    const leave = [new AbortController(), new AbortController()];
    await Promise.all(leave.map((abort) => streamUntilContent(abort.signal)));
    expect(await reading('requests_processing')).toBe(2);
    const third = client.chat.completions.create({ model, messages, max_tokens: 3 });
    await until(() => gateway.gateway.queue().depth === 1);
    expect(await reading('requests_deferred')).toBe(0);
    leave[0]?.abort();
    expect((await third).usage?.completion_tokens).toBe(3);
    leave[1]?.abort();
    await until(async () => (await reading('requests_processing')) === 0);
    await until(() => gateway.gateway.nodes()[0]?.inflight === 0);
  });

  test('frees the sequence of a client that leaves, long before its answer would have ended', async () => {
    const abort = new AbortController();
    const before = await reading('tokens_predicted_total');
    await streamUntilContent(abort.signal);
    abort.abort();
    await until(async () => (await reading('requests_processing')) === 0);
    expect((await reading('tokens_predicted_total')) - before).toBeLessThan(LONG_TOKENS / 2);
    await until(() => gateway.gateway.nodes()[0]?.inflight === 0);
    expect(gateway.gateway.queue().depth).toBe(0);
  });
});
