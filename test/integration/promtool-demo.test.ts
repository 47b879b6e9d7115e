/**
 * Whoever looks on while the demo runs: a Prometheus with this repository's rules scrapes the gateway of Spillway's side through
 * its outage, and the dashboard has something to show of it.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALERTS } from '../../scripts/monitoring/alerts.ts';
import { PANEL_ROWS } from '../../scripts/monitoring/panels.ts';
import { runDemo } from '../../src/apps/demo/demo.ts';
import { within } from '../support/case-bench.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { prometheusPath } from '../support/promtool.ts';
import { call } from './cli-fixture.ts';

const path = prometheusPath();
/** In the place of what Grafana fills in: longer than the demo takes. */
const WINDOW = '5m';
/** Emulated accelerators have no hosts that tell of them. */
const WITHOUT: ReadonlySet<string> = new Set(['Accelerators, as their hosts say', 'Temperature']);

const QUERIES = PANEL_ROWS.flatMap(({ panels }) =>
  panels.flatMap(({ title, queries }) => queries.map(({ expr }) => [title, expr] as const)),
);

let folder: string;
let prometheus: Prometheus;
/** When the gateway was scraped last, seconds since 1970. */
let lastAtS: number;
const adminStatuses: number[] = [];

async function lookOn(url: string): Promise<void> {
  const token = (name: string): string => readFileSync(join(folder, name), 'utf8').trim();
  const queue = await call(`${url}/spillway/v1/queue`, { token: token('admin-token') });
  adminStatuses.push(queue.status);
  prometheus = await startPrometheus({
    path: path as string,
    target: new URL(url).host,
    token: token('metrics-token'),
  });
  await within(60_000, 'it was scraped before the first user', async () => {
    return (await prometheus.query('up == 1')).length > 0;
  });
}

beforeAll(async () => {
  if (path === undefined) return;
  folder = mkdtempSync(join(tmpdir(), 'spillway-demo-tokens-'));
  await runDemo({
    json: true,
    quick: true,
    policies: ['spillway'],
    port: 0,
    tokens: folder,
    onListening: ({ url }) => lookOn(url),
    write: () => undefined,
  });
  const [last] = await prometheus.query('max_over_time((timestamp(up) * up)[10m:500ms])');
  lastAtS = last?.value ?? 0;
}, 180_000);

afterAll(async () => {
  await prometheus?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

describe.skipIf(path === undefined)('a Prometheus beside the demo', () => {
  test('is let in by the tokens that were kept, as is who asks the admin plane', () => {
    expect(adminStatuses).toEqual([200]);
  });

  test.each(QUERIES)('shows "%s" of it: %s', async (title, expr) => {
    const rows = await prometheus.query(expr.replaceAll('$__rate_interval', WINDOW), lastAtS);
    const told = rows.filter(({ value }) => !Number.isNaN(value)).length;
    if (WITHOUT.has(title)) expect(told).toBe(0);
    else expect(told).toBeGreaterThan(0);
  });

  test.each(ALERTS.map(({ alert, expr }) => [alert, expr] as const))(
    'evaluates the expression of %s',
    async (_, expr) => {
      await expect(prometheus.query(expr, lastAtS)).resolves.toBeInstanceOf(Array);
    },
  );

  test('saw the outage: users were refused, and told so', async () => {
    const rows = await prometheus.query('sum(spillway_gate_refusals_total{effect="refused"})', lastAtS);
    expect(rows[0]?.value ?? 0).toBeGreaterThan(0);
  });
});
