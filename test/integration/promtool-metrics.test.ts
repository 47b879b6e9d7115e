/** The metrics page as its readers judge it: promtool parses it and applies the naming rules of Prometheus. */
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CaseBench, createCaseBench, nodeAt, send } from '../support/case-bench.ts';
import { promtoolPath } from '../support/promtool.ts';
import { call } from './cli-fixture.ts';
import { completion, sendJson } from './edge-fixture.ts';

const promtool = promtoolPath();
/** What the design promises and nothing measures yet: a constant zero would be a lie. */
const LATER = ['spillway_promises_total'];

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

/** A page after every kind of thing has happened, with names that need escaping. */
async function page(): Promise<string> {
  const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
  const broken = await bench.node((res) => sendJson(res, 500, { error: 'broken' }));
  const odd = 'odd"name\\of-a-model';
  const started = await bench.gateway({
    nodes: [
      nodeAt('one', node, { models: [{ model: 'tiny' }, { model: odd }] }),
      nodeAt('two', broken, { models: [{ model: 'tiny' }] }),
    ],
  });
  const client = bench.client(started.dataUrl);
  for (const model of ['tiny', 'tiny', 'tiny', odd, 'nobody offers this']) await send(client, { model });
  await send(client, { headers: { 'x-spillway-class': 'no such class' } });
  await send(client, { deadlineMs: 1 });
  await send(client, { body: { messages: 7 } });
  await call(`${started.adminUrl}/spillway/v1/ladder`, {
    method: 'PUT',
    token: started.adminToken,
    body: JSON.stringify({ stage: 3, seconds: 60, why: 'a drill' }),
    headers: { 'content-type': 'application/json' },
  });
  for (let i = 0; i < 3; i++) await send(client, { className: 'low' });
  const answer = await call(`${started.adminUrl}/metrics`, { token: started.adminToken });
  expect(answer.text).toMatch(
    /^spillway_eta_error_ratio\{class="normal",prediction="dispatch",quantile="0.5"\} /m,
  );
  expect(answer.text).toMatch(/^spillway_rejected_capacity_total\{class="low"\} [1-9]/m);
  expect(answer.text).toContain('model="odd\\"name\\\\of-a-model"');
  return answer.text;
}

describe('the metrics page', () => {
  test.skipIf(promtool === undefined)('has nothing that promtool objects to', async () => {
    const judged = spawnSync(promtool ?? '', ['check', 'metrics'], { input: await page(), encoding: 'utf8' });
    expect([judged.status, judged.stdout, judged.stderr]).toEqual([0, '', '']);
  });

  test('has no sample twice, and no family in two pieces', async () => {
    const lines = (await page()).trimEnd().split('\n');
    const samples = lines.filter((line) => !line.startsWith('#')).map((line) => line.replace(/ [^ ]+$/, ''));
    expect(samples.length).toBe(new Set(samples).size);
    const families = lines.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' ')[2]);
    expect(families.length).toBe(new Set(families).size);
  });

  test('leaves out what nothing measures yet, where a zero would be a lie', async () => {
    const text = await page();
    expect(LATER.filter((name) => text.includes(name))).toEqual([]);
  });
});
