/**
 * Learned bounds on silence over real sockets: a node that hangs holds nobody until the deadline, before its answer or
 * in the middle of a stream, and its request is served by another node where that is still possible.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { GateMode } from '../../src/core/config/types.ts';
import type { EmulatedFleet } from '../../src/emulator/index.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  IMAGE_MODEL,
  imageNodes,
  imageProfile,
  isServed,
  nodeAt,
  nodeRow,
  sendMany,
  type Wish,
  within,
} from '../support/case-bench.ts';
import type { Answer } from './cli-fixture.ts';
import {
  completion,
  DONE,
  delta,
  type NodeScript,
  ROLE,
  sendJson,
  streamHead,
  type TestNode,
  USAGE,
} from './edge-fixture.ts';

const SPEEDUP = 144;
/** Far below what a hung node would take: it would take this long. */
const DEADLINE_MS = 8_000;
const TIMEOUTS = { firstByteMsMin: 500, idleMsMin: 500 };
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

function refusals(started: StartedGateway): { readonly refused: number; readonly wouldRefuse: number } {
  const count = started.gateway.gates().find(({ gate }) => gate === 'timeouts');
  return { refused: count?.refused ?? 0, wouldRefuse: count?.wouldRefuse ?? 0 };
}

async function imageFleet(mode: GateMode): Promise<{ fleet: EmulatedFleet; started: StartedGateway }> {
  const hardware = { statedHardware: 'A100', trueHardware: 'A100' } as const;
  const fleet = await bench.fleet({
    speedup: SPEEDUP,
    nodes: ['a', 'b', 'c'].map((id) => ({ id, kind: 'image', model: IMAGE_MODEL, ...hardware })),
  });
  const started = await bench.gateway({
    models: [{ id: IMAGE_MODEL, profile: imageProfile(SPEEDUP) }],
    nodes: imageNodes(fleet),
    health: { ejectMs: 60_000 },
    gates: { timeouts: mode },
    timeouts: TIMEOUTS,
  });
  return { fleet, started };
}

describe('a node that accepts requests and never answers', () => {
  const wish = (): Wish => ({ model: IMAGE_MODEL, deadlineMs: DEADLINE_MS });

  it('holds nobody: its requests are served by others, and it is out of rotation', async () => {
    const { fleet, started } = await imageFleet('on');
    const client = bench.client(started.dataUrl);
    const warm = await sendMany(client, { count: 150, concurrency: 3, wish });
    expect(warm.filter(isServed).length).toBe(150);
    expect(refusals(started), 'healthy nodes are not cut').toEqual({ refused: 0, wouldRefuse: 0 });
    await fleet.setFaults('b', { hang: true });
    await within(30_000, 'it is out of rotation', async () => {
      const sent = await sendMany(client, { count: 30, concurrency: 6, wish });
      expect(sent.filter(isServed).length).toBe(30);
      return (await nodeRow(started, 'b')).state === 'ejected';
    });
    expect(refusals(started).refused).toBeGreaterThanOrEqual(3);
    await expectAllReleased(started);
  });

  it('in shadow holds its request until the deadline, and the gate counts it', async () => {
    const { fleet, started } = await imageFleet('shadow');
    const client = bench.client(started.dataUrl);
    await sendMany(client, { count: 150, concurrency: 3, wish });
    await fleet.setFaults('b', { hang: true });
    const short = (): Wish => ({ model: IMAGE_MODEL, deadlineMs: 2_000 });
    await within(30_000, 'a request has met its deadline there', async () => {
      const sent = await sendMany(client, { count: 30, concurrency: 6, wish: short });
      return sent.some(({ answer }) => answer?.status === 504);
    });
    expect(refusals(started).wouldRefuse).toBeGreaterThanOrEqual(1);
    expect(refusals(started).refused).toBe(0);
  });
});

describe('a stream', () => {
  /** Its size is known, so that what is learned of one is known of all. */
  const STREAM: Wish = { stream: true, body: { max_tokens: 3 } };
  /** Two nodes of which one can be told to fall silent, before the first content or after it. */
  async function streams(): Promise<{
    started: StartedGateway;
    silent: { from: 'never' | 'start' | 'middle' };
  }> {
    const silent = { from: 'never' as 'never' | 'start' | 'middle' };
    const script =
      (name: string) =>
      (res: Parameters<typeof sendJson>[0]): void => {
        streamHead(res);
        res.write(ROLE);
        if (name === 'bad' && silent.from === 'start') return;
        setTimeout(() => {
          res.write(delta({ content: name }));
          if (name === 'bad' && silent.from === 'middle') return;
          setTimeout(() => res.end(delta({ content: '!' }) + delta({}, 'stop') + USAGE + DONE), 3);
        }, 3);
      };
    const nodes = [await bench.node(script('bad')), await bench.node(script('good'))];
    const started = await bench.gateway({
      nodes: [nodeAt('bad', nodes[0] as { url: string }), nodeAt('good', nodes[1] as { url: string })],
      models: [
        { id: 'tiny', profile: { kind: 'llm', fixedMs: 3, prefillMsPerToken: 0.01, decodeMsPerToken: 0.5 } },
      ],
      timeouts: TIMEOUTS,
      health: { ejectMs: 60_000 },
    });
    const client = bench.client(started.dataUrl);
    const sent = await sendMany(client, { count: 150, concurrency: 2, wish: () => STREAM });
    expect(sent.filter(isServed).length).toBe(150);
    return { started, silent };
  }

  it('that is silent before its first content is served by another node', async () => {
    const { started, silent } = await streams();
    silent.from = 'start';
    const client = bench.client(started.dataUrl);
    const wish = (): Wish => ({ ...STREAM, deadlineMs: DEADLINE_MS });
    const sent = await sendMany(client, { count: 20, concurrency: 2, wish });
    expect(sent.filter(isServed).length).toBe(20);
    expect(sent.every(({ answer }) => answer?.body.includes('good'))).toBe(true);
    expect(refusals(started).refused).toBeGreaterThanOrEqual(1);
  });

  it('that falls silent in the middle ends with an error in the stream, long before the configured bound', async () => {
    const { started, silent } = await streams();
    silent.from = 'middle';
    const isBroken = ({ text }: { readonly text: string }): boolean => text.includes('node-timeout');
    let broken = 0;
    for (let pair = 0; pair < 20 && broken === 0; pair++) {
      const answers: Answer[] = [];
      for (let i = 0; i < 2; i++) void ask(started.dataUrl, STREAM).then((answer) => answers.push(answer));
      await within(20_000, 'both streams have ended', () => answers.length === 2);
      broken += answers.filter(isBroken).length;
    }
    expect(broken).toBe(1);
    await within(2_000, 'the gate counts it', () => refusals(started).refused >= 1);
    await expectAllReleased(started);
  });
});

describe('a node that is slower from now on', () => {
  it('is cut once, and then gets the time that it needs', async () => {
    const slow = { isOn: false };
    const script =
      (name: string): NodeScript =>
      (res) => {
        const delayMs = name === 'slow' && slow.isOn ? 700 : 2;
        setTimeout(() => sendJson(res, 200, completion(name)), delayMs);
      };
    const nodes = [await bench.node(script('slow')), await bench.node(script('quick'))];
    const started = await bench.gateway({
      nodes: [nodeAt('slow', nodes[0] as TestNode), nodeAt('quick', nodes[1] as TestNode)],
      models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 5 } }],
      timeouts: TIMEOUTS,
      health: { ejectMs: 60_000 },
    });
    const client = bench.client(started.dataUrl);
    await sendMany(client, { count: 150, concurrency: 2, wish: () => ({}) });
    slow.isOn = true;
    const served = await within(30_000, 'it serves again', async () => {
      const sent = await sendMany(client, { count: 2, concurrency: 2, wish: () => ({ deadlineMs: 8_000 }) });
      expect(sent.filter(isServed).length).toBe(2);
      return sent.some(({ answer }) => answer?.body.includes('slow'));
    });
    expect([served, refusals(started).refused]).toEqual([true, 1]);
    expect((await nodeRow(started, 'slow')).state).toBe('active');
  });
});

it('a lone node that is slow is not cut: nobody could do it sooner', async () => {
  const slow = { isOn: false };
  const node = await bench.node((res) => {
    setTimeout(() => sendJson(res, 200, completion('done')), slow.isOn ? 1_200 : 0);
  });
  const started = await bench.gateway({
    nodes: [nodeAt('only', node)],
    models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 5 } }],
    timeouts: TIMEOUTS,
  });
  const client = bench.client(started.dataUrl);
  await sendMany(client, { count: 80, concurrency: 1, wish: () => ({}) });
  slow.isOn = true;
  const sent = await sendMany(client, { count: 2, concurrency: 1, wish: () => ({}) });
  expect(sent.filter(isServed).length).toBe(2);
  expect(refusals(started).refused).toBe(0);
});
