/** The embedding node itself: a real model in a real process over a real socket. */
import { spawnSync } from 'node:child_process';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EngineProcess, spawnEngine } from '../../engines/common/spawn.ts';

const MODEL = 'embeddings-en';
const START_MS_MAX = 60_000;

let engine: EngineProcess;
let client: OpenAI;

beforeAll(async () => {
  engine = await spawnEngine('embedding');
  client = new OpenAI({ baseURL: `${engine.url}/v1`, apiKey: 'none', maxRetries: 0 });
}, START_MS_MAX);

afterAll(async () => {
  await engine.stop();
});

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]): number =>
    x.reduce((sum, value, index) => sum + value * (y[index] ?? 0), 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function post(body: unknown): Promise<{ status: number; body: { error?: { message: string } } }> {
  const response = await fetch(`${engine.url}/v1/embeddings`, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as { error?: { message: string } } };
}

describe('embedding node', () => {
  test('answers the OpenAI client with one vector per input, in order, and counts tokens', async () => {
    const input = ['A cat sits on the mat', 'A kitten rests on a rug', 'Quarterly revenue fell'];
    const answer = await client.embeddings.create({ model: MODEL, input });
    expect(answer.data.map((row) => row.index)).toEqual([0, 1, 2]);
    expect(answer.data.map((row) => row.embedding.length)).toEqual([512, 512, 512]);
    expect(answer.usage.prompt_tokens).toBeGreaterThan(input.length);
    expect(answer.usage.total_tokens).toBe(answer.usage.prompt_tokens);
    const [cat, kitten, revenue] = answer.data.map((row) => row.embedding);
    // A real model: related sentences lie closer than unrelated ones.
    expect(cosine(cat ?? [], kitten ?? [])).toBeGreaterThan(cosine(cat ?? [], revenue ?? []) + 0.2);
  });

  test('gives the same vector for a text alone, in a batch, as floats and as base64', async () => {
    const alone = await client.embeddings.create({ model: MODEL, input: 'hello', encoding_format: 'float' });
    const batch = await client.embeddings.create({ model: MODEL, input: ['other words', 'hello'] });
    expect(batch.data[1]?.embedding).toEqual(alone.data[0]?.embedding);
  });

  test('lists its model and answers its health page', async () => {
    const models = await client.models.list();
    expect(models.data.map((model) => model.id)).toEqual([MODEL]);
    expect((await fetch(`${engine.url}/health`)).status).toBe(200);
  });

  test('answers its health page, however late, while it computes', async () => {
    const input = Array.from({ length: 40 }, (_, index) => `sentence number ${index}`);
    const batch = client.embeddings.create({ model: MODEL, input });
    const health = fetch(`${engine.url}/health`);
    expect((await health).status).toBe(200);
    expect((await batch).data.length).toBe(input.length);
  });

  test('answers other requests after a client left one in the middle', async () => {
    const abort = new AbortController();
    const many = Array.from({ length: 200 }, (_, index) => `sentence number ${index}`);
    const left = client.embeddings.create({ model: MODEL, input: many }, { signal: abort.signal });
    const first = client.embeddings.create({ model: MODEL, input: 'a request beside it' });
    abort.abort();
    await expect(left).rejects.toThrow(OpenAI.APIUserAbortError);
    expect((await first).data.length).toBe(1);
  });

  test.each([
    ['an unknown model', { model: 'nope', input: 'x' }, 404],
    ['no model', { input: 'x' }, 400],
    ['no input', { model: MODEL }, 400],
    ['an empty array', { model: MODEL, input: [] }, 400],
    ['an empty string', { model: MODEL, input: '' }, 400],
    ['token numbers', { model: MODEL, input: [1, 2] }, 400],
    ['257 inputs', { model: MODEL, input: Array(257).fill('x') }, 400],
    ['an unknown encoding', { model: MODEL, input: 'x', encoding_format: 'hex' }, 400],
    ['other dimensions', { model: MODEL, input: 'x', dimensions: 64 }, 400],
    ['a body that is no object', 'text', 400],
  ])('refuses %s with a typed error', async (_name, body, status) => {
    const answer = await post(body);
    expect(answer.status).toBe(status);
    expect(answer.body.error?.message).not.toBe('');
  });

  test('ends with the process that spawned it, also when that one is killed', async () => {
    const spawner = new URL('../../engines/common/spawn.ts', import.meta.url).href;
    const script =
      `const { spawnEngine } = await import('${spawner}');` +
      "console.log((await spawnEngine('embedding')).pid); process.kill(process.pid, 'SIGKILL');";
    const parent = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    const pid = Number(parent.stdout);
    expect(parent.signal).toBe('SIGKILL');
    expect(pid).toBeGreaterThan(0);
    while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
  });
});
