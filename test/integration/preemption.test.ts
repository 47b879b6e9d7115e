/** Preemption over real sockets: what the node, the client in haste and the client that gave its place see of it. */
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import type { WorkProfile } from '../../src/core/config/types.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  nodeAt,
  open,
  within,
} from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import { completion, ROLE, sendJson, streamHead, streamWords, type TestNode } from './edge-fixture.ts';

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

interface World {
  readonly node: TestNode;
  readonly started: StartedGateway;
  /** Calls that the node has not answered. */
  readonly held: ServerResponse[];
}

/** One node with one slot that answers when the test says so; its rate is what its hardware class promises. */
async function start(input: ConfigInput = {}): Promise<World> {
  const held: ServerResponse[] = [];
  const node = await bench.node((res) => void held.push(res));
  const profile: WorkProfile = { kind: 'llm', fixedMs: 0, prefillMsPerToken: 0, decodeMsPerToken: 100 };
  const models = [{ id: 'tiny', profile }];
  const started = await bench.gateway({ nodes: [nodeAt('one', node)], models, ...input });
  return { node, started, held };
}

const LOW = { className: 'low', deadlineMs: 100_000, body: { max_tokens: 3_000 } };
const CRITICAL = { className: 'critical', deadlineMs: 15_000, body: { max_tokens: 10 } };

const answer = (res: ServerResponse, text: string): void => sendJson(res, 200, completion(text));
const calls = ({ node }: World, count: number): Promise<unknown> =>
  within(
    5_000,
    `${count} calls of the node`,
    () => node.seen.filter(({ method }) => method === 'POST').length === count,
  );
const indexOf = ({ node }: World, nth: number): number =>
  node.seen.flatMap(({ method }, index) => (method === 'POST' ? [index] : []))[nth] as number;

async function preemptions({ started }: World): Promise<string> {
  const page = await call(`${started.adminUrl}/metrics`, { token: started.adminToken });
  return page.text;
}

describe('a critical request at a full node', () => {
  test('gets the place of a low one, whose client has its whole answer later', async () => {
    const world = await start();
    const low = ask(world.started.dataUrl, LOW);
    await calls(world, 1);
    const critical = ask(world.started.dataUrl, CRITICAL);
    await world.node.aborted(indexOf(world, 0));
    await calls(world, 2);
    answer(world.held[1] as ServerResponse, 'in haste');
    expect((await critical).status).toBe(200);
    await calls(world, 3);
    expect(world.node.seen.at(-1)?.body, 'the same request again').toBe(
      world.node.seen[indexOf(world, 0)]?.body,
    );
    answer(world.held[2] as ServerResponse, 'at leisure');
    const served = await low;
    expect(served.status).toBe(200);
    expect(served.headers['x-spillway-attempts']).toBe('2');
    expect(JSON.stringify(served.json)).toContain('at leisure');
    expect(await preemptions(world)).toContain('spillway_preemptions_total{effect="queued"} 1');
    await expectAllReleased(world.started);
  });

  test('gets the place of a stream that has said nothing yet, which is whole later', async () => {
    const world = await start();
    const low = ask(world.started.dataUrl, { ...LOW, stream: true });
    await calls(world, 1);
    streamHead(world.held[0] as ServerResponse);
    (world.held[0] as ServerResponse).write(ROLE);
    const critical = ask(world.started.dataUrl, CRITICAL);
    await world.node.aborted(indexOf(world, 0));
    await calls(world, 2);
    answer(world.held[1] as ServerResponse, 'in haste');
    expect((await critical).status).toBe(200);
    await calls(world, 3);
    streamWords(world.held[2] as ServerResponse, ['at ', 'leisure']);
    const text = (await low).text;
    expect(text).toContain('leisure');
    expect(text.match(/"role":"assistant"/g)).toHaveLength(1);
    await expectAllReleased(world.started);
  });

  test('tells a low one that the queue has no room for so, with the reason', async () => {
    // Less than the low one is: it runs because a node is idle, and could never wait.
    const world = await start({ bounds: { workMsMax: 10_000 } });
    const low = ask(world.started.dataUrl, LOW);
    await calls(world, 1);
    const critical = ask(world.started.dataUrl, CRITICAL);
    const refused = await low;
    expect(refused.status).toBe(429);
    expect(refused.headers['x-spillway-reason']).toBe('preempted');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(JSON.stringify(refused.json)).toContain('gave its place');
    await calls(world, 2);
    answer(world.held[1] as ServerResponse, 'in haste');
    expect((await critical).status).toBe(200);
    expect(await preemptions(world)).toContain('spillway_preemptions_total{effect="ended"} 1');
    await expectAllReleased(world.started);
  });

  test('leaves nothing behind when the client that gave its place leaves', async () => {
    const world = await start();
    const low = await open(world.started.dataUrl, LOW);
    await calls(world, 1);
    const critical = ask(world.started.dataUrl, CRITICAL);
    await calls(world, 2);
    low.destroy();
    await within(5_000, 'nobody waits', () => world.started.gateway.queue().depth === 0);
    answer(world.held[1] as ServerResponse, 'in haste');
    expect((await critical).status).toBe(200);
    await expectAllReleased(world.started);
    expect(world.node.seen.filter(({ method }) => method === 'POST')).toHaveLength(2);
  });
});
