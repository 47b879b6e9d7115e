import { describe, expect, test } from 'vitest';
import { parseOpenAi } from './protocols/openai/parse.ts';
import type { InferenceRequest } from './protocols/inference-request.ts';
import { hashBlocks, promptPrefix } from './prompt-prefix.ts';

const UNKNOWN = { workUs: 1_000, firstByteWorkUs: 1_000, contextTokens: 0, tokens: 0, promptTokens: 0 };
const ESTIMATE = { ...UNKNOWN, promptWorkUs: 400 };
const OPTIONS = { tenant: 't', model: 'm', blockBytes: 256 };

function chat(turns: readonly string[], rest: object = {}): InferenceRequest {
  const messages = turns.map((content) => ({ role: 'user', content }));
  return parsed('chat', { ...rest, model: 'm', messages, temperature: turns.length });
}

function parsed(endpoint: 'chat' | 'completions' | 'embeddings', body: object): InferenceRequest {
  const result = parseOpenAi(endpoint, Buffer.from(JSON.stringify(body)));
  if (result.kind === 'bad') throw new Error(result.detail);
  return result.request;
}

function blocksOf(request: InferenceRequest, change: Partial<typeof OPTIONS> = {}): readonly number[] {
  return promptPrefix(request, ESTIMATE, { ...OPTIONS, ...change })?.blocks ?? [];
}

/** How many blocks two prompts have in common. */
function shared(a: readonly number[], b: readonly number[]): number {
  const differs = a.findIndex((block, at) => block !== b[at]);
  return differs < 0 ? a.length : differs;
}

const FIRST = 'x'.repeat(600);

describe('promptPrefix', () => {
  test('begins alike for the next turn of a conversation, whatever else the body says', () => {
    const before = blocksOf(chat([FIRST]));
    const after = blocksOf(chat([FIRST, 'y'.repeat(600)], { max_tokens: 17, user: 'somebody' }));
    expect(before.length).toBe(2);
    expect(after.length).toBe(4);
    expect(shared(before, after)).toBe(2);
  });

  test('differs from the first block on that differs', () => {
    const one = blocksOf(parsed('completions', { model: 'm', prompt: `${FIRST}a${FIRST}` }));
    const other = blocksOf(parsed('completions', { model: 'm', prompt: `${FIRST}b${FIRST}` }));
    expect(shared(one, other)).toBe(2);
    expect(one.slice(2).some((block) => other.includes(block))).toBe(false);
  });

  test('is shared neither between tenants nor between models', () => {
    const request = chat([FIRST]);
    const all = [
      ...blocksOf(request),
      ...blocksOf(request, { tenant: 'u' }),
      ...blocksOf(request, { model: 'n' }),
    ];
    expect(new Set(all).size).toBe(6);
  });

  test('is none where no block is filled, or there is no prompt that an engine keeps', () => {
    expect(promptPrefix(chat(['short']), ESTIMATE, OPTIONS)).toBeUndefined();
    const embedding = parsed('embeddings', { model: 'm', input: FIRST });
    expect(promptPrefix(embedding, ESTIMATE, OPTIONS)).toBeUndefined();
  });

  test('saves at most the work of the prompt, or a tenth of all where that is not known', () => {
    const known = promptPrefix(chat([FIRST]), ESTIMATE, OPTIONS);
    expect((known?.workUsPerBlock ?? 0) * (known?.blocks.length ?? 0)).toBeLessThanOrEqual(400);
    const unknown = promptPrefix(chat([FIRST]), UNKNOWN, OPTIONS);
    expect(unknown?.workUsPerBlock).toBeCloseTo(((known?.workUsPerBlock ?? 0) * 100) / 400, -1);
  });
});

describe('hashBlocks', () => {
  test('gives whole numbers below 2^53, all different for twenty thousand blocks that differ in a few bits', () => {
    const seen = new Set<number>();
    const block = Buffer.alloc(64);
    for (let at = 0; at < 20_000; at++) {
      block.writeUInt32LE(at, 28);
      const [hash] = hashBlocks(block, 'salt', 64) as [number];
      if (Number.isSafeInteger(hash) && hash >= 0) seen.add(hash);
    }
    expect(seen.size).toBe(20_000);
  });
});
