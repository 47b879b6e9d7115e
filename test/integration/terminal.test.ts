/** Commands that take the whole terminal: the real command on a pseudo terminal, against a real gateway. */
import { writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { within } from '../support/case-bench.ts';
import { chat, createFixture, type Fixture, type RunningCli, type Terminal } from './cli-fixture.ts';

const LEFT = '\u001b[?25h\u001b[?1049l';

let fixture: Fixture;

beforeEach(() => {
  fixture = createFixture();
});

afterEach(() => fixture.end());

function serve(ids: readonly string[]): Promise<RunningCli> {
  const file = join(fixture.folder, 'spillway.yaml');
  const nodes = ids.map(
    (id) => `  - { id: ${id}, url: "http://127.0.0.1:9", models: [m], hardware: A100 }\n`,
  );
  writeFileSync(file, `nodes:\n${nodes.join('')}`);
  return fixture.serve(['--config', file]);
}

async function shows(terminal: Terminal, what: RegExp): Promise<readonly string[]> {
  await within(15_000, `the screen shows ${what}: ${terminal.screen().join('\n')}`, () =>
    terminal.screen().some((line) => what.test(line)),
  );
  return terminal.screen();
}

/** The command is over, and the terminal as it was. */
async function leaves(terminal: Terminal, code: number): Promise<void> {
  expect(await terminal.ended).toBe(code);
  expect(terminal.output()).toContain(LEFT);
  expect(terminal.output().lastIndexOf('\u001b[?1049h')).toBeLessThan(terminal.output().lastIndexOf(LEFT));
  const settings = terminal.output().slice(terminal.output().lastIndexOf(LEFT));
  expect(settings).toMatch(/ icanon/);
  expect(settings).toMatch(/ echo /);
}

/** Linux has `script` everywhere; elsewhere it is another program. */
describe.skipIf(process.platform !== 'linux')('--watch', () => {
  test('draws again and again until q, scrolls, and leaves the terminal as it was', async () => {
    await serve(Array.from({ length: 30 }, (_, i) => `node-${String(i).padStart(2, '0')}`));
    const terminal = fixture.terminal(['nodes', '--watch', '0.25'], { columns: 60, rows: 10 });
    const first = await shows(terminal, /node-00/);
    expect(first).toHaveLength(10);
    expect(first[0]).toMatch(/^NODE +STATE/);
    expect(first.at(-1)).toMatch(/^q quit/);
    const drawn = terminal.output().split('\u001b[H').length;
    await within(5_000, 'it is drawn again', () => terminal.output().split('\u001b[H').length > drawn + 1);
    terminal.type('\u001b[B\u001b[B');
    await shows(terminal, /node-09/);
    expect(terminal.screen()[1]).toMatch(/^node-02/);
    terminal.type('\u001b[6~\u001b[6~\u001b[6~\u001b[6~\u001b[6~');
    await shows(terminal, /node-29/);
    terminal.type('q');
    await leaves(terminal, 0);
  });

  test('keeps the last picture while the gateway is away, says so, and finds it again at another port', async () => {
    const before = await serve(['a']);
    const terminal = fixture.terminal(['queue', '--watch', '0.25']);
    await shows(terminal, /0 waiting, 0 running/);
    const gone = once(before.child, 'close');
    before.child.kill('SIGKILL');
    await gone;
    const away = await shows(terminal, /^no answer for .*Cannot reach a gateway/);
    expect(away[0]).toBe('0 waiting, 0 running');
    await serve(['a']);
    await shows(terminal, /^q quit/);
    terminal.type('\u0003');
    await leaves(terminal, 0);
  });

  test('fits forty columns', async () => {
    await serve(['a-node-with-quite-a-long-name-in-a-large-fleet']);
    const terminal = fixture.terminal(['nodes', '--watch'], { columns: 40, rows: 8 });
    const screen = await shows(terminal, /^a-node/);
    expect(Math.max(...screen.map((line) => line.length))).toBeLessThanOrEqual(40);
    terminal.type('q');
    await leaves(terminal, 0);
  });

  test('prints once where there is no terminal, and is not for --json', async () => {
    await serve(['a']);
    const { code, stdout } = await fixture.cli(['nodes', '--watch']);
    expect([code, stdout.split('\n').length]).toEqual([0, 3]);
    expect(stdout).not.toContain('\u001b');
    const both = await fixture.cli(['nodes', '--watch', '--json']);
    expect([both.code, both.stdout]).toEqual([2, '']);
    expect(both.stderr).toContain('not both');
    expect((await fixture.cli(['queue', '--watch', '0.01'])).code).toBe(2);
  });

  test('ends with a plain sentence when there is no gateway', async () => {
    const terminal = fixture.terminal(['queue', '--watch']);
    expect(await terminal.ended).toBe(1);
    expect(terminal.output()).toContain('Cannot reach a gateway');
    expect(terminal.output()).not.toContain('\u001b[?1049h');
  });
});

describe.skipIf(process.platform !== 'linux')('spillway top', () => {
  test('shows classes with their rates, the ladder and the slowest nodes, and sorts by a key', async () => {
    const stub = await fixture.stub();
    const { document } = await fixture.serve(['--node', stub.url]);
    const terminal = fixture.terminal(['top', '--every', '0.25']);
    await shows(terminal, /^NODE +STATE +BUSY +DRAIN/);
    for (let i = 0; i < 5; i++) expect((await chat(document.dataUrl)).status).toBe(200);
    const screen = await shows(terminal, /^normal +0 +- +100\.0 % +\d/);
    expect(screen).toContainEqual(expect.stringMatching(/^0 waiting, 0 running/));
    expect(screen).toContainEqual(expect.stringMatching(/^ladder 0/));
    expect(screen).toContainEqual(expect.stringMatching(/^127\.0\.0\.1:\d+ +active/));
    expect(screen.at(-1)).toContain('sort by (drain)');
    terminal.type('s');
    await shows(terminal, /sort by \(rate\)/);
    terminal.type('q');
    await leaves(terminal, 0);
  });

  test('waits for a gateway that is away, and goes on with it at another port', async () => {
    const before = await serve(['before']);
    const terminal = fixture.terminal(['top', '--every', '0.25'], { columns: 40, rows: 16 });
    await shows(terminal, /^before/);
    const gone = once(before.child, 'close');
    before.child.kill('SIGKILL');
    await gone;
    const away = await shows(terminal, /^no answer for/);
    expect(away).toContainEqual(expect.stringMatching(/^before/));
    await serve(['after']);
    const back = await shows(terminal, /^after/);
    expect(Math.max(...back.map((line) => line.length))).toBeLessThanOrEqual(40);
    terminal.type('\u0003');
    await leaves(terminal, 0);
  });

  test('prints once where there is no terminal, as lines or as one document', async () => {
    await serve(['a']);
    const plain = await fixture.cli(['top']);
    expect([plain.code, plain.stderr]).toEqual([0, '']);
    expect(plain.stdout).toMatch(/^0 waiting, 0 running\n/);
    expect(plain.stdout).not.toContain('\u001b');
    const { code, stdout } = await fixture.cli(['top', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      ready: true,
      ladder: { stage: 0 },
      nodes: { total: 1, rows: [{ id: 'a', inflight: 0, rate: null }] },
    });
  });

  test('ends with a plain sentence when there is no gateway, or none that lets it look', async () => {
    const alone = fixture.terminal(['top']);
    await leaves(alone, 1);
    expect(alone.output()).toContain('Cannot reach a gateway');
    const { document } = await serve(['a']);
    const barred = fixture.terminal(['top', '--url', document.adminUrl, '--token', 'not-the-token']);
    await leaves(barred, 1);
    expect(barred.output()).toContain('refused the token');
  });
});

describe('spillway signals', () => {
  test('tells plainly when the gateway has none to tell', async () => {
    const old = createServer((_req, res) => {
      res.writeHead(404, { 'content-type': 'application/problem+json' });
      res.end('{"status": 404, "reason": "not-found", "detail": "There is nothing at this path"}');
    });
    old.listen(0, '127.0.0.1');
    await once(old, 'listening');
    fixture.onEnd(() => void old.close());
    const url = `http://127.0.0.1:${(old.address() as AddressInfo).port}`;
    const { code, stderr } = await fixture.cli(['signals', '--url', url]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/tells no signals \(404 at .*older version/)]);
  });
});
