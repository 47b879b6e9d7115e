/**
 * Stale readings stop the pool (publicly reported as llm-d/llm-d-router#2100 and #2547): when the load pages of every
 * engine freeze or fall silent, a router that trusts them alone serves nobody. Unknown is neither zero nor full.
 */
import { describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import {
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  isServed,
  type LoadedNode,
  nodeAt,
  send,
  sendMany,
  type Wish,
  within,
} from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import { completion, sendJson } from './edge-fixture.ts';

const SLOTS = 4;

async function start(bench: CaseBench): Promise<{ nodes: readonly LoadedNode[]; started: StartedGateway }> {
  const script = (res: Parameters<Parameters<CaseBench['vllm']>[0]>[0]): void =>
    sendJson(res, 200, completion('hello'));
  const nodes = [await bench.vllm(script), await bench.vllm(script)];
  const started = await bench.gateway({
    nodes: nodes.map((node, index) => nodeAt(`n${index}`, node, { protocol: 'vllm', slots: SLOTS })),
    models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 5 } }],
    health: { reconcileMs: 500, suspectLeaseMs: 1_000 },
  });
  return { nodes, started };
}

async function signal(started: StartedGateway): Promise<boolean> {
  const { text } = await call(`${started.adminUrl}/metrics`, { token: started.adminToken });
  return /^spillway_signal_active\{signal="stale-readings"\} 1$/m.test(text);
}

interface Found {
  readonly signals: readonly { readonly signal: string; readonly since: number; readonly subject: unknown }[];
  readonly detectors: readonly { readonly signal: string; readonly state: string }[];
  readonly lookedAt: number;
}

async function findings(started: StartedGateway): Promise<Found> {
  const { text } = await call(`${started.adminUrl}/spillway/v1/signals`, { token: started.adminToken });
  return JSON.parse(text) as Found;
}

// Each waits for a page to grow stale, so they do it side by side.
describe('when the load page of every engine', () => {
  it.concurrent.for<[string, LoadedNode['page']]>([
    ['is gone', 'missing'],
    ['says nothing that is a load', 'garbage'],
    ['never answers', 'silent'],
  ])('%s, own accounting serves on, and a signal says so', async ([_title, page], { onTestFinished }) => {
    const bench = createCaseBench();
    onTestFinished(() => bench.end());
    const { nodes, started } = await start(bench);
    const client = bench.client(started.dataUrl);
    expect(isServed(await send(client))).toBe(true);
    await within(5_000, 'loads were read', () => nodes.every((node) => node.reads > 1));
    expect(await signal(started)).toBe(false);
    for (const node of nodes) node.load = { running: 8, waiting: 7, cacheUse: 0.97 };
    const reads = nodes.map((node) => node.reads);
    await within(5_000, 'full loads were read', () =>
      nodes.every((node, i) => node.reads > (reads[i] ?? 0) + 1),
    );
    for (const node of nodes) node.page = page;
    // The last word was "full"; it counts for a few seconds and no longer.
    const wish = (): Wish => ({ deadlineMs: 10_000 });
    expect(isServed(await send(client, wish())), 'the first one').toBe(true);
    const sent = await sendMany(client, { count: 60, concurrency: 6, wish });
    expect(sent.filter(isServed).length).toBe(60);
    await within(12_000, 'the signal is on', () => signal(started));
    await within(12_000, 'both nodes are told', async () => (await findings(started)).signals.length === 2);
    const { signals, detectors, lookedAt } = await findings(started);
    expect(signals).toMatchObject([
      { signal: 'stale-readings', severity: 'warn', docs: 'docs/signals/stale-readings.md' },
      { signal: 'stale-readings' },
    ]);
    expect(signals.map(({ subject }) => subject)).toContainEqual({ kind: 'node', id: 'n0' });
    expect(Math.abs(Date.now() - lookedAt)).toBeLessThan(60_000);
    expect(signals.every(({ since }) => since <= lookedAt)).toBe(true);
    expect(detectors).toContainEqual(expect.objectContaining({ signal: 'stale-readings', state: 'active' }));
    expect(isServed(await send(client))).toBe(true);
    for (const node of nodes) {
      node.load = { running: 0, waiting: 0, cacheUse: 0 };
      node.page = 'good';
    }
    await within(5_000, 'the signal is off again', async () => !(await signal(started)));
    await expectAllReleased(started);
  });

  it.concurrent('froze while it said that work waits, own accounting serves on, and a signal says so', async ({
    onTestFinished,
  }) => {
    const bench = createCaseBench();
    onTestFinished(() => bench.end());
    const { nodes, started } = await start(bench);
    const client = bench.client(started.dataUrl);
    expect(isServed(await send(client))).toBe(true);
    for (const node of nodes) node.load = { running: 8, waiting: 7, cacheUse: 0.97 };
    const [before] = nodes.map((node) => node.reads);
    await within(5_000, 'the full loads were read', () =>
      nodes.every((node) => node.reads > (before ?? 0) + 1),
    );
    await within(12_000, 'the signal is on', () => signal(started));
    const sent = await sendMany(client, { count: 60, concurrency: 6, wish: () => ({ deadlineMs: 2_000 }) });
    expect(sent.filter(isServed).length, 'although the pages still say that they are full').toBe(60);
    await expectAllReleased(started);
  });
});
