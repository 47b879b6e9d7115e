/**
 * A thousand nodes in a real browser. The pictures are rendered by the gateway's own `/watch` from a synthetic fleet that
 * changes with every picture, and come forty times a second: ten times as often as the gateway allows.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createConsoleFiles } from '../../src/apps/gateway/console-files.ts';
import { ownsConsole, serveConsole } from '../../src/edge/admin/console.ts';
import { createWatch } from '../../src/edge/admin/watch.ts';
import type { Gateway, NodeRow } from '../../src/runtime/contract.ts';
import { browserPath } from '../support/browser.ts';
import { type CaseBench, nodeAt, within } from '../support/case-bench.ts';
import { consoleSuite, expectNoComplaints, type Reached, STEP_MS_MAX } from './console-bench.ts';

const NODES = 1_000;
const EVERY_MS = 25;
const WARM_UPDATES = 40;
const UPDATES = 200;
const STATES = [
  'active',
  'active',
  'active',
  'active',
  'suspect',
  'cordoned',
  'draining',
  'ejected',
] as const;

/** What of the browser must not grow while pictures come. */
interface Held {
  readonly nodes: number;
  readonly jsEventListeners: number;
  readonly heapBytes: number;
}

describe.skipIf(browserPath() === undefined)('the console with a thousand nodes', () => {
  const suite = consoleSuite();

  test('takes each update in a small part of the time between two, and keeps no more after 200 than before', async () => {
    const opened = await suite.open(await startSynthetic(suite.bench));
    const { page, context } = opened;
    await page.evaluate(`
      window.updatesMs = [];
      new PerformanceObserver((list) => {
        for (const entry of list.getEntriesByName('spillway:update')) window.updatesMs.push(entry.duration);
      }).observe({ entryTypes: ['measure'] });
    `);
    await opened.logIn();
    await page.getByText(/1,000 nodes: .*ejected/).waitFor();
    const devtools = await context.newCDPSession(page);
    const held = async (): Promise<Held> => {
      await devtools.send('HeapProfiler.collectGarbage');
      const { nodes, jsEventListeners } = await devtools.send('Memory.getDOMCounters');
      return { nodes, jsEventListeners, heapBytes: (await devtools.send('Runtime.getHeapUsage')).usedSize };
    };
    const updated = (count: number): Promise<unknown> =>
      within(
        4 * STEP_MS_MAX,
        `${count} updates`,
        async () => (await page.evaluate<number>('window.updatesMs.length')) >= count,
      );
    await updated(WARM_UPDATES);
    const before = await held();
    await updated(WARM_UPDATES + UPDATES);
    const after = await held();
    const updatesMs = (await page.evaluate<number[]>('window.updatesMs')).toSorted((a, b) => a - b);
    const medianMs = updatesMs[Math.floor(updatesMs.length / 2)] as number;
    const p95Ms = updatesMs[Math.floor(updatesMs.length * 0.95)] as number;
    // Told, not asserted: how long it takes is the machine's; that nothing grows is the console's.
    process.stdout.write(
      `Main thread per update of ${NODES} nodes: median ${medianMs.toFixed(1)} ms, 95th percentile ${p95Ms.toFixed(1)} ms; ` +
        `heap ${mib(before.heapBytes)} before and ${mib(after.heapBytes)} after ${UPDATES} updates\n`,
    );
    // What the collector has not taken yet is a few updates' worth; what is kept would be two hundred's.
    const perUpdate = (count: (held: Held) => number): number => (count(after) - count(before)) / UPDATES;
    expect(perUpdate(({ jsEventListeners }) => jsEventListeners)).toBeLessThan(0.5);
    expect(perUpdate(({ nodes }) => nodes)).toBeLessThan(5);
    expect(await page.evaluate(`performance.getEntriesByType('measure').length`)).toBe(0);
    expectNoComplaints(opened);
  });
});

function mib(bytes: number): string {
  return `${(bytes / (1024 * 1024)).toFixed(1)} MiB`;
}

/** The console and the live picture alone; of a real gateway with one node, shown a thousandfold. */
async function startSynthetic(bench: CaseBench): Promise<Reached> {
  const node = await bench.node(() => undefined);
  const started = await bench.gateway({ nodes: [nodeAt('one', node)] });
  const [row] = started.gateway.nodes() as [NodeRow];
  let turn = 0;
  const nodes = (): readonly NodeRow[] => {
    turn += 1;
    return Array.from({ length: NODES }, (_, i) => ({
      ...row,
      id: `node-${String(i).padStart(4, '0')}`,
      state: STATES[(i * 7) % STATES.length] ?? 'active',
      drainMs: (i * 131 + turn * 977) % 40_000,
      inflight: (i + turn) % 5,
      rates: [{ model: '', rate: 0.5 + ((i * 13) % 50) / 10, observations: 9 }],
    }));
  };
  const gateway = Object.create(started.gateway, { nodes: { value: nodes } }) as Gateway;
  const limits = { everyMsMin: EVERY_MS, stallMsMax: 60_000, shareMax: 1 };
  const watch = createWatch({ gateway, wallMs: Date.now, limits });
  const files = createConsoleFiles();
  const server = createServer((req, res) => {
    const { pathname } = new URL(req.url ?? '', 'http://localhost');
    // The rhythm that is asked for by the page is the gateway's fastest; here it is faster.
    const call = { req, res, method: 'GET', path: pathname, query: new URLSearchParams(), bearer: '' };
    call.query.set('everyMs', String(EVERY_MS));
    if (ownsConsole(pathname)) serveConsole(req, res, { path: pathname, files });
    else if (pathname.endsWith('/watch')) void watch.route.methods['GET']?.(call, '');
    else
      res
        .writeHead(pathname.endsWith('/queue') ? 200 : 404, { 'content-type': 'application/json' })
        .end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  bench.onEnd(() => {
    watch.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { adminUrl: `http://127.0.0.1:${port}`, adminToken: 'any' };
}
