/** Preemption over real sockets: what the node, the client in haste and the client that gave its place see of it. */
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sha256Hex } from '../../src/adapters/config-file/index.ts';
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
import { type Answer, call } from './cli-fixture.ts';
import {
  completion,
  delta,
  DONE,
  ROLE,
  sendJson,
  streamHead,
  streamWords,
  type TestNode,
} from './edge-fixture.ts';

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

/** Nodes of one slot that answer when the test says so; their rate is what their hardware class promises. */
async function start(input: ConfigInput = {}, count = 1): Promise<World> {
  const held: ServerResponse[] = [];
  const nodes = [];
  for (let i = 0; i < count; i++) nodes.push(await bench.node((res) => void held.push(res)));
  const [node] = nodes as [TestNode];
  const profile: WorkProfile = { kind: 'llm', fixedMs: 0, prefillMsPerToken: 0, decodeMsPerToken: 100 };
  const models = [{ id: 'tiny', profile }];
  const started = await bench.gateway({
    nodes: nodes.map((one, i) => nodeAt(`n${i}`, one)),
    models,
    ...input,
  });
  return { node, started, held };
}

const LOW = { className: 'low', deadlineMs: 100_000, body: { max_tokens: 3_000 } };
const CRITICAL = { className: 'critical', deadlineMs: 15_000, body: { max_tokens: 10 } };

const answer = (res: ServerResponse, text: string): void => sendJson(res, 200, completion(text));
const calls = ({ held }: World, count: number): Promise<unknown> =>
  within(5_000, `${count} calls of nodes`, () => held.length === count);
const indexOf = ({ node }: World, nth: number): number =>
  node.seen.flatMap(({ method }, index) => (method === 'POST' ? [index] : []))[nth] as number;

/** That the node has seen the end of the nth call. */
function aborted({ held }: World, nth: number): Promise<unknown> {
  const call = held[nth] as ServerResponse;
  return within(5_000, `call ${nth} is aborted`, () => call.closed && !call.writableFinished);
}

/** The answer, which must be there soon: the node has given it. */
async function soon(asked: Promise<Answer>): Promise<Answer> {
  const known: { answer?: Answer } = {};
  void asked.then((answer) => {
    known.answer = answer;
  });
  return within(5_000, 'the client has its answer', () => known.answer);
}

const queued = ({ started }: World, depth: number): Promise<unknown> =>
  within(5_000, `${depth} wait`, () => started.gateway.queue().depth === depth);

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
    await aborted(world, 0);
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
    await aborted(world, 0);
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
    const refused = await soon(low);
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

  test('gets the place although another one of its class has waited longer', async () => {
    const tenants = ['patient', 'hasty'].map((id) => ({
      id,
      classCeiling: 'critical',
      keys: [{ id, sha256: sha256Hex(`sk-${id}`) }],
    }));
    const world = await start({ tenants });
    const as = (id: string): { headers: Record<string, string> } => ({
      headers: { authorization: `Bearer sk-${id}` },
    });
    const low = ask(world.started.dataUrl, { ...LOW, ...as('patient'), body: { max_tokens: 200 } });
    await calls(world, 1);
    const patient = ask(world.started.dataUrl, { ...CRITICAL, ...as('patient'), deadlineMs: 100_000 });
    await queued(world, 1);
    const hasty = ask(world.started.dataUrl, { ...CRITICAL, ...as('hasty'), body: { max_tokens: 11 } });
    await aborted(world, 0);
    await calls(world, 2);
    expect(world.node.seen.at(-1)?.body, 'the one that asked for the place').toContain('"max_tokens":11');
    answer(world.held[1] as ServerResponse, 'in haste');
    expect((await soon(hasty)).status).toBe(200);
    for (const nth of [2, 3]) {
      await calls(world, nth + 1);
      answer(world.held[nth] as ServerResponse, 'later');
    }
    expect([(await soon(patient)).status, (await soon(low)).status]).toEqual([200, 200]);
    await expectAllReleased(world.started);
  });
});

describe('nobody has to leave', () => {
  test('while the node will be free in time', async () => {
    const world = await start();
    const low = ask(world.started.dataUrl, { ...LOW, body: { max_tokens: 30 } });
    await calls(world, 1);
    const critical = ask(world.started.dataUrl, CRITICAL);
    await queued(world, 1);
    answer(world.held[0] as ServerResponse, 'undisturbed');
    expect((await soon(low)).headers['x-spillway-attempts']).toBe('1');
    await calls(world, 2);
    answer(world.held[1] as ServerResponse, 'in time');
    expect((await soon(critical)).status).toBe(200);
    await expectAllReleased(world.started);
  });

  test('whose answer has begun', async () => {
    const world = await start();
    const socket = await open(world.started.dataUrl, { ...LOW, stream: true });
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    await calls(world, 1);
    const stream = world.held[0] as ServerResponse;
    streamHead(stream);
    stream.write(ROLE + delta({ content: 'begun' }));
    await within(5_000, 'the client has a part', () => text.includes('begun'));
    const critical = ask(world.started.dataUrl, CRITICAL);
    await queued(world, 1);
    stream.end(delta({ content: ' and ended' }) + delta({}, 'stop') + DONE);
    await within(5_000, 'the client has all of it', () => text.includes(' and ended') && text.includes(DONE));
    await calls(world, 2);
    answer(world.held[1] as ServerResponse, 'after it');
    expect((await soon(critical)).status).toBe(200);
    socket.destroy();
    await expectAllReleased(world.started);
  });

  test('beyond the budget of work that may be thrown away', async () => {
    const preemption = { budgetRatio: 0, budgetReserve: 1 };
    const world = await start({ preemption }, 2);
    const older = ask(world.started.dataUrl, LOW);
    await calls(world, 1);
    const newer = ask(world.started.dataUrl, LOW);
    await calls(world, 2);
    const first = ask(world.started.dataUrl, { ...CRITICAL, deadlineMs: 40_000, body: { max_tokens: 250 } });
    await aborted(world, 1);
    await calls(world, 3);
    const second = ask(world.started.dataUrl, CRITICAL);
    await queued(world, 2);
    answer(world.held[0] as ServerResponse, 'undisturbed');
    expect((await soon(older)).headers['x-spillway-attempts']).toBe('1');
    await calls(world, 4);
    answer(world.held[2] as ServerResponse, 'in haste');
    await calls(world, 5);
    for (const nth of [3, 4]) answer(world.held[nth] as ServerResponse, 'later');
    for (const one of [first, second, newer]) expect((await soon(one)).status).toBe(200);
    expect(await preemptions(world)).toContain('spillway_preemptions_total{effect="queued"} 1');
    await expectAllReleased(world.started);
  });

  test('in shadow, where it is counted what would have been', async () => {
    const world = await start({ gates: { preemption: 'shadow' } });
    const low = ask(world.started.dataUrl, LOW);
    await calls(world, 1);
    const critical = ask(world.started.dataUrl, CRITICAL);
    await queued(world, 1);
    answer(world.held[0] as ServerResponse, 'undisturbed');
    expect((await soon(low)).headers['x-spillway-attempts']).toBe('1');
    await calls(world, 2);
    answer(world.held[1] as ServerResponse, 'after it');
    expect((await soon(critical)).status).toBe(200);
    const gate = world.started.gateway.gates().find((row) => row.gate === 'preemption');
    expect(gate).toMatchObject({ refused: 0, wouldRefuse: 1 });
    await expectAllReleased(world.started);
  });
});
