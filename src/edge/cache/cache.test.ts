import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_CACHE } from '../../core/config/index.ts';
import { compareAnswers } from './agreement.ts';
import { AnswerCache, type CachedAnswer } from './answer-cache.ts';
import { CANONICAL_BYTES_MAX, cacheKey } from './identity.ts';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hi' }], temperature: 0 };

function keyOf(body: unknown, change: Partial<Parameters<typeof cacheKey>[0]> = {}): string | undefined {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const identity = { sharedBy: 'tenant a', model: 'm', revision: '', endpoint: 'chat', stream: false };
  return cacheKey({ ...identity, body: Buffer.from(text), ...change });
}

describe('cacheKey', () => {
  test('is one for every order and spacing of the same parameters, and for what changes nothing', () => {
    const whole = keyOf(CHAT);
    const { model, messages, temperature } = CHAT;
    expect(keyOf(JSON.stringify({ temperature, messages, model }, undefined, 2))).toBe(whole);
    const more = {
      user: 'u',
      metadata: { a: [1, { b: 2 }] },
      priority: 3,
      service_tier: 'flex',
      stream: false,
    };
    expect(keyOf({ ...CHAT, ...more })).toBe(whole);
    expect(whole).toMatch(/^[A-Za-z0-9+/]{43}=$/);
  });

  test('differs with tenant, model, revision, endpoint, stream and every other parameter', () => {
    const keys = [
      keyOf(CHAT),
      keyOf(CHAT, { sharedBy: 'tenant b' }),
      keyOf(CHAT, { sharedBy: 'pool a' }),
      keyOf(CHAT, { model: 'n' }),
      keyOf(CHAT, { revision: '2' }),
      keyOf(CHAT, { endpoint: 'completions' }),
      keyOf(CHAT, { stream: true }),
      keyOf({ ...CHAT, max_tokens: 1 }),
      keyOf({ ...CHAT, messages: [{ content: 'hi', role: 'system' }] }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys).not.toContain(undefined);
  });

  test.each([
    ['no fixed seed or temperature', { ...CHAT, temperature: 0.1 }, 'chat'],
    ['no temperature at all', { model: 'm', messages: [] }, 'chat'],
    ['tools', { ...CHAT, tools: [{}] }, 'chat'],
    ['functions', { ...CHAT, functions: [{}] }, 'chat'],
    ['a search of the web', { ...CHAT, web_search_options: {} }, 'chat'],
    [
      'a picture on the web',
      { ...CHAT, messages: [{ content: [{ type: 'image_url', image_url: { url: 'https://x/y' } }] }] },
      'chat',
    ],
    ['a picture without a seed', { model: 'm', prompt: 'x', temperature: 0 }, 'images'],
  ])('is none for %s', (_name, body, endpoint) => {
    expect(keyOf(body, { endpoint })).toBeUndefined();
  });

  test('is there for a fixed seed, for embeddings, and for pictures that come along', () => {
    expect(keyOf({ ...CHAT, temperature: 1, seed: 7 })).toBeDefined();
    expect(keyOf({ model: 'm', input: 'x' }, { endpoint: 'embeddings' })).toBeDefined();
    expect(keyOf({ model: 'm', prompt: 'x', seed: 1 }, { endpoint: 'images' })).toBeDefined();
    const own = [{ content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] }];
    expect(keyOf({ ...CHAT, messages: own })).toBeDefined();
  });

  test('is none where a name comes twice, at any depth: readers differ in which one they take', () => {
    expect(keyOf('{"temperature":0,"messages":[],"messages":[1]}')).toBeUndefined();
    expect(keyOf('{"temperature":0,"messages":[{"content":"a","content":"b"}]}')).toBeUndefined();
    expect(keyOf('{"temperature":0,"messages":[{"content":"a","cont\\u0065nt":"b"}]}')).toBeUndefined();
    expect(keyOf('{"temperature":0,"messages":[{"content":"a:\\"b\\":{}"}]}')).toBeDefined();
  });

  test('is none beyond its bounds', () => {
    expect(keyOf({ ...CHAT, x: 'y'.repeat(CANONICAL_BYTES_MAX) })).toBeUndefined();
    let deep: unknown = 1;
    for (let i = 0; i < 100; i++) deep = [deep];
    expect(keyOf({ ...CHAT, deep })).toBeUndefined();
  });
});

interface Cache {
  readonly cache: AnswerCache;
  readonly compared: CachedAnswer[][];
  now: number;
  put(key: string, length: number): void;
}

function cacheOf(change: Partial<typeof DEFAULT_CACHE> = {}): Cache {
  const compared: CachedAnswer[][] = [];
  const config = {
    ...DEFAULT_CACHE,
    bytesMax: 10_000,
    entryBytesMax: 4_000,
    ttlMs: 1_000,
    compareEvery: 2,
    ...change,
  };
  const own: Cache = {
    now: 0,
    compared,
    cache: new AnswerCache({
      config: () => config,
      now: () => own.now,
      compare: (...pair) => void compared.push(pair),
    }),
    put(key, length) {
      const recording = own.cache.record(key, 'chat');
      recording.add(Buffer.alloc(length / 2, 1));
      recording.add(Buffer.alloc(length / 2, 2));
      recording.keep('application/json');
    },
  };
  return own;
}

describe('AnswerCache', () => {
  test('gives back what was recorded, until it is too old', () => {
    const own = cacheOf();
    own.put('a', 100);
    expect(own.cache.find('a')?.body).toEqual(Buffer.concat([Buffer.alloc(50, 1), Buffer.alloc(50, 2)]));
    own.now = 1_000_001;
    expect(own.cache.find('a')).toBeUndefined();
  });

  test('lets the least recently used go, and never holds more than its bound', () => {
    const own = cacheOf();
    for (const key of ['a', 'b', 'c']) own.put(key, 2_000);
    own.cache.find('a');
    own.put('d', 2_000);
    own.put('e', 2_000);
    expect(own.cache.find('a')).toBeDefined();
    expect(own.cache.find('b')).toBeUndefined();
    expect(own.cache.bytes).toBeLessThanOrEqual(10_000);
  });

  test('remembers nothing larger than an entry may be', () => {
    const own = cacheOf();
    own.put('a', 3_600);
    expect(own.cache.find('a')).toBeUndefined();
    expect(own.cache.bytes).toBe(0);
  });

  test('does not let go what is pinned, and remembers nothing new where all is', () => {
    const own = cacheOf();
    for (const key of ['a', 'b', 'c']) own.put(key, 2_800);
    const pinned = ['a', 'b', 'c'].map((key) => own.cache.find(key) as CachedAnswer);
    for (const answer of pinned) own.cache.pin(answer);
    own.put('d', 2_800);
    expect(own.cache.find('d')).toBeUndefined();
    own.put('e', 60);
    expect(own.cache.find('e'), 'its own 60 bytes would fit').toBeUndefined();
    for (const key of ['a', 'b', 'c']) expect(own.cache.find(key)).toBeDefined();
    for (const answer of pinned) own.cache.unpin(answer);
    own.put('d', 2_800);
    expect(own.cache.find('d')).toBeDefined();
  });

  test('tells one of so many fresh answers with the remembered one', () => {
    const own = cacheOf();
    for (let i = 0; i < 6; i++) own.put('a', 100);
    expect(own.compared).toHaveLength(2);
  });

  test('counts to exactly nothing once all is forgotten, whatever was done, and never above its bound', () => {
    const step = fc.record({
      what: fc.constantFrom('put', 'put', 'record', 'add', 'keep', 'drop', 'pin', 'unpin', 'clear', 'wait'),
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      length: fc.nat(4_000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const own = cacheOf();
        const pinned: CachedAnswer[] = [];
        const open: ReturnType<AnswerCache['record']>[] = [];
        for (const { what, key, length } of steps) {
          const last = open.at(-1);
          if (what === 'put') own.put(key, length);
          else if (what === 'record') open.push(own.cache.record(key, 'chat'));
          else if (what === 'add') last?.add(Buffer.alloc(length));
          else if (what === 'keep') last?.keep('x');
          else if (what === 'drop') last?.drop();
          else if (what === 'clear') own.cache.clear();
          else if (what === 'wait') own.now += length * 1_000;
          else if (what === 'unpin') {
            const answer = pinned.pop();
            if (answer !== undefined) own.cache.unpin(answer);
          } else {
            const answer = own.cache.find(key);
            if (answer !== undefined) {
              own.cache.pin(answer);
              pinned.push(answer);
            }
          }
          expect(own.cache.bytes).toBeLessThanOrEqual(10_000);
        }
        for (const recording of open) recording.drop();
        for (const answer of pinned) own.cache.unpin(answer);
        own.cache.clear();
        expect(own.cache.bytes).toBe(0);
        expect(own.cache.size).toBe(0);
      }),
    );
  });
});

describe('compareAnswers', () => {
  const answer = (endpoint: string, body: unknown, contentType = 'application/json'): CachedAnswer => ({
    key: '',
    endpoint,
    contentType,
    storedAt: 0,
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  });
  const chat = (content: string, id: string): CachedAnswer =>
    answer('chat', { id, choices: [{ message: { content } }] });
  const vector = (...embedding: number[]): CachedAnswer => answer('embeddings', { data: [{ embedding }] });

  test('compares what was asked for, not ids and counts', () => {
    expect(compareAnswers(chat('yes', '1'), chat('yes', '2'))).toBe('same');
    expect(compareAnswers(chat('yes', '1'), chat('no', '1'))).toBe('different');
    const picture = (b64: string): CachedAnswer =>
      answer('images', { created: 1, data: [{ b64_json: b64 }] });
    expect(compareAnswers(picture('AA'), picture('AA'))).toBe('same');
    expect(compareAnswers(picture('AA'), picture('AB'))).toBe('different');
  });

  test('lets vectors differ by rounding and by nothing else', () => {
    expect(compareAnswers(vector(1, 2, 3), vector(1.000_1, 2, 3))).toBe('same');
    expect(compareAnswers(vector(1, 2, 3), vector(3, 2, 1))).toBe('different');
    expect(compareAnswers(vector(1, 2), vector(1, 2, 3))).toBe('different');
    expect(compareAnswers(vector(0, 0), vector(0, 1))).toBe('different');
  });

  test('joins the pieces of a stream, however it was cut', () => {
    const stream = (...pieces: string[]): CachedAnswer =>
      answer(
        'chat',
        `${pieces.map((content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`).join('')}data: [DONE]\n\n`,
        'text/event-stream',
      );
    expect(compareAnswers(stream('he', 'llo'), stream('hel', 'lo'))).toBe('same');
    expect(compareAnswers(stream('he'), stream('hel', 'lo'))).toBe('different');
  });

  test('says so where one cannot be read', () => {
    expect(compareAnswers(chat('yes', '1'), answer('chat', 'no JSON'))).toBe('unreadable');
  });
});
