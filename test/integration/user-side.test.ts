/**
 * The user's side over real sockets: beacons that a browser may send, those that nobody may, and what clients saw beside what
 * the server says.
 */
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sha256Hex } from '../../src/adapters/config-file/index.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  nodeAt,
  open,
  requestText,
  within,
} from '../support/case-bench.ts';
import { type Answer, call } from './cli-fixture.ts';
import { completion, delta, type NodeScript, ROLE, sendJson, streamHead } from './edge-fixture.ts';

const PAGE = 'https://app.example.com';
const MIB = 1_024 * 1_024;
const KEY = { headers: { authorization: 'Bearer sk-acme' } };

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

const ANSWERS: NodeScript = (res) => sendJson(res, 200, completion('hello'));

async function gateway(script: NodeScript, rum: ConfigInput['rum'] = {}): Promise<StartedGateway> {
  const node = await bench.node(script);
  return bench.gateway({
    nodes: [nodeAt('n0', node, { slots: 4 })],
    tenants: [{ id: 'acme', keys: [{ id: 'k', sha256: sha256Hex('sk-acme') }] }],
    rum: { enabled: true, originsAllowed: [PAGE], ...rum },
    // Room for a whole answer whose reader takes nothing.
    server: { spoolBytesMax: 64 * MIB, spoolBytesTotalMax: 64 * MIB },
  });
}

interface Told {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** As `navigator.sendBeacon` does with text. */
function tell({ dataUrl }: StartedGateway, { body, headers = { origin: PAGE } }: Told): Promise<Answer> {
  return call(`${dataUrl}/spillway/v1/rum`, {
    body: JSON.stringify(body),
    headers: { 'content-type': 'text/plain;charset=UTF-8', ...headers },
  });
}

function seen(
  answer: Answer,
  change: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  return {
    token: answer.headers['x-spillway-beacon'],
    id: answer.headers['x-spillway-id'],
    outcome: 'ok',
    firstByteMs: 300,
    completionMs: 2_000,
    ...change,
  };
}

interface WireClass {
  readonly class: string;
  readonly [side: string]: unknown;
}

async function userSide(started: StartedGateway): Promise<{
  readonly classes: readonly WireClass[];
  readonly beacons: unknown;
  readonly pairs: unknown;
  readonly poorlyServed: readonly Record<string, unknown>[];
}> {
  const answer = await call(`${started.adminUrl}/spillway/v1/user-side`, { token: started.adminToken });
  expect(answer.status).toBe(200);
  return answer.json as Awaited<ReturnType<typeof userSide>>;
}

function p95(row: WireClass | undefined, side: string, what: 'firstByteMs' | 'completionMs'): number | null {
  const told = row?.[side] as Record<string, { p95: number | null }> | undefined;
  return told?.[what]?.p95 ?? null;
}

async function metric(started: StartedGateway, name: string): Promise<number> {
  const page = await call(`${started.adminUrl}/metrics`, { token: started.metricsToken });
  const line = page.text.split('\n').find((text) => text.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.split(' ').at(-1));
}

describe('a beacon', () => {
  test('with the token of its answer is taken once, and stands beside what the server says', async () => {
    const started = await gateway(ANSWERS);
    const answer = await ask(started.dataUrl, KEY);
    expect(answer.status).toBe(200);
    const first = await tell(started, { body: seen(answer) });
    expect(first.status).toBe(204);
    expect(first.headers['access-control-allow-origin']).toBe(PAGE);
    const again = await tell(started, { body: seen(answer) });
    expect([again.status, again.json['reason']]).toEqual([409, 'reused']);
    const { classes, beacons, pairs } = await userSide(started);
    expect(beacons).toEqual({ accepted: 1, reused: 1 });
    expect(pairs).toMatchObject({ told: 1, toldBad: 0, serverBad: 0 });
    const [row] = classes;
    expect(row).toMatchObject({ class: 'normal', users: { outcomes: { ok: 1 }, firstByteMs: { count: 1 } } });
    expect(p95(row, 'users', 'completionMs')).toBeGreaterThanOrEqual(2_000);
    expect(p95(row, 'server', 'completionMs')).toBeLessThan(2_000);
    expect(p95(row, 'gap', 'completionMs')).toBeGreaterThan(0);
    expect(await metric(started, 'spillway_user_request_seconds_count{class="normal"}')).toBe(1);
    expect(await metric(started, 'spillway_user_first_byte_seconds_bucket{class="normal",le="0.5"}')).toBe(1);
    expect(await metric(started, 'spillway_beacons_total{result="accepted"}')).toBe(1);
  });

  test('is refused with a token that is forged, of another request, or expired', async () => {
    const started = await gateway(ANSWERS, { tokenMs: 1_000 });
    const [mine, other] = [await ask(started.dataUrl, KEY), await ask(started.dataUrl, KEY)];
    const token = String(mine.headers['x-spillway-beacon']);
    const forged = await tell(started, { body: seen(mine, { token: `${token.slice(0, -3)}AAA` }) });
    expect([forged.status, forged.json['detail']]).toEqual([403, 'This token was not made here']);
    const foreign = await tell(started, { body: seen(other, { token }) });
    expect([foreign.status, foreign.json['detail']]).toEqual([403, 'This token belongs to another request']);
    await within(5_000, 'the token expires', async () => {
      const late = await tell(started, { body: seen(mine, { outcome: 'unknown' }) });
      expect(late.status).toBe(400);
      // Without using it up: a time that cannot be true is looked at after the token.
      const judged = await tell(started, { body: seen(mine, { firstByteMs: 3_000 }) });
      return judged.status === 403 && judged.json['detail'] === 'This token is too old';
    });
    expect((await userSide(started)).classes[0]).toMatchObject({ users: { outcomes: { ok: 0 } } });
  });

  test('of a foreign page is refused, and no page of another origin may read or ask', async () => {
    const started = await gateway(ANSWERS);
    const answer = await ask(started.dataUrl, KEY);
    const foreign = await tell(started, {
      body: seen(answer),
      headers: { origin: 'https://evil.example.com' },
    });
    expect(foreign.status).toBe(403);
    expect(foreign.headers['access-control-allow-origin']).toBeUndefined();
    const preflight = (origin: string): Promise<Answer> =>
      call(`${started.dataUrl}/spillway/v1/rum`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      });
    expect((await preflight('https://evil.example.com')).status).toBe(403);
    const allowed = await preflight(PAGE);
    expect(allowed.status).toBe(204);
    expect(allowed.headers).toMatchObject({
      'access-control-allow-origin': PAGE,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'content-type',
      vary: 'origin',
    });
    // Nothing of it opens the rest of the port to pages.
    expect(
      (await ask(started.dataUrl, { headers: { ...KEY.headers, origin: PAGE } })).headers,
    ).not.toHaveProperty('access-control-allow-origin');
    expect((await tell(started, { body: seen(answer) })).status).toBe(204);
  });

  test('is bounded in size and rate, and nothing in it becomes a label', async () => {
    const started = await gateway(ANSWERS, { ratePerS: 2, tenantRatePerS: 2 });
    const large = await tell(started, { body: { token: 'x'.repeat(5_000) } });
    expect(large.status).toBe(413);
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(started.dataUrl, KEY)));
    const statuses = await Promise.all(
      answers.map(
        async (answer) =>
          (await tell(started, { body: seen(answer, { session: 'a-session-of-somebody' }) })).status,
      ),
    );
    // Two a second; the eight may fall into two seconds.
    expect(statuses.filter((status) => status === 204).length).toBeLessThanOrEqual(4);
    expect(statuses).toContain(429);
    const page = await call(`${started.adminUrl}/metrics`, { token: started.metricsToken });
    expect(page.text).not.toContain('a-session-of-somebody');
  });

  test('is nothing where it is not configured', async () => {
    const started = await gateway(ANSWERS, { enabled: false });
    const answer = await ask(started.dataUrl, KEY);
    expect(answer.headers['x-spillway-beacon']).toBeUndefined();
    expect((await tell(started, { body: { token: 'a', id: 'b', outcome: 'ok' } })).status).toBe(404);
    const asked = await call(`${started.adminUrl}/spillway/v1/user-side`, { token: 'wrong' });
    expect(asked.status).toBe(401);
  });

  test('of somebody who was served poorly leads to the request and its trace', async () => {
    const started = await gateway(ANSWERS);
    const answer = await ask(started.dataUrl, KEY);
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    await tell(started, { body: seen(answer, { outcome: 'timeout', traceId, session: 'tab-7' }) });
    const [one] = (await userSide(started)).poorlyServed;
    expect(one).toMatchObject({
      id: answer.headers['x-spillway-id'],
      class: 'normal',
      outcome: 'timeout',
      completionMs: 2_000,
      server: { isBad: false },
      traceId,
      session: 'tab-7',
    });
    expect(Math.abs(Number(one?.['at']) - Date.now())).toBeLessThan(60_000);
  });

  test('comes with refusals too: users see those as well', async () => {
    const started = await gateway(ANSWERS);
    const refused = await ask(started.dataUrl, {
      ...KEY,
      body: { max_tokens: 10 },
      deadlineMs: 1,
      stream: true,
    });
    expect(refused.status).toBe(429);
    const told = await tell(started, { body: seen(refused, { outcome: 'failed' }) });
    expect(told.status).toBe(204);
    expect((await userSide(started)).pairs).toMatchObject({ told: 1, toldBad: 1, serverBad: 1 });
  });
});

/** Larger than what kernels take for a client that does not read. */
const BIG = 'x'.repeat(12 * MIB);

interface Detectors {
  readonly signals: readonly { readonly signal: string; readonly evidence: Record<string, number> }[];
  readonly detectors: readonly { readonly signal: string; readonly state: string }[];
}

async function signals(started: StartedGateway): Promise<Detectors> {
  const answer = await call(`${started.adminUrl}/spillway/v1/signals`, { token: started.adminToken });
  return answer.json as unknown as Detectors;
}

describe('users who are not served well while the server is content', () => {
  test('are found by the signal for it', async () => {
    const started = await gateway(ANSWERS, { ratePerS: 1_000, tenantRatePerS: 1_000 });
    const state = async (): Promise<string | undefined> =>
      (await signals(started)).detectors.find(({ signal }) => signal === 'phantom-slo')?.state;
    await within(5_000, 'nobody tells anything', async () => (await state()) === 'blind');
    for (let i = 0; i < 60; i++) {
      const answer = await ask(started.dataUrl, KEY);
      const told = await tell(started, { body: seen(answer, { completionMs: 9_000 }) });
      expect(told.status).toBe(204);
    }
    const found = await within(40_000, 'the signal is there', async () =>
      (await signals(started)).signals.find(({ signal }) => signal === 'phantom-slo'),
    );
    expect(found.evidence).toMatchObject({ told: 60, clientBad: 0, serverBad: 0 });
    expect(found.evidence['clientP95Ms']).toBeGreaterThanOrEqual(9_000);
    expect(found.evidence['serverP95Ms']).toBeLessThan(9_000);
  });
});

describe('what the client saw', () => {
  test('of a slow reader is bad while the server says all is well', async () => {
    const started = await gateway((res) => sendJson(res, 200, completion(BIG)));
    const { hostname, port } = new URL(started.dataUrl);
    const socket = connect(Number(port), hostname);
    socket.pause();
    socket.write(requestText(KEY));
    // The server is done with it: the node is free and the request counts as served.
    await within(
      10_000,
      'the server calls it served',
      async () =>
        (await metric(started, 'spillway_requests_total{class="normal",model="tiny",outcome="served"}')) ===
        1,
    );
    const servedAt = performance.now();
    expect((await userSide(started)).classes).toEqual([]);
    await within(5_000, 'some time passes for the reader', () => performance.now() - servedAt > 300);
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    socket.resume();
    await within(10_000, 'the reader has everything', () => bytes > BIG.length);
    const row = await within(5_000, 'it is told', async () => (await userSide(started)).classes[0]);
    const [server, socketSide] = [p95(row, 'server', 'completionMs'), p95(row, 'socket', 'completionMs')];
    expect(server).not.toBeNull();
    expect(Number(socketSide) - Number(server)).toBeGreaterThan(200);
    socket.destroy();
  });

  test('is that it left, and what for it waited', async () => {
    const started = await gateway((res) => {
      streamHead(res);
      res.write(ROLE + delta({ content: 'first' }));
    });
    const streaming = await open(started.dataUrl, { ...KEY, stream: true });
    await new Promise((resolve) => streaming.once('data', resolve));
    streaming.destroy();
    await within(
      5_000,
      'it is counted',
      async () => (await metric(started, 'spillway_client_disconnects_total{phase="streaming"}')) === 1,
    );
    const blocked = await bench.node(() => undefined);
    const silent = await bench.gateway({
      nodes: [nodeAt('n0', blocked, { slots: 1 })],
      tenants: [{ id: 'acme', keys: [{ id: 'k', sha256: sha256Hex('sk-acme') }] }],
    });
    const running = await open(silent.dataUrl, KEY);
    await within(5_000, 'one runs', () => silent.gateway.queue().running === 1);
    const queued = await open(silent.dataUrl, { ...KEY, body: { user: 'another' } });
    await within(5_000, 'one waits', () => silent.gateway.queue().depth === 1);
    queued.destroy();
    await within(5_000, 'its place is free', () => silent.gateway.queue().depth === 0);
    running.destroy();
    await within(5_000, 'both are counted', async () => {
      const left = (await userSide(silent)).classes[0]?.['left'] as Record<string, number> | undefined;
      return left?.['queued'] === 1 && left['running'] === 1;
    });
    await expectAllReleased(silent);
  });

  test('is that it had to ask again', async () => {
    let calls = 0;
    const started = await gateway((res) => {
      calls += 1;
      if (calls === 1) sendJson(res, 500, { error: { message: 'no' } });
      else sendJson(res, 200, completion('hello'));
    });
    expect((await ask(started.dataUrl, KEY)).status).not.toBe(200);
    await within(10_000, 'it is served at last', async () => {
      const again = await ask(started.dataUrl, {
        headers: { ...KEY.headers, 'x-stainless-retry-count': '1' },
      });
      return again.status === 200;
    });
    const announced = await metric(started, 'spillway_client_retries_total{class="normal",how="announced"}');
    const repeated = await metric(started, 'spillway_client_retries_total{class="normal",how="repeated"}');
    expect(announced).toBeGreaterThanOrEqual(1);
    expect(repeated).toBeGreaterThanOrEqual(1);
  });
});
