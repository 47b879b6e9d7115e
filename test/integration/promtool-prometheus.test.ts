/**
 * Dashboard and alerts against the real thing: a Prometheus scrapes a gateway that serves, refuses and fails over emulated
 * nodes, and every query of every panel must give data, every alert expression must be taken, every rule must be well.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALERTS } from '../../scripts/monitoring/alerts.ts';
import { PANEL_ROWS } from '../../scripts/monitoring/panels.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { HttpClient } from '../../src/apps/demo/http-client.ts';
import {
  type CaseBench,
  createCaseBench,
  IMAGE_MODEL,
  imageNodes,
  imageProfile,
  nodeAt,
  open,
  send,
  TEXT_MODEL,
  within,
} from '../support/case-bench.ts';
import { type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { prometheusPath } from '../support/promtool.ts';
import { call } from './cli-fixture.ts';
import { sendJson, startNode } from './edge-fixture.ts';

const path = prometheusPath();
const SPEEDUP = 100;
const HARDWARE = { statedHardware: 'A100', trueHardware: 'A100' } as const;
/** In the place of what Grafana fills in: longer than the test takes, so that no rate is of a time without traffic. */
const WINDOW = '2m';
/** A comparison at the end, with nothing else in it: what is left without it must give data. */
const COMPARED = /^(?!.*\b(?:and|or|unless|absent)\b)(.*) (?:>=?|<=?|==) [\d.]+$/;

const QUERIES = PANEL_ROWS.flatMap(({ panels }) =>
  panels.flatMap(({ title, queries }) => queries.map(({ expr }) => [title, expr] as const)),
);

let bench: CaseBench;
let prometheus: Prometheus;

async function startedGateway(): Promise<StartedGateway> {
  const fleet = await bench.fleet({
    speedup: SPEEDUP,
    nodes: [
      { id: 'image-1', kind: 'image', model: IMAGE_MODEL, ...HARDWARE },
      { id: 'text-1', kind: 'text', model: TEXT_MODEL, ...HARDWARE },
    ],
  });
  const host = await startNode((res) => {
    res.end(
      'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 40\nDCGM_FI_DEV_GPU_TEMP{gpu="0"} 60\n' +
        'DCGM_FI_DEV_FB_USED{gpu="0"} 300\nDCGM_FI_DEV_FB_FREE{gpu="0"} 100\n',
    );
  });
  bench.onEnd(() => host.close());
  const broken = await bench.node((res) => sendJson(res, 500, { error: 'broken' }));
  const folder = mkdtempSync(join(tmpdir(), 'spillway-journal-'));
  bench.onEnd(() => rmSync(folder, { recursive: true, force: true }));
  const [image] = imageNodes(fleet);
  const text = nodeAt(
    'text-1',
    { url: fleet.nodes[1]?.url ?? '' },
    { models: [{ model: TEXT_MODEL }], slots: 4, telemetry: { url: `${host.url}/metrics` } },
  );
  return bench.gateway({
    nodes: [image as NonNullable<typeof image>, text, nodeAt('broken', broken)],
    models: [{ id: IMAGE_MODEL, profile: imageProfile(SPEEDUP) }],
    journal: { folder },
  });
}

/** Some of everything: served, streamed, refused, failed, left. */
async function traffic(started: StartedGateway, client: HttpClient): Promise<void> {
  const text = { model: TEXT_MODEL, body: { max_tokens: 20 } };
  await Promise.all([
    ...['critical', 'normal', 'low'].flatMap((className) => [
      send(client, { ...text, className }),
      send(client, { ...text, className, stream: true }),
      send(client, { model: IMAGE_MODEL, className }),
    ]),
    send(client, { model: 'tiny' }),
    send(client, { model: 'nobody-has-it' }),
    open(started.dataUrl, { model: IMAGE_MODEL }).then((socket) => socket.destroy()),
  ]);
}

async function setStage(started: StartedGateway, stage: number | null): Promise<void> {
  const body = JSON.stringify(stage === null ? { stage } : { stage, seconds: 60, why: 'a drill' });
  const headers = { 'content-type': 'application/json' };
  const answer = await call(`${started.adminUrl}/spillway/v1/ladder`, {
    method: 'PUT',
    token: started.adminToken,
    body,
    headers,
  });
  expect(answer.status).toBe(200);
}

beforeAll(async () => {
  if (path === undefined) return;
  bench = createCaseBench();
  const started = await startedGateway();
  const client = bench.client(started.dataUrl);
  await traffic(started, client);
  prometheus = await startPrometheus({
    path,
    target: new URL(started.adminUrl).host,
    token: started.metricsToken,
  });
  bench.onEnd(() => prometheus.close());
  await setStage(started, 3);
  await send(client, { model: TEXT_MODEL, className: 'low' });
  await send(client, { model: TEXT_MODEL, className: 'low' });
  await setStage(started, null);
  await within(60_000, 'enough was scraped', async () => {
    await traffic(started, client);
    const [count] = await prometheus.query('count_over_time(spillway_running[1m])');
    return count !== undefined && count.value >= 8;
  });
}, 120_000);

afterAll(() => bench?.end());

describe.skipIf(path === undefined)('with a real Prometheus', () => {
  test.each(QUERIES)('the panel "%s" gets data: %s', async (_title, expr) => {
    const rows = await prometheus.query(expr.replaceAll('$__rate_interval', WINDOW));
    expect(rows.filter(({ value }) => !Number.isNaN(value)).length).toBeGreaterThan(0);
  });

  test.each(ALERTS.map(({ alert, expr }) => [alert, expr] as const))(
    'the expression of %s is taken',
    async (_, expr) => {
      await prometheus.query(expr);
      const bare = COMPARED.exec(expr)?.[1];
      if (bare !== undefined) expect((await prometheus.query(bare)).length, bare).toBeGreaterThan(0);
    },
  );

  test('every rule is well, once it was evaluated', async () => {
    const rules = await within(20_000, 'all rules were evaluated', async () => {
      const rows = await prometheus.rules();
      return rows.length > 20 && rows.every(({ health }) => health !== 'unknown') && rows;
    });
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
  });

  test('most comparisons were looked at without their bound', () => {
    expect(ALERTS.filter(({ expr }) => COMPARED.test(expr)).length).toBeGreaterThan(ALERTS.length / 2);
  });
});
