import { describe, expect, it } from 'vitest';
import type { HttpResult } from './http-client.ts';
import { isEmbedding, judgeImage } from './judge.ts';

function answer(status: number, body: string, headers: Record<string, string> = {}): HttpResult {
  return { kind: 'answer', answer: { status, headers: new Map(Object.entries(headers)), body } };
}

const SERVED = '{"data":[{"b64_json":"x"}],"emulated":{"steps":30,"serviceMs":12.5}}';
const ERROR = '{"error":{"message":"no","type":"overloaded","param":null,"code":null}}';

describe('judgeImage', () => {
  it('takes a complete answer as served, with the service time that it states', () => {
    const whole = { kind: 'served', serviceMs: 12.5, lesser: '', steps: 30 };
    expect(judgeImage(answer(200, SERVED), 1)).toEqual(whole);
  });

  it('takes an answer as marked when header and body say the same', () => {
    const marked = SERVED.replace('{', '{"spillway":{"degraded":"cache"},');
    const header = { 'x-spillway-degraded': 'cache' };
    expect(judgeImage(answer(200, marked, header), 1)).toMatchObject({ lesser: 'cache' });
    expect(judgeImage(answer(200, SERVED, header), 1)).toMatchObject({ lesser: '' });
    expect(judgeImage(answer(200, marked), 1)).toMatchObject({ lesser: '' });
  });

  it.each([
    ['fewer images than asked', answer(200, SERVED), 2],
    ['no JSON', answer(200, '<html>'), 1],
    ['200 with nothing', answer(200, ''), 1],
    ['a status without a reason', answer(500, ERROR), 1],
    ['a reason without a body', answer(429, '', { 'x-spillway-reason': 'queue-full' }), 1],
    ['an unknown reason', answer(429, ERROR, { 'x-spillway-reason': 'because' }), 1],
    ['a broken connection', { kind: 'broken', detail: 'reset' } as HttpResult, 1],
  ])('takes %s as an untyped error', (_name, result, images) => {
    expect(judgeImage(result, images)).toEqual({ kind: 'failed', isTyped: false });
  });

  it('takes a known reason with a body as a refusal, and prefers the finer wait', () => {
    const headers = {
      'x-spillway-reason': 'deadline-infeasible',
      'retry-after': '1',
      'retry-after-ms': '250',
    };
    expect(judgeImage(answer(429, ERROR, headers), 1)).toEqual({
      kind: 'refused',
      isFinal: false,
      retryAfterMs: 250,
    });
  });

  it('reads whole seconds, and that a retry cannot help', () => {
    const headers = { 'x-spillway-reason': 'too-slow', 'retry-after': '2', 'x-should-retry': 'false' };
    expect(judgeImage(answer(429, ERROR, headers), 1)).toEqual({
      kind: 'refused',
      isFinal: true,
      retryAfterMs: 2_000,
    });
  });

  it('takes a failed node as a typed failure', () => {
    const result = answer(502, ERROR, { 'x-spillway-reason': 'node-failed' });
    expect(judgeImage(result, 1)).toEqual({ kind: 'failed', isTyped: true });
  });
});

describe('isEmbedding', () => {
  it('wants a vector that is not all zero', () => {
    expect(isEmbedding(answer(200, '{"data":[{"embedding":[0,0.5]}]}'))).toBe(true);
    expect(isEmbedding(answer(200, '{"data":[{"embedding":[0,0]}]}'))).toBe(false);
    expect(isEmbedding(answer(200, '{"data":[]}'))).toBe(false);
    expect(isEmbedding({ kind: 'timed-out' })).toBe(false);
  });
});
