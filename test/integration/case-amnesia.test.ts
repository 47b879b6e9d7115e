/**
 * Amnesia (publicly reported as Layr-Labs/d-inference#512): a bad node reconnects and is clean. Here health is
 * remembered by the node's stable id.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { ask, type CaseBench, createCaseBench, nodeRow, within } from '../support/case-bench.ts';
import { call, createFixture, type Fixture, type RunningCli } from './cli-fixture.ts';
import { completion, type NodeScript, sendJson, type TestNode } from './edge-fixture.ts';

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

describe('a gateway that is killed without warning', () => {
  let fixture: Fixture;

  beforeEach(() => {
    fixture = createFixture();
    writeFileSync(join(fixture.folder, 'spillway.yaml'), 'health: { ejectMs: 60000 }\n');
  });

  afterEach(() => fixture.end());

  const serve = (): Promise<RunningCli> => fixture.serve(['--config', join(fixture.folder, 'spillway.yaml')]);

  async function register(running: RunningCli, node: TestNode, models: readonly string[]): Promise<void> {
    const { adminUrl, adminTokenFile } = running.document;
    const token = readFileSync(adminTokenFile, 'utf8').trim();
    const body = { id: 'volunteer', url: node.url, models, slots: 1 };
    expect((await call(`${adminUrl}/spillway/v1/nodes`, { token, body })).status).toBe(201);
  }

  async function row(running: RunningCli): Promise<Record<string, unknown>> {
    const { adminUrl, adminTokenFile } = running.document;
    const token = readFileSync(adminTokenFile, 'utf8').trim();
    return (await call(`${adminUrl}/spillway/v1/nodes/volunteer`, { token })).json;
  }

  /** Until the write-ahead log of the registry holds the text; then the process dies. */
  async function killOnceSaved(running: RunningCli, text: string): Promise<void> {
    const log = join(fixture.folder, 'state', 'registry.sqlite-wal');
    const isSaved = (): boolean => existsSync(log) && readFileSync(log, 'latin1').includes(text);
    await within(10_000, `the registry holds ${text}`, isSaved);
    running.child.kill('SIGKILL');
    await running.ended();
  }

  it('knows two failures of a node that was not ejected yet: a third one is enough', async () => {
    const node = await bench.node(BAD);
    const first = await serve();
    await register(first, node, ['tiny']);
    for (let i = 0; i < FAILURES - 1; i++) expect((await ask(first.document.dataUrl)).status).toBe(502);
    expect(await row(first)).toMatchObject({ state: 'unverified', ejections: 0 });
    await killOnceSaved(first, '"score":4.1588');
    const second = await serve();
    expect((await ask(second.document.dataUrl)).status).toBe(502);
    expect(await row(second)).toMatchObject({ state: 'ejected', ejections: 1 });
    expect(posts(node)).toBe(FAILURES);
  });

  it('knows the model that a node of several does not get any more, and gives it the others', async () => {
    const node = await bench.node((res, seen) => {
      if (seen.body.includes('"tiny"')) sendJson(res, 500, { error: { message: 'broken' } });
      else sendJson(res, 200, completion('well'));
    });
    const first = await serve();
    await register(first, node, ['tiny', 'sound']);
    expect((await ask(first.document.dataUrl, { model: 'sound' })).status).toBe(200);
    for (let i = 0; i < FAILURES; i++) expect((await ask(first.document.dataUrl)).status).toBe(502);
    await killOnceSaved(first, '"opens":1');
    const second = await serve();
    expect(await row(second)).toMatchObject({
      ejections: 0,
      breakers: [{ model: 'tiny', scope: 'node', state: 'open', opens: 1 }],
    });
    const refused = await ask(second.document.dataUrl);
    expect([refused.status, refused.headers['x-spillway-reason']]).toEqual([503, 'no-node']);
    expect((await ask(second.document.dataUrl, { model: 'sound' })).status).toBe(200);
    expect(node.seen.filter((seen) => seen.method === 'POST' && seen.body.includes('"tiny"'))).toHaveLength(
      FAILURES,
    );
  });
});
