import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quoted, refuse, renderOpenAi, renderOpenAiLines } from './refusal.ts';
import { OUTCOMES, type RefusalReason } from './table.ts';

/** The wire contract, written out a second time by hand: reason, status, code, whether a retry can help. */
const CONTRACT: readonly [RefusalReason, number, string, boolean][] = [
  ['bad-request', 400, 'bad_request', false],
  ['context-too-long', 400, 'context_length_exceeded', false],
  ['capability-missing', 400, 'capability_missing', false],
  ['too-large', 413, 'request_too_large', false],
  ['header-too-large', 431, 'header_too_large', false],
  ['request-timeout', 408, 'request_timeout', false],
  ['unauthenticated', 401, 'invalid_api_key', false],
  ['forbidden', 403, 'forbidden', false],
  ['unknown-path', 404, 'unknown_url', false],
  ['method-not-allowed', 405, 'method_not_allowed', false],
  ['unknown-model', 404, 'model_not_found', false],
  ['idempotency-mismatch', 422, 'idempotency_mismatch', false],
  ['poison', 422, 'poison', false],
  ['queue-full', 429, 'overloaded', true],
  ['deadline-infeasible', 429, 'overloaded', true],
  ['wait-expired', 429, 'overloaded', true],
  ['evicted', 429, 'overloaded', true],
  ['rate-limited', 429, 'rate_limit_exceeded', true],
  ['shed', 429, 'overloaded', true],
  ['preempted', 429, 'overloaded', true],
  ['too-slow', 429, 'too_slow', false],
  ['no-node', 503, 'no_node', true],
  ['shutting-down', 503, 'shutting_down', true],
  ['self-protection', 503, 'self_protection', true],
  ['node-failed', 502, 'node_failed', true],
  ['node-timeout', 504, 'node_timeout', true],
];

const OPTIONS = { overloadStatus: 429, jitterSeed: 7 } as const;

function headersOf(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]),
  );
}

describe('the outcome table', () => {
  it('has the rows of the contract and no others', () => {
    expect(Object.keys(OUTCOMES).sort()).toEqual(CONTRACT.map(([reason]) => reason).sort());
  });

  it.each(CONTRACT)('tells %s as %i %s', (reason, status, code, canRetry) => {
    const refusal = refuse(reason);
    const rendered = renderOpenAi(refusal, OPTIONS);
    const headers = headersOf(rendered.headers);
    expect(rendered.status).toBe(status);
    expect(headers['x-spillway-reason']).toBe(reason);
    const { error } = JSON.parse(rendered.body);
    expect(error).toMatchObject({ code, param: null, reason });
    expect(error.type).toEqual(expect.any(String));
    expect(error.message).toMatch(/^[A-Z].*\.$/);
    if (canRetry) {
      expect(headers['retry-after']).toMatch(/^\d+$/);
      expect(headers['x-should-retry']).toBeUndefined();
    } else {
      expect(headers['retry-after']).toBeUndefined();
      expect(headers['x-should-retry']).toBe('false');
    }
  });

  it('is told alike in headers and in lines', () => {
    const hints = [0, 1, 1_500_000, 59_000_000, 60_000_000, 90_000_000];
    for (const reason of Object.keys(OUTCOMES) as RefusalReason[]) {
      for (const afterUs of hints) {
        const refusal = { ...refuse(reason), hint: { retryable: OUTCOMES[reason].canRetry, afterUs } };
        const { status, headers, body } = renderOpenAi(refusal, { ...OPTIONS, jitterSeed: afterUs });
        const all = [...headers, 'content-length', String(Buffer.byteLength(body))];
        let lines = '';
        for (let i = 0; i < all.length; i += 2) lines += `${all[i]}: ${all[i + 1]}\r\n`;
        expect(renderOpenAiLines(refusal, { ...OPTIONS, jitterSeed: afterUs })).toEqual({
          status,
          lines,
          body,
        });
      }
    }
  });

  it('never says 500', () => {
    for (const row of Object.values(OUTCOMES)) expect(row.openai.status).not.toBe(500);
  });

  it('says 503 for overload where the configuration does, and leaves the rest alone', () => {
    for (const [reason, status, code] of CONTRACT) {
      const rendered = renderOpenAi(refuse(reason), { overloadStatus: 503, jitterSeed: 0 });
      expect(rendered.status, reason).toBe(code === 'overloaded' ? 503 : status);
    }
  });
});

describe('a retry hint', () => {
  const after = (afterUs: number, jitterSeed = 7, retryable = true): Record<string, string> =>
    headersOf(
      renderOpenAi(
        { reason: 'queue-full', hint: { retryable, afterUs }, detail: '', param: '' },
        { overloadStatus: 429, jitterSeed },
      ).headers,
    );

  it('is 1 to 60 whole seconds, never before the estimate, stretched by a quarter at most', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60_000_000 }), fc.nat(), (afterUs, seed) => {
        const headers = after(afterUs, seed);
        const ms = Number(headers['retry-after-ms']);
        expect(headers['retry-after']).toMatch(/^[1-9]\d?$/);
        expect(Number(headers['retry-after'])).toBe(Math.ceil(ms / 1_000));
        expect(ms).toBeLessThanOrEqual(60_000);
        expect(ms * 1_000).toBeGreaterThanOrEqual(Math.min(afterUs, 60_000_000));
        expect(ms).toBeLessThanOrEqual(Math.ceil(Math.ceil(afterUs / 1_000) * 1.25));
      }),
    );
  });

  it('spreads requests that are refused together', () => {
    const waits = new Set(
      Array.from({ length: 100 }, (_, seed) => after(20_000_000, seed)['retry-after-ms']),
    );
    expect(waits.size).toBeGreaterThan(50);
  });

  it('beyond a minute is taken back, with the true estimate in the body', () => {
    const hint = { retryable: true, afterUs: 61_000_001 };
    const rendered = renderOpenAi({ reason: 'queue-full', hint, detail: '', param: '' }, OPTIONS);
    const headers = headersOf(rendered.headers);
    expect(headers['retry-after']).toBeUndefined();
    expect(headers['retry-after-ms']).toBeUndefined();
    expect(headers['x-should-retry']).toBe('false');
    expect(JSON.parse(rendered.body).error.retry_after_ms).toBe(61_001);
  });

  it('is taken back where a retry cannot help', () => {
    expect(after(5_000_000, 7, false)['x-should-retry']).toBe('false');
  });
});

describe('quoted', () => {
  it("keeps a client's own text short and printable", () => {
    expect(quoted('a\r\nb\u0000')).toBe("'a??b?'");
    expect(quoted('x'.repeat(500)).length).toBeLessThan(110);
  });
});
