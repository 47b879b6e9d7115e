/**
 * Head of line (publicly reported as kubernetes-sigs/kueue#8309 and Haidra-Org/AI-Horde#161): an impossible task shows
 * a position for ever; a head that waits blocks tasks for other hardware.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  nodeAt,
  queueDepth,
  within,
  type Wish,
} from '../support/case-bench.ts';
import { completion, sendJson, type TestNode } from './edge-fixture.ts';

const VISION = {
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      ],
    },
  ],
};
let bench: CaseBench;
/** Answers held back by the busy node. */
let held: (() => void)[];

beforeEach(() => {
  bench = createCaseBench();
  held = [];
});

afterEach(() => bench.end());

interface Started {
  readonly started: StartedGateway;
  readonly seeing: TestNode;
}

/** One node sees pictures and answers only when told; the other reads short texts and answers at once. */
async function start(): Promise<Started> {
  const seeing = await bench.node((res) => held.push(() => sendJson(res, 200, completion('seen'))));
  const reading = await bench.node((res) => sendJson(res, 200, completion('read')));
  const started = await bench.gateway({
    nodes: [
      nodeAt('seeing', seeing, {
        models: [{ model: 'tiny', capabilities: ['vision'], contextTokensMax: 2_000 }, { model: 'large' }],
      }),
      nodeAt('reading', reading, { models: [{ model: 'tiny', capabilities: [], contextTokensMax: 1_000 }] }),
    ],
    models: [
      { id: 'tiny', profile: { kind: 'generic', meanMs: 20 } },
      { id: 'large', profile: { kind: 'generic', meanMs: 20 } },
    ],
    placement: { swapMs: 0 },
  });
  return { started, seeing };
}

/** Keeps the seeing node busy and lets pictures wait behind it. */
async function blockHead({ started }: Started): Promise<Promise<unknown>[]> {
  const blocked = [ask(started.dataUrl, { body: VISION })];
  await within(5_000, 'the seeing node is busy', () => held.length === 1);
  blocked.push(ask(started.dataUrl, { body: VISION, className: 'critical' }));
  blocked.push(ask(started.dataUrl, { model: 'large' }));
  await within(5_000, 'the heads wait', async () => (await queueDepth(started)) === 2);
  return blocked;
}

async function release(blocked: Promise<unknown>[]): Promise<void> {
  for (let done = 0; done < blocked.length; done++) {
    await within(5_000, 'the next one runs', () => held.length > 0);
    held.splice(0).forEach((answer) => answer());
  }
  await Promise.all(blocked);
}

describe('heads that wait for one node', () => {
  it('do not hold up tasks for another one, nor of a lower class', async () => {
    const run = await start();
    const blocked = await blockHead(run);
    for (let i = 0; i < 20; i++) {
      const answer = await ask(run.started.dataUrl, { className: 'low' });
      expect([answer.status, answer.headers['x-spillway-node']]).toEqual([200, 'reading']);
    }
    expect(await queueDepth(run.started), 'the heads wait still').toBe(2);
    await release(blocked);
    await expectAllReleased(run.started);
  });
});

describe('a task that no node can do', () => {
  const tooLong = 'word '.repeat(3_000);

  it.each<[string, Wish, number, string]>([
    [
      'needs tools',
      { body: { tools: [{ type: 'function', function: { name: 'f' } }] } },
      400,
      'capability-missing',
    ],
    ['is too long', { body: { messages: [{ role: 'user', content: tooLong }] } }, 400, 'context-too-long'],
    ['wants what nobody offers', { model: 'nobody-offers-this' }, 404, 'unknown-model'],
    ['cannot be done by its deadline even on an idle node', { deadlineMs: 2 }, 429, 'too-slow'],
  ])(
    'that %s is refused at once with the reason, also while others wait',
    async (_title, wish, status, reason) => {
      const run = await start();
      const blocked = await blockHead(run);
      const answer = await ask(run.started.dataUrl, wish);
      expect([answer.status, answer.headers['x-spillway-reason']]).toEqual([status, reason]);
      expect(answer.headers['x-should-retry']).not.toBe('true');
      expect(answer.headers['retry-after'], 'waiting cannot help').toBeUndefined();
      expect(await queueDepth(run.started), 'it has no position').toBe(2);
      await release(blocked);
      await expectAllReleased(run.started);
    },
  );
});
