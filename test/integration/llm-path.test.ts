/**
 * The path of language models over real sockets: emulated batching nodes with a load page as vLLM has it, behind the real
 * gateway, used by the official client. The emulator's own account says what the nodes really did.
 */
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import type { WorkProfile } from '../../src/core/config/types.ts';
import type { WireNode } from '../../src/edge/admin/views.ts';
import { type EmulatedFleet, type EmulatedNodeInput, type Hardware } from '../../src/emulator/index.ts';
import { TEXT_MODELS } from '../../src/emulator/hardware.ts';
import {
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  TEXT_MODEL,
  within,
} from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';

/** Emulated seconds per second: a token takes about 2 ms on the emulated A100. */
const SPEEDUP = 20;
const messages = [{ role: 'user' as const, content: 'Say something long, please' }];

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

function profile(): WorkProfile {
  const { stepMs, perSequenceMs, prefillMsPerToken } = TEXT_MODELS.A100;
  return {
    kind: 'llm',
    fixedMs: 0,
    prefillMsPerToken: prefillMsPerToken / SPEEDUP,
    decodeMsPerToken: (stepMs + perSequenceMs) / SPEEDUP,
  };
}

function textNode(
  id: string,
  hardware: Hardware,
  change: Partial<EmulatedNodeInput> = {},
): EmulatedNodeInput {
  return { id, kind: 'text', model: TEXT_MODEL, statedHardware: hardware, trueHardware: hardware, ...change };
}

interface Llm {
  readonly fleet: EmulatedFleet;
  readonly started: StartedGateway;
  readonly client: OpenAI;
}

async function start(nodes: readonly EmulatedNodeInput[], config: ConfigInput = {}): Promise<Llm> {
  const fleet = await bench.fleet({ speedup: SPEEDUP, nodes });
  const started = await bench.gateway({
    models: [{ id: TEXT_MODEL, profile: profile() }],
    ...config,
    nodes: fleet.nodes.map(({ id, url, spec }) => ({
      id,
      url,
      protocol: 'vllm' as const,
      hardware: spec.statedHardware,
      labels: { emulated: 'yes' },
    })),
  });
  await within(5_000, 'the nodes have named their model', () =>
    started.gateway.models().includes(TEXT_MODEL),
  );
  return { fleet, started, client: clientOf(started.dataUrl) };
}

function clientOf(url: string): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
}

interface Ask {
  readonly tokens: number;
  readonly deadlineMs?: number;
  readonly usage?: boolean;
  readonly signal?: AbortSignal;
  readonly onContent?: () => void;
}

interface Streamed {
  readonly pieces: number;
  readonly finish: string;
  readonly usage: OpenAI.CompletionUsage | undefined;
}

async function stream(client: OpenAI, ask: Ask): Promise<Streamed> {
  const body = {
    model: TEXT_MODEL,
    messages,
    max_tokens: ask.tokens,
    stream: true as const,
    ...(ask.usage === true ? { stream_options: { include_usage: true } } : {}),
  };
  const chunks = await client.chat.completions.create(body, {
    ...(ask.signal === undefined ? {} : { signal: ask.signal }),
    ...(ask.deadlineMs === undefined
      ? {}
      : { headers: { 'x-spillway-deadline-ms': String(ask.deadlineMs) } }),
  });
  let pieces = 0;
  let finish = '';
  let usage: OpenAI.CompletionUsage | undefined;
  for await (const chunk of chunks) {
    const [choice] = chunk.choices;
    if (choice?.delta.content) {
      pieces += 1;
      ask.onContent?.();
    }
    finish = choice?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  return { pieces, finish, usage };
}

const truthOf = (fleet: EmulatedFleet, id: string): ReturnType<EmulatedFleet['truth']>[number] => {
  const truth = fleet.truth().find((node) => node.id === id);
  if (truth === undefined) throw new Error(`no node ${id}`);
  return truth;
};

async function wireNodes({ started }: Llm): Promise<readonly WireNode[]> {
  const answer = await call(`${started.adminUrl}/spillway/v1/nodes`, { token: started.adminToken });
  return answer.json['nodes'] as readonly WireNode[];
}

/** Load that reaches a node past the gateway, until the returned function ends it. */
function outsideLoad(url: string, requests: number, prompt = 'hi'): () => void {
  const leave = new AbortController();
  const ask = {
    model: TEXT_MODEL,
    messages: [{ role: 'user' as const, content: prompt }],
    max_tokens: 4_000,
    stream: true as const,
  };
  const drain = async (): Promise<void> => {
    const chunks = await clientOf(url).chat.completions.create(ask, { signal: leave.signal });
    const iterator = chunks[Symbol.asyncIterator]();
    for (let chunk = await iterator.next(); !chunk.done; ) chunk = await iterator.next();
  };
  for (let i = 0; i < requests; i++) void drain().catch(() => undefined);
  return () => leave.abort();
}

describe('streams of a language model', () => {
  test('flow with every token, end with their reason, and carry usage to who asked for it', async () => {
    const llm = await start([textNode('a', 'A100')]);
    const asked = await stream(llm.client, { tokens: 40, usage: true });
    expect(asked).toMatchObject({ pieces: 40, finish: 'length', usage: { completion_tokens: 40 } });
    expect(await stream(llm.client, { tokens: 40 })).toMatchObject({ pieces: 40, usage: undefined });
    const whole = await llm.client.chat.completions.create({ model: TEXT_MODEL, messages, max_tokens: 12 });
    expect(whole.usage?.completion_tokens).toBe(12);
    const page = await call(`${llm.started.adminUrl}/metrics`, { token: llm.started.adminToken });
    expect(page.text).toMatch(/spillway_tokens_total\{direction="output",model="emulated-text"\} 92\n/);
    await expectAllReleased(llm.started);
  });

  test('run beside each other on a node, thirty over three nodes, and all of them finish', async () => {
    const llm = await start(['a', 'b', 'c'].map((id) => textNode(id, 'A100')));
    const running = new Map<string, number>();
    const onContent = (): void => {
      for (const node of llm.fleet.truth()) {
        running.set(node.id, Math.max(running.get(node.id) ?? 0, node.running));
      }
    };
    const all = await Promise.all(
      Array.from({ length: 30 }, () => stream(llm.client, { tokens: 60, deadlineMs: 30_000, onContent })),
    );
    expect(all.map(({ pieces }) => pieces)).toEqual(Array<number>(30).fill(60));
    const truth = llm.fleet.truth();
    expect(truth.reduce((sum, node) => sum + node.served, 0)).toBe(30);
    expect(truth.map((node) => [node.served > 0, node.refused, node.running])).toEqual(
      Array<unknown>(3).fill([true, 0, 0]),
    );
    expect(Math.max(...running.values()), 'streams at once on one node').toBeGreaterThan(3);
    await expectAllReleased(llm.started);
  });

  test('teach how fast each node is, within a factor of two of the truth', async () => {
    const llm = await start([textNode('fast', 'H100', { statedHardware: 'A100' }), textNode('slow', 'V100')]);
    // Left alone, the fast one would rightly take nearly everything.
    for (const cordoned of ['slow', 'fast']) {
      for (const { id } of llm.fleet.nodes) await llm.started.gateway.setCordoned(id, id === cordoned);
      for (let round = 0; round < 3; round++) {
        await Promise.all(
          Array.from({ length: 8 }, () => stream(llm.client, { tokens: 40, deadlineMs: 30_000 })),
        );
      }
    }
    const nodes = await wireNodes(llm);
    for (const [id, hardware] of [
      ['fast', 'H100'],
      ['slow', 'V100'],
    ] as const) {
      const node = nodes.find((row) => row.id === id);
      const truth = TEXT_MODELS.A100.stepMs / TEXT_MODELS[hardware].stepMs;
      expect(truthOf(llm.fleet, id).served, `${id} was used`).toBeGreaterThan(4);
      expect((node?.rate ?? 0) / truth, `rate of ${id} over its truth`).toBeGreaterThan(0.5);
      expect((node?.rate ?? 0) / truth, `rate of ${id} over its truth`).toBeLessThan(2);
      expect(node?.rates.map(({ model }) => model)).toEqual([TEXT_MODEL]);
    }
  });

  test('free the sequence on the node when their client leaves, and nothing else on it', async () => {
    const llm = await start([textNode('a', 'A100')]);
    const leave = new AbortController();
    const other = stream(llm.client, { tokens: 150, deadlineMs: 30_000 });
    const left = stream(llm.client, {
      tokens: 4_000,
      deadlineMs: 30_000,
      signal: leave.signal,
      onContent: () => leave.abort(),
    }).catch(() => undefined);
    await left;
    await within(1_000, 'the node saw the abort', () => truthOf(llm.fleet, 'a').aborted === 1);
    expect(await other).toMatchObject({ pieces: 150, finish: 'length' });
    await within(2_000, 'the node is idle', () => truthOf(llm.fleet, 'a').running === 0);
    expect(truthOf(llm.fleet, 'a')).toMatchObject({ served: 1, ghosts: 0, waiting: 0 });
    await expectAllReleased(llm.started);
  });

  test('are bound by their deadline up to the first byte, and not beyond it', async () => {
    const llm = await start([textNode('a', 'A100')]);
    const long = await stream(llm.client, { tokens: 400, deadlineMs: 500 });
    expect(long.pieces, 'takes about 900 ms, and began in time').toBe(400);
    await llm.fleet.setFaults('a', { hang: true });
    const failed = await stream(llm.client, { tokens: 5, deadlineMs: 500 }).catch((error: unknown) => error);
    if (!(failed instanceof OpenAI.APIError)) throw new Error('it did not fail');
    expect(failed.headers?.get('x-spillway-reason')).toBe('node-timeout');
    await expectAllReleased(llm.started);
  });
});

/** Sends one request, and tells whether it waits because the node's own reading says "full". */
async function isClosedByReading({ started, client }: Llm): Promise<boolean> {
  const leave = new AbortController();
  const submit = vi.spyOn(started.gateway, 'submit');
  const asked = stream(client, { tokens: 1, deadlineMs: 5_000, signal: leave.signal }).catch(() => undefined);
  try {
    const ids = await within(2_000, 'it was submitted', () => submit.mock.results[0]?.value);
    const url = `${started.adminUrl}/spillway/v1/requests/${encodeURIComponent(ids.publicId)}`;
    const { json } = await call(url, { token: started.adminToken });
    const [node] = json['nodes'] as readonly { readonly reasons: readonly string[] }[];
    return json['state'] === 'queued' && node?.reasons.includes('reading-full') === true;
  } finally {
    submit.mockRestore();
    leave.abort();
    await asked;
  }
}

describe('the load page of a node', () => {
  test.each([
    ['work that waits inside the engine', { sequencesMax: 2 }, 4, 'hi'],
    ['a cache that is nearly full', { cacheTokensMax: 1_000 }, 1, 'x'.repeat(3_840)],
  ])('closes its room for %s, and opens it again', async (_title, spec, requests, prompt) => {
    const llm = await start([textNode('busy', 'A100', spec)]);
    await stream(llm.client, { tokens: 2 });
    const end = outsideLoad(llm.fleet.nodes[0]?.url ?? '', requests, prompt);
    await within(15_000, 'the room is closed by the reading', () => isClosedByReading(llm));
    end();
    const served = await stream(llm.client, { tokens: 3, deadlineMs: 20_000 });
    expect(served.pieces).toBe(3);
    await expectAllReleased(llm.started);
  });

  test('that freezes at "full" stops nobody: own accounting serves on', async () => {
    const llm = await start([textNode('a', 'A100', { sequencesMax: 2 })], { health: { reconcileMs: 500 } });
    await stream(llm.client, { tokens: 2 });
    const end = outsideLoad(llm.fleet.nodes[0]?.url ?? '', 4);
    await within(15_000, 'the room is closed by the reading', () => isClosedByReading(llm));
    await llm.fleet.setFaults('a', { staleMetrics: true });
    end();
    await within(5_000, 'the engine is idle', () => truthOf(llm.fleet, 'a').running === 0);
    const all = await Promise.all(
      Array.from({ length: 6 }, () => stream(llm.client, { tokens: 5, deadlineMs: 20_000 })),
    );
    expect(all.map(({ pieces }) => pieces)).toEqual(Array<number>(6).fill(5));
    await expectAllReleased(llm.started);
  });
});

describe('a node that answers wrongly', () => {
  test.each(['truncate', 'garbage'] as const)('(%s) never becomes a clean success', async (fault) => {
    const llm = await start([textNode('bad', 'A100')]);
    await stream(llm.client, { tokens: 2 });
    await llm.fleet.setFaults('bad', { [fault]: true });
    for (let i = 0; i < 3; i++) {
      const streamed = await stream(llm.client, { tokens: 20, deadlineMs: 5_000 }).catch(
        (error: unknown) => error,
      );
      expect(streamed).toBeInstanceOf(Error);
      const whole = await llm.client.chat.completions
        .create({ model: TEXT_MODEL, messages, max_tokens: 20 })
        .catch((error: unknown) => error);
      expect(whole).toBeInstanceOf(Error);
    }
    await llm.fleet.setFaults('bad', { [fault]: false });
    await expectAllReleased(llm.started);
  });

  test('is left for another one while nothing has reached the client', async () => {
    const llm = await start([textNode('bad', 'A100'), textNode('good', 'A100')]);
    await llm.fleet.setFaults('bad', { garbage: true });
    const all = await Promise.all(
      Array.from({ length: 6 }, () => stream(llm.client, { tokens: 10, deadlineMs: 20_000 })),
    );
    expect(all.map(({ pieces }) => pieces)).toEqual(Array<number>(6).fill(10));
    expect(truthOf(llm.fleet, 'good').served).toBe(6);
    await expectAllReleased(llm.started);
  });
});
