/** The batching LLM node itself: a real engine in a real process over a real socket. Left out when not installed. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { llamaEngineMissing } from '../../engines/llama/installation.ts';
import { type EngineProcess, spawnEngine } from '../../engines/common/spawn.ts';

const MODEL = 'tiny-llama';
const LONG_TOKENS = 3_000;
const POLL_MS = 10;

const messages = [{ role: 'user' as const, content: 'the people said' }];

describe.skipIf(llamaEngineMissing() !== undefined)('llama node', () => {
  let engine: EngineProcess;
  let client: OpenAI;

  beforeAll(async () => {
    engine = await spawnEngine('llama', ['--parallel', '2']);
    client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });

  afterAll(async () => {
    expect(await engine.stop(), 'the engine ends with code 0').toBe(0);
  });

  async function reading(name: string): Promise<number> {
    const text = await (await fetch(`${engine.url}/metrics`)).text();
    return Number(new RegExp(`^llamacpp:${name} (\\d+)$`, 'm').exec(text)?.[1]);
  }

  /** Asks until it holds; the test's own time limit ends a wait that never does. */
  async function until(holds: () => Promise<boolean>): Promise<void> {
    while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }

  test('answers a chat with text, usage and the reason it ended', async () => {
    const answer = await client.chat.completions.create({ model: MODEL, messages, max_tokens: 12 });
    expect(answer.choices[0]?.message.content).not.toBe('');
    expect(answer.choices[0]?.finish_reason).toBe('length');
    expect(answer.usage?.completion_tokens).toBe(12);
    expect(answer.usage?.prompt_tokens).toBeGreaterThan(5);
    expect(answer.usage?.total_tokens).toBe(12 + (answer.usage?.prompt_tokens ?? 0));
  });

  test('streams the same text as it answers whole, for the same seed', async () => {
    const ask = { model: MODEL, messages, max_tokens: 20, seed: 3 };
    const whole = await client.chat.completions.create(ask);
    let text = '';
    for await (const chunk of await client.chat.completions.create({ ...ask, stream: true })) {
      expect(chunk.usage, 'nobody asked for usage').toBeUndefined();
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe(whole.choices[0]?.message.content);
  });

  test('settles usage in a last chunk of a stream that asks for it', async () => {
    const stream = await client.chat.completions.create({
      model: MODEL,
      messages,
      max_tokens: 7,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.at(-1)?.choices).toEqual([]);
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(7);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('length');
  });

  test('completes a plain prompt and stops at a stop text', async () => {
    const ask = { model: MODEL, prompt: 'the people said', max_tokens: 40, seed: 5 };
    const full = await client.completions.create(ask);
    const words = full.choices[0]?.text.trim().split(' ') ?? [];
    const stop = ` ${words[3]}`;
    const cut = await client.completions.create({ ...ask, stop });
    expect(cut.choices[0]?.finish_reason).toBe('stop');
    expect(full.choices[0]?.text.startsWith(`${cut.choices[0]?.text}${stop}`)).toBe(true);
  });

  test('runs two streams at once, each step in one batch', async () => {
    const order: string[] = [];
    const run = async (name: string): Promise<void> => {
      const stream = await client.chat.completions.create({
        model: MODEL,
        messages,
        max_tokens: 60,
        stream: true,
      });
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) order.push(name);
    };
    await Promise.all([run('a'), run('b')]);
    const firstEnd = Math.min(order.lastIndexOf('a'), order.lastIndexOf('b'));
    const lastStart = Math.max(order.indexOf('a'), order.indexOf('b'));
    expect(lastStart, 'the second stream starts before the first ends').toBeLessThan(firstEnd);
    expect(await reading('requests_processing')).toBe(0);
  });

  test('defers a third stream, and frees the sequence of a client that leaves for it', async () => {
    const leave = [new AbortController(), new AbortController()];
    const streams = await Promise.all(
      leave.map((abort) =>
        client.chat.completions.create(
          { model: MODEL, messages, max_tokens: LONG_TOKENS, stream: true },
          { signal: abort.signal },
        ),
      ),
    );
    const third = client.chat.completions.create({ model: MODEL, messages, max_tokens: 3 });
    await until(async () => (await reading('requests_deferred')) === 1);
    expect(await reading('requests_processing')).toBe(2);
    const before = await reading('tokens_predicted_total');
    leave[0]?.abort();
    expect((await third).usage?.completion_tokens).toBe(3);
    leave[1]?.abort();
    await until(async () => (await reading('requests_processing')) === 0);
    const spent = (await reading('tokens_predicted_total')) - before;
    expect(spent, 'the engine stopped long before the limit').toBeLessThan(LONG_TOKENS);
    expect(streams.length).toBe(2);
  });

  test('forgets a request whose client leaves while it waits inside the engine', async () => {
    const abort = new AbortController();
    const options = { signal: abort.signal };
    const ask = { model: MODEL, messages, max_tokens: LONG_TOKENS };
    const asked = [1, 2, 3].map(() => client.chat.completions.create(ask, options));
    await until(async () => (await reading('requests_deferred')) === 1);
    abort.abort();
    const ends = await Promise.allSettled(asked);
    expect(ends.map((end) => end.status)).toEqual(['rejected', 'rejected', 'rejected']);
    await until(async () => (await reading('requests_processing')) === 0);
    expect(await reading('requests_deferred')).toBe(0);
  });

  test('tells its slots and its health as llama.cpp does', async () => {
    const page = async (path: string): Promise<unknown> => (await fetch(`${engine.url}${path}`)).json();
    expect(await page('/health')).toEqual({ status: 'ok' });
    expect(await page('/props')).toMatchObject({ total_slots: 2 });
    expect(await page('/slots')).toMatchObject([
      { id: 0, is_processing: false },
      { id: 1, is_processing: false },
    ]);
    expect((await client.models.list()).data.map((model) => model.id)).toEqual([MODEL]);
  });

  test('refuses a prompt longer than its context, and an unknown model', async () => {
    const content = 'the people '.repeat(4_000);
    const long = client.chat.completions.create({ model: MODEL, messages: [{ role: 'user', content }] });
    await expect(long).rejects.toThrow(OpenAI.BadRequestError);
    const unknown = client.chat.completions.create({ model: 'nope', messages });
    await expect(unknown).rejects.toThrow(OpenAI.NotFoundError);
  });

  test('answers 503 to requests beyond its own queue', async () => {
    const abort = new AbortController();
    const ask = { model: MODEL, messages, max_tokens: LONG_TOKENS };
    let refused = 0;
    const ends = Array.from({ length: 70 }, () =>
      client.chat.completions.create(ask, { signal: abort.signal }).catch((error: unknown) => {
        if (error instanceof OpenAI.InternalServerError && error.status === 503) refused += 1;
      }),
    );
    await until(async () => refused === 4 && (await reading('requests_deferred')) === 64);
    abort.abort();
    await Promise.all(ends);
    expect(refused, '2 run, 64 wait, 4 of 70 are refused').toBe(4);
    await until(async () => (await reading('requests_processing')) === 0);
  });
});
