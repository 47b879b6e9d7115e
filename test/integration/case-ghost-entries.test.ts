/**
 * Ghost entries (publicly reported as BerriAI/litellm#20059): requests whose clients timed out stay queued, count as
 * depth, and are computed for nobody.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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
import { completion, sendJson } from './edge-fixture.ts';

const CLIENTS = 60;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

describe('requests that wait', () => {
  it('leave the queue with their clients, and no node is called for them', async () => {
    let calls = 0;
    let finish = (): void => undefined;
    const node = await bench.node((res) => {
      calls += 1;
      finish = () => sendJson(res, 200, completion('hello'));
    });
    const started = await bench.gateway({
      nodes: [nodeAt('one', node)],
      models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 10 } }],
    });
    const running = ask(started.dataUrl);
    await within(5_000, 'the node is busy', () => calls === 1);
    const sockets = await Promise.all(
      Array.from({ length: CLIENTS }, (_, i) => open(started.dataUrl, { stream: i % 2 === 0 })),
    );
    await within(5_000, 'all wait', async () => (await queueDepth(started)) === CLIENTS);
    for (const [index, socket] of sockets.entries()) {
      if (index % 3 === 0) socket.resetAndDestroy();
      else socket.destroy();
    }
    await within(1_000, 'the depth is 0', async () => (await queueDepth(started)) === 0);
    finish();
    expect((await running).status).toBe(200);
    const after = ask(started.dataUrl);
    await within(5_000, 'the next request runs', () => calls === 2);
    finish();
    expect((await after).status).toBe(200);
    await expectAllReleased(started);
    expect(calls, 'the first, the last, and nobody between').toBe(2);
  });

  it('leave the queue at their deadline with a typed answer, and no node is called for them', async () => {
    let calls = 0;
    let finish = (): void => undefined;
    const node = await bench.node((res) => {
      calls += 1;
      finish = () => sendJson(res, 200, completion('hello'));
    });
    const started = await bench.gateway({
      nodes: [nodeAt('one', node)],
      models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 10 } }],
      admission: { flowWaitDeadlineShare: 1, flowWaitMsMax: 60_000 },
    });
    const running = ask(started.dataUrl);
    await within(5_000, 'the node is busy', () => calls === 1);
    const waiting = await Promise.all(
      Array.from({ length: 10 }, () => ask(started.dataUrl, { deadlineMs: 300 })),
    );
    for (const answer of waiting) {
      expect([answer.status, answer.headers['x-spillway-reason']]).toEqual([429, 'wait-expired']);
      expect(answer.headers['x-spillway-attempts']).toBe('0');
    }
    expect(await queueDepth(started)).toBe(0);
    finish();
    expect((await running).status).toBe(200);
    await expectAllReleased(started);
    expect(calls).toBe(1);
  });
});
