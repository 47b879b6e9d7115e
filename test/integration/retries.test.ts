/**
 * Retries over real sockets: what a failing fleet is asked to do twice, who comes back before the time that it was told,
 * and what those are told who are refused one after the other.
 */
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  nodeAt,
  open,
  queueDepth,
  within,
} from '../support/case-bench.ts';
import type { Answer } from './cli-fixture.ts';
import { delta, type NodeScript, ROLE, sendJson, streamHead, type TestNode } from './edge-fixture.ts';

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

interface Fleet {
  readonly started: StartedGateway;
  /** Calls of all nodes. */
  calls(): number;
}

/** Nodes of one kind, so many that the budget ends before they are all out of rotation. */
async function fleet(count: number, script: NodeScript, config: ConfigInput): Promise<Fleet> {
  const nodes: TestNode[] = [];
  for (let i = 0; i < count; i++) nodes.push(await bench.node(script));
  const started = await bench.gateway({
    nodes: nodes.map((node, i) => nodeAt(`n${i}`, node)),
    gates: { breaker: 'off' },
    ...config,
  });
  const calls = (): number => nodes.flatMap(({ seen }) => seen).filter((row) => row.method === 'POST').length;
  return { started, calls };
}

const FAILS: NodeScript = (res) => sendJson(res, 500, { error: { message: 'out of memory' } });

describe('a fleet that fails everywhere', () => {
  test('is asked again as often as the budget allows, and no more', async () => {
    const { started, calls } = await fleet(10, FAILS, { retry: { budgetRatio: 0, budgetReserve: 3 } });
    for (let i = 1; i <= 12; i++) {
      const answer = await ask(started.dataUrl, { body: { user: `somebody ${i}` } });
      expect(['node-failed', 'no-node']).toContain(answer.headers['x-spillway-reason']);
    }
    expect(calls()).toBeLessThanOrEqual(12 + 3);
    await expectAllReleased(started);
  });

  test('gets each request at most so many times', async () => {
    const { started, calls } = await fleet(6, FAILS, { retry: { attemptsMax: 2, budgetReserve: 1_000 } });
    expect((await ask(started.dataUrl)).headers['x-spillway-attempts']).toBe('2');
    expect(calls()).toBe(2);
    await expectAllReleased(started);
  });

  test('never gets a stream again whose client has had a part of it', async () => {
    const script: NodeScript = (res) => {
      streamHead(res);
      res.write(ROLE + delta({ content: 'half' }), () => res.destroy());
    };
    const { started, calls } = await fleet(6, script, { retry: { budgetReserve: 1_000 } });
    expect((await ask(started.dataUrl, { stream: true })).text).toContain('"reason":"node-failed"');
    expect(calls()).toBe(1);
    await expectAllReleased(started);
  });
});

/** Waiting, each of somebody else, until one is refused. */
interface Full {
  readonly started: StartedGateway;
  readonly refused: Answer;
  /** The one that was refused, again. */
  again(): Promise<Answer>;
  /** Somebody who comes for the first time. */
  first(): Promise<Answer>;
  /** The same, when they are not answered soon. */
  enter(who: 'again' | 'first'): Promise<void>;
  /** Makes all but so many leave. */
  leave(left: number): Promise<void>;
  readonly depth: number;
}

const TOKENS = 10;
let users = 0;

/** A queue that takes no more: of a node that answers nothing, ten tasks of a tenth of a second each. */
async function full(config: ConfigInput = {}): Promise<Full> {
  const node = await bench.node(() => undefined);
  const started = await bench.gateway({
    nodes: [nodeAt('one', node)],
    models: [
      { id: 'tiny', profile: { kind: 'llm', fixedMs: 0, prefillMsPerToken: 0, decodeMsPerToken: 10 } },
    ],
    admission: { flowWaitMsMax: 1_000 },
    gates: { ladder: 'off', preemption: 'off' },
    ...config,
  });
  const wishOf = (user: number): Parameters<typeof ask>[1] => ({
    deadlineMs: 60_000,
    body: { max_tokens: TOKENS, user: `somebody ${user}` },
  });
  const waiting: Socket[] = [];
  const running = await open(started.dataUrl, wishOf(users++));
  await within(5_000, 'the node is busy', () => started.gateway.queue().running === 1);
  bench.onEnd(() => void running.destroy());
  let refused: Answer | undefined;
  for (let depth = 0; refused === undefined; depth++) {
    expect(depth).toBeLessThan(100);
    const socket = await open(started.dataUrl, wishOf(users++));
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    await within(5_000, 'it waits or is refused', () => {
      return started.gateway.queue().depth === depth + 1 || text !== '';
    });
    if (text === '') waiting.push(socket);
    else {
      expect(text).toContain('deadline-infeasible');
      socket.destroy();
      refused = await ask(started.dataUrl, wishOf(users++));
    }
  }
  bench.onEnd(() => waiting.forEach((socket) => socket.destroy()));
  const last = users - 1;
  return {
    started,
    refused,
    again: () => ask(started.dataUrl, wishOf(last)),
    first: () => ask(started.dataUrl, wishOf(users++)),
    depth: waiting.length,
    async enter(who) {
      const socket = await open(started.dataUrl, wishOf(who === 'again' ? last : users++));
      bench.onEnd(() => void socket.destroy());
    },
    async leave(left) {
      for (const socket of waiting.splice(left)) socket.destroy();
      await within(5_000, 'they have left', async () => (await queueDepth(started)) === left);
    },
  };
}

const reasonOf = ({ headers }: Answer): unknown => headers['x-spillway-reason'];
const toldMs = ({ headers }: Answer): number => Number(headers['retry-after-ms']);

describe('a queue that was full', () => {
  test('has no place yet for who comes before its time, and has one for who comes for the first time', async () => {
    const { started, again, leave, enter } = await full();
    await leave(4);
    expect(reasonOf(await again())).toBe('shed');
    await enter('first');
    await within(5_000, 'it waits', () => started.gateway.queue().depth === 5);
  });
});

describe('a queue that is full', () => {
  test('has a place for who comes at the time that it was told', async () => {
    const { started, refused, first, enter, depth } = await full();
    const dueAt = performance.now() + toldMs(refused);
    await within(2 * toldMs(refused), 'its time has come', () => performance.now() >= dueAt);
    expect(reasonOf(await first())).toBe('deadline-infeasible');
    await enter('again');
    await within(5_000, 'it waits', () => started.gateway.queue().depth === depth + 1);
  });

  test('tells those who are refused one after the other later and later times', async () => {
    const { refused, first } = await full();
    const told: number[] = [toldMs(refused)];
    for (let i = 0; i < 8; i++) told.push(toldMs(await first()));
    expect(told[8]).toBeGreaterThan(2 * (told[0] as number));
  });
});
