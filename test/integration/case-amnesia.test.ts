/**
 * Amnesia (publicly reported as Layr-Labs/d-inference#512): a bad node reconnects and is clean. Here health is
 * remembered by the node's stable id.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { ask, type CaseBench, createCaseBench, nodeRow } from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import { type NodeScript, sendJson, type TestNode } from './edge-fixture.ts';

const BAD: NodeScript = (res) => sendJson(res, 500, { error: { message: 'broken' } });
/** Failures in a row that eject a node. */
const FAILURES = 3;

let bench: CaseBench;
let folder: string;

beforeEach(() => {
  bench = createCaseBench();
  folder = mkdtempSync(join(tmpdir(), 'spillway-amnesia-'));
});

afterEach(async () => {
  await bench.end();
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<StartedGateway> {
  return bench.gateway({ state: { folder }, health: { ejectMs: 60_000 } });
}

async function connectNode(
  started: StartedGateway,
  node: TestNode,
  token: string = started.adminToken,
): Promise<string> {
  const body = { id: 'volunteer', url: node.url, models: ['tiny'], slots: 1 };
  const answer = await call(`${started.adminUrl}/spillway/v1/nodes`, { token, body });
  expect([200, 201]).toContain(answer.status);
  const { credential } = answer.json;
  return typeof credential === 'string' ? credential : token;
}

const posts = (node: TestNode): number => node.seen.filter((row) => row.method === 'POST').length;

describe('a node that was ejected', () => {
  it('is still ejected when it reconnects under its id, at another address too', async () => {
    const started = await start();
    const node = await bench.node(BAD);
    const credential = await connectNode(started, node);
    for (let i = 0; i < FAILURES; i++) expect((await ask(started.dataUrl)).status).toBe(502);
    expect(await nodeRow(started, 'volunteer')).toMatchObject({ state: 'ejected', ejections: 1 });
    await connectNode(started, node, credential);
    expect((await nodeRow(started, 'volunteer')).state).toBe('ejected');
    const moved = await bench.node(BAD);
    await connectNode(started, moved, credential);
    expect(await nodeRow(started, 'volunteer')).toMatchObject({
      state: 'ejected',
      ejections: 1,
      url: moved.url,
    });
    expect((await ask(started.dataUrl)).headers['x-spillway-reason']).toBe('no-node');
    expect([posts(node), posts(moved)]).toEqual([FAILURES, 0]);
  });

  it('is still ejected after the gateway was started again, and reconnecting does not change that', async () => {
    const first = await start();
    const node = await bench.node(BAD);
    const credential = await connectNode(first, node);
    for (let i = 0; i < FAILURES; i++) await ask(first.dataUrl);
    await first.stop();
    const second = await start();
    expect(await nodeRow(second, 'volunteer')).toMatchObject({ state: 'ejected', ejections: 1 });
    await connectNode(second, node, credential);
    const row = await nodeRow(second, 'volunteer');
    expect(row.state).toBe('ejected');
    expect(row.ejectedForMs).toBeGreaterThan(0);
    expect((await ask(second.dataUrl)).headers['x-spillway-reason']).toBe('no-node');
    expect(posts(node)).toBe(FAILURES);
  });
});

describe('a node that reconnects after each failure', () => {
  it('gathers its failures all the same and is ejected', async () => {
    const started = await start();
    const node = await bench.node(BAD);
    const credential = await connectNode(started, node);
    for (let i = 0; i < FAILURES; i++) {
      expect((await ask(started.dataUrl)).status).toBe(502);
      await connectNode(started, node, credential);
    }
    expect((await nodeRow(started, 'volunteer')).state).toBe('ejected');
  });
});
