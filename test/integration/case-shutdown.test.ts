/**
 * Shutdown hangs the queue (publicly reported as llm-d/llm-d-router#2156): what waits when the process is told to end
 * waits for ever. Here a process of its own gets SIGTERM: not ready first, queued requests refused within a second with
 * a time to come back, running ones finish up to the drain limit.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { open, within } from '../support/case-bench.ts';
import {
  type Answer,
  call,
  chat,
  createFixture,
  type Fixture,
  type RunningCli,
  type Stub,
} from './cli-fixture.ts';

const QUEUED = 20;
let fixture: Fixture;

beforeEach(() => {
  fixture = createFixture();
});

afterEach(() => fixture.end());

interface Loaded {
  readonly stub: Stub;
  readonly gateway: RunningCli;
  readonly running: Promise<Answer>;
}

/** A gateway process with one running request, on a node that answers when told. */
async function start(drainMs: number): Promise<Loaded> {
  const stub = await fixture.stub();
  stub.holding = true;
  const file = join(fixture.folder, 'gateway.yaml');
  writeFileSync(
    file,
    stringify({
      nodes: [{ id: 'one', url: stub.url, slots: 1, models: [{ model: 'stub-model' }] }],
      models: [{ id: 'stub-model', profile: { kind: 'generic', meanMs: 20 } }],
      server: { drainMs },
    }),
  );
  const gateway = await fixture.serve(['--config', file]);
  const running = chat(gateway.document.dataUrl);
  await within(10_000, 'the node is busy', () => stub.calls === 1);
  return { stub, gateway, running };
}

async function depth(gateway: RunningCli, expected: number): Promise<void> {
  await within(10_000, `${expected} requests wait`, async () => {
    const { stdout } = await fixture.cli(['queue', '--json']);
    return (JSON.parse(stdout) as { depth: number }).depth === expected;
  });
  expect(gateway.child.exitCode).toBeNull();
}

const isReady = async (dataUrl: string): Promise<boolean> => (await call(`${dataUrl}/readyz`)).status === 200;

describe('SIGTERM', () => {
  it('makes the gateway not ready first, refuses what waits within a second, and lets what runs finish', async () => {
    const { stub, gateway, running } = await start(30_000);
    const { dataUrl } = gateway.document;
    expect(await isReady(dataUrl)).toBe(true);
    let refused = 0;
    let readyAtRefusal = false;
    const waiting = Array.from({ length: QUEUED }, async () => {
      const answer = await chat(dataUrl);
      refused += 1;
      readyAtRefusal ||= await isReady(dataUrl);
      return answer;
    });
    await depth(gateway, QUEUED);
    gateway.child.kill('SIGTERM');
    await within(1_000, 'everything that waited is answered', () => refused === QUEUED);
    for (const answer of await Promise.all(waiting)) {
      expect([answer.status, answer.headers['x-spillway-reason']]).toEqual([503, 'shutting-down']);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect(answer.json).toMatchObject({ error: { code: 'shutting_down' } });
    }
    expect(readyAtRefusal, 'nobody is sent to a gateway that refuses').toBe(false);
    expect((await call(`${dataUrl}/livez`)).status, 'it lives while it drains').toBe(200);
    const late = await chat(dataUrl);
    expect([late.status, late.headers['x-spillway-reason']]).toEqual([503, 'shutting-down']);
    expect(gateway.child.exitCode, 'one still runs').toBeNull();
    stub.release();
    expect((await running).status).toBe(200);
    expect(await gateway.ended()).toBe(0);
    expect(stub.calls, 'no node was called for those that waited').toBe(1);
  });

  it('cuts what runs beyond the drain limit, with a typed answer, and ends', async () => {
    const { gateway, running } = await start(500);
    const cut: { answer?: Answer } = {};
    void running.then((answer) => {
      cut.answer = answer;
    });
    gateway.child.kill('SIGTERM');
    const answer = await within(20_000, 'what still runs is cut', () => cut.answer);
    expect([answer.status, answer.headers['x-spillway-reason']]).toEqual([502, 'node-failed']);
    expect(answer.headers['retry-after']).toBeDefined();
    expect(await gateway.ended()).toBe(0);
  });

  it('does not wait for clients that hold connections and ask nothing', async () => {
    const { stub, gateway, running } = await start(30_000);
    const idle = await open(gateway.document.dataUrl, { model: 'nobody-offers-this' });
    await new Promise((resolve) => idle.once('data', resolve));
    gateway.child.kill('SIGTERM');
    stub.release();
    expect((await running).status).toBe(200);
    expect(await gateway.ended()).toBe(0);
    idle.destroy();
  });
});
