/**
 * Leaked permits (publicly reported as smg-project/smg#2064 and vllm-project/production-stack#1072): each odd end of a
 * request keeps a seat of its node, until the fleet is full of nobody.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HttpClient } from '../../src/apps/demo/http-client.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  nodeAt,
  requestText,
  type Wish,
  within,
} from '../support/case-bench.ts';
import {
  completion,
  delta,
  ROLE,
  sendJson,
  streamHead,
  streamWords,
  type NodeScript,
} from './edge-fixture.ts';

const REQUESTS = 10_000;
/** The faster the machine, the more clients leave before their attempt: then more come, within this bound. */
const REQUESTS_MAX = 60_000;
const ATTEMPTS_MIN = 2_500;
const CONCURRENCY = 64;
const SLOTS = 8;
const NODES = 4;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

/** Silent ones end by the deadline or with the client. */
const FAIR_ENDS: readonly NodeScript[] = [
  (res) => sendJson(res, 200, completion('ok')),
  (res) => streamWords(res, ['a', 'b']),
  (res) => sendJson(res, 422, { error: { message: 'no' } }),
  (res) => {
    setTimeout(() => sendJson(res, 200, completion('late')), 10);
  },
  (res) => streamWords(res, ['c']),
];
const FOUL_ENDS: readonly NodeScript[] = [
  (res) => res.destroy(),
  (res) => sendJson(res, 503, {}, { 'retry-after': '0' }),
  (res) => sendJson(res, 500, {}),
  () => undefined,
  (res) => {
    streamHead(res);
    res.write(ROLE + delta({ content: 'x' }), () => res.destroy());
  },
  (res) => {
    streamHead(res);
    res.write(ROLE);
  },
  (res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': '400' });
    res.write('{"id":"', () => res.destroy());
  },
  (res) => res.end('<html>'),
];
/** One attempt in this many ends foul: rarely enough that nodes stay in rotation for most of the time. */
const FOUL_EVERY = 7;

function endOf(call: number): NodeScript {
  const ends = call % FOUL_EVERY === 0 ? FOUL_ENDS : FAIR_ENDS;
  return ends[Math.floor(call / FOUL_EVERY + call) % ends.length] as NodeScript;
}

type End = 'answered' | 'gave-up';

/** A request whose client stays, leaves at once, or leaves after a while; whatever the node does. */
function one(client: HttpClient, index: number): Promise<End> {
  const wish: Wish = {
    stream: index % 2 === 0,
    deadlineMs: index % 5 === 0 ? 60 : 400,
    body: { seed: index },
  };
  const patienceMs = [5_000, 1, 15, 5_000, 40, 120, 5_000][index % 7] ?? 0;
  return new Promise((resolve) => {
    const sent = client.send(requestText(wish), patienceMs, ({ kind }) =>
      resolve(kind === 'answer' ? 'answered' : 'gave-up'),
    );
    if (index % 23 === 0) sent.hangUp();
  });
}

function answerAll(held: (() => void)[]): void {
  for (const answer of held.splice(0)) answer();
}

describe('permits', () => {
  it('after 10,000 mixed cancels, errors and timeouts are all back, and the full capacity serves again', async () => {
    let calls = 0;
    let isCalm = false;
    const held: (() => void)[] = [];
    const script: NodeScript = (res, seen) => {
      if (isCalm) held.push(() => sendJson(res, 200, completion('calm')));
      else endOf(calls++)(res, seen);
    };
    const nodes = await Promise.all(Array.from({ length: NODES }, () => bench.node(script)));
    const started = await bench.gateway({
      nodes: nodes.map((node, index) => nodeAt(`n${index}`, node, { slots: SLOTS })),
      models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 5 } }],
      // Nodes that misbehave all the time are back at once, so that attempts go on.
      health: { ejectMs: 10, ejectMsMax: 20, refusedMs: 10 },
      // One answer in seven is foul on every node: the breaker of the model would keep most attempts from being made.
      gates: { breaker: 'off' },
      retry: { budgetReserve: 100_000 },
      // So high that they refuse nothing, and every request holds something of them.
      tenantLimits: { requestsPerMinute: 1e9, tokensPerMinute: 1e9, concurrency: 1e7 },
    });
    const client = bench.client(started.dataUrl);
    const ends: Record<End, number> = { answered: 0, 'gave-up': 0 };
    let next = 0;
    const wantsMore = (index: number): boolean =>
      index < REQUESTS || (calls < ATTEMPTS_MIN && index < REQUESTS_MAX);
    const worker = async (): Promise<void> => {
      for (let index = next++; wantsMore(index); index = next++) ends[await one(client, index)] += 1;
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    expect(ends.answered + ends['gave-up']).toBeGreaterThanOrEqual(REQUESTS);
    expect(ends['gave-up'], 'many clients left').toBeGreaterThan(REQUESTS / 20);
    expect(calls, 'many attempts ran').toBeGreaterThanOrEqual(ATTEMPTS_MIN);
    await expectAllReleased(started);

    isCalm = true;
    let open = 0;
    const refill = (): void => {
      for (; open < 2 * NODES * SLOTS; open++) {
        void ask(started.dataUrl, { className: 'critical' }).then(() => {
          open -= 1;
        });
      }
    };
    await within(10_000, 'every seat of every node is taken at once', () => {
      refill();
      // Answers let a node that was ejected prove itself; then all are held.
      if (started.gateway.nodes().some((node) => node.slots < SLOTS)) answerAll(held);
      return started.gateway.nodes().every((node) => node.inflight === SLOTS);
    });
    await within(10_000, 'everything is answered', () => {
      answerAll(held);
      return open === 0;
    });
    await expectAllReleased(started);
  });
});
