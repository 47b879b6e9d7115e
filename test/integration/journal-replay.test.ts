/**
 * A journal of a real gateway under overload, written while nodes fail, join and leave, clients hang up and the configuration
 * changes: replaying it gives the same decisions. And a journal that is cut, changed or incomplete says so.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { journalFiles, readJournal } from '../../src/adapters/journal-file/index.ts';
import { replay } from '../../src/apps/cli/replay.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { createPrng, type Prng } from '../../src/base/prng.ts';
import { type ConfigInput, resolveConfig } from '../../src/core/config/index.ts';
import type { Overtaken } from '../../src/simulator/replay/overtaken.ts';
import { type ReplayReport, replayJournal } from '../../src/simulator/replay/replay.ts';
import { type CaseBench, createCaseBench, nodeAt } from '../support/case-bench.ts';
import { call, createFixture } from './cli-fixture.ts';
import { completion, type NodeScript, sendJson } from './edge-fixture.ts';

const MODELS = [{ id: 'tiny', profile: { kind: 'generic' as const, meanMs: 20 } }];
const CLASSES = ['critical', 'normal', 'batch'];

/** Serves after a short while; now and then it refuses, breaks or hangs up. */
function unsteady(prng: Prng, badShare: number): NodeScript {
  return (res) => {
    const fate = prng.nextUint32() / 2 ** 32;
    setTimeout(
      () => {
        if (fate > badShare) sendJson(res, 200, completion('hello'));
        else if (fate > badShare / 2) sendJson(res, 500, { error: 'broken' });
        else res.destroy();
      },
      2 + Math.floor(fate * 20),
    );
  };
}

/** One request of a client who may hang up; resolves when it is over either way. */
function ask(dataUrl: string, prng: Prng): Promise<void> {
  const body = JSON.stringify({
    model: 'tiny',
    messages: [{ role: 'user', content: 'x'.repeat(prng.nextUint32() % 2_000) }],
  });
  const hangsUpMs = prng.nextUint32() % 8 === 0 ? prng.nextUint32() % 60 : undefined;
  return new Promise((resolve) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'x-spillway-class': CLASSES[prng.nextUint32() % 3] as string,
      ...(prng.nextUint32() % 2 === 0 ? { 'x-spillway-deadline-ms': '1500' } : {}),
    };
    const req = request(
      `${dataUrl}/v1/chat/completions`,
      { method: 'POST', headers, agent: false },
      (res) => {
        res.on('error', () => {});
        res.on('close', resolve);
        res.resume();
      },
    );
    req.on('error', () => resolve());
    req.end(body);
    if (hangsUpMs !== undefined) setTimeout(() => req.destroy(), hangsUpMs);
  });
}

let folder: string;
let bench: CaseBench;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-journal-'));
  bench = createCaseBench();
});

afterEach(async () => {
  await bench.end();
  rmSync(folder, { recursive: true, force: true });
});

const replayOf = (path: string): Promise<ReplayReport> => replayJournal(readJournal(journalFiles(path)));

async function gatewayWith(journal: NonNullable<ConfigInput['journal']>, seed = 1): Promise<StartedGateway> {
  const prng = createPrng(seed);
  const nodes = await Promise.all([0, 0, 0.1, 0.4].map((bad) => bench.node(unsteady(prng, bad))));
  return bench.gateway({
    models: MODELS,
    nodes: nodes.map((node, index) => nodeAt(`n${index}`, node, { slots: 1 + (index % 2) })),
    bounds: { tasksMax: 40 },
    journal,
  });
}

/** Waves of requests, with everything that an operator may do between them. */
async function overload(started: StartedGateway, prng: Prng): Promise<void> {
  const { gateway, dataUrl } = started;
  const spare = await bench.node(unsteady(prng, 0.1));
  const wave = (count: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: count }, async (_, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 3));
        return ask(dataUrl, prng);
      }),
    );
  await wave(40);
  const first = wave(120);
  await gateway.setCordoned('n1', true);
  const body = { id: 'late', url: spare.url, models: ['tiny'], slots: 2 };
  await call(`${started.adminUrl}/spillway/v1/nodes`, { token: started.adminToken, body });
  // Views are asked for meanwhile: looking must not change what is decided.
  for (const view of ['queue', 'dump', 'nodes', 'limits', 'ladder', 'gates', 'decisions'])
    await call(`${started.adminUrl}/spillway/v1/${view}`, { token: started.adminToken });
  await first;
  const second = wave(120);
  await gateway.setCordoned('n1', false);
  const next = resolveConfig({
    models: MODELS,
    nodes: gateway.config.nodes.map(({ id, url, models }) => ({ id, url, models: [...models] })),
    bounds: { tasksMax: 20 },
    classes: [
      { name: 'critical', weight: 10 },
      { name: 'normal', weight: 2 },
      { name: 'batch', weight: 1 },
    ],
    defaultClass: 'normal',
  });
  if (next.kind !== 'config') throw new Error(JSON.stringify(next.issues));
  gateway.reconfigure({ ...next.config, nodes: gateway.config.nodes });
  gateway.overrideLadder({ stage: 2, forUs: 50_000, who: 'test', why: 'a drill' });
  await gateway.removeNode('n2');
  await second;
  await wave(40);
}

describe('a journal of a gateway under overload', () => {
  test('replays to the same decisions, whatever happened', async () => {
    const started = await gatewayWith({ folder });
    await overload(started, createPrng(7));
    const status = started.gateway.journal();
    await started.stop();
    const report = await replayOf(folder);
    expect(report).toMatchObject({ verdict: 'equal', exact: true, isWhole: true });
    expect(report.events).toBeGreaterThanOrEqual(status?.events ?? Number.POSITIVE_INFINITY);
    expect(report.decisions).toBeGreaterThan(600);
    expect(status?.dropped).toBe(0);
    const text = readFileSync(journalFiles(folder)[0] as string, 'utf8');
    // Every sort of thing happened, or the test would prove less than it says.
    for (const part of [
      '"config"',
      '"node-removed"',
      '"node-cordoned"',
      '"ladder-override"',
      '"failed"',
      '\nc',
    ])
      expect(text).toContain(part);
    expect(text).not.toContain('xxxx');
    expect(await replay(folder, { json: false })).toBe(0);
    expect(await overtakenOf(report.events)).toMatchObject({ lateMs: 1, run: { id: 'r' } });
  });

  /** What the command tells of one run that lasts as long as the journal, which has all requests of all classes. */
  async function overtakenOf(eventsMax: number): Promise<unknown> {
    const file = join(folder, 'runs.csv');
    writeFileSync(file, 'run_id,start_time,end_time,tags.deadline\nr,0,9000000000001,9000000000000\n');
    const cli = createFixture();
    const { stdout, code } = await cli.cli(['replay', folder, '--runs', file, '--json']);
    await cli.end();
    expect(code).toBe(0);
    const { classes, runs } = JSON.parse(stdout) as Overtaken;
    const requests = classes.reduce((sum, row) => sum + row.requests, 0);
    expect(requests).toBeGreaterThan(200);
    expect(requests).toBeLessThan(eventsMax);
    expect(runs[0]?.requests).toBe(requests);
    expect(runs[0]?.missed).toBe(classes.reduce((sum, row) => sum + row.missed, 0));
    return runs[0];
  }

  test('tells where a changed event leads to another decision, and that its lines are not what was written', async () => {
    const started = await gatewayWith({ folder });
    await overload(started, createPrng(11));
    await started.stop();
    const [file] = journalFiles(folder) as [string];
    const lines = readFileSync(file, 'utf8').split('\n');
    const at = lines.findIndex((line) => line.includes('"id":"n1"'));
    const changed = [...lines];
    // One digit of a node: it takes one task at once, not two.
    changed[at] = (lines[at] as string).replace('"slots":2', '"slots":1');
    expect(changed[at]).not.toBe(lines[at]);
    writeFileSync(file, changed.join('\n'));
    expect((await replayOf(file)).verdict).toBe('damaged');
    // Without seals the decisions alone must show it.
    const unsealed = join(folder, 'unsealed.txt');
    writeFileSync(unsealed, changed.filter((line) => !/^z\d+$/.test(line)).join('\n'));
    const report = await replayOf(unsealed);
    expect(report.verdict).toBe('differs');
    expect(report.difference).toMatchObject({ taskId: expect.any(Number), expected: expect.any(String) });
    expect(await replay(unsealed, {})).toBe(1);
    // Any other byte, anywhere in an event, is found by its seal at the latest.
    const prng = createPrng(5);
    const events = lines.flatMap((line, index) => (/^[stbrce]/.test(line) ? [index] : []));
    for (let round = 0; round < 20; round++) {
      const other = [...lines];
      const which = events[prng.nextUint32() % events.length] as number;
      const line = other[which] as string;
      const place = 1 + (prng.nextUint32() % (line.length - 1));
      const byte = line[place] === '1' ? '2' : '1';
      other[which] = line.slice(0, place) + byte + line.slice(place + 1);
      writeFileSync(file, other.join('\n'));
      expect([other[which], (await replayOf(file)).verdict]).not.toEqual([other[which], 'equal']);
    }
  });

  test('that was cut in the middle of a line replays up to there and says so', async () => {
    const started = await gatewayWith({ folder });
    await overload(started, createPrng(13));
    await started.stop();
    const [file] = journalFiles(folder) as [string];
    const whole = await replayOf(file);
    const text = readFileSync(file, 'utf8');
    for (const share of [0.3, 0.61, 0.9]) {
      const cut = join(folder, 'cut.txt');
      const end = text.indexOf('\ns', Math.floor(text.length * share)) + 9;
      writeFileSync(cut, text.slice(0, end));
      const report = await replayOf(cut);
      expect([report.verdict, report.isWhole]).toEqual(['equal', false]);
      expect(report.events).toBeGreaterThan(whole.events * (share - 0.25));
      expect(report.events).toBeLessThan(whole.events);
    }
  });
});
