/**
 * From the start of a new gateway process to its first served request, after `kill -9`, with many registered nodes.
 * Before each kill some nodes are cordoned; after each start the registry must still say so.
 *
 *   node bench/restart.ts [--json] [--nodes N] [--rounds N]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type BenchNode, path, serveDocument, startNode } from './gateway/children.ts';
import { body, request } from './gateway/wire.ts';

const CORDONED = 10;
const AT_ONCE = 50;
const POLL_MS = 5;

interface Site {
  /** Of the process that runs now: each chooses its own. */
  port: number;
  readonly state: string;
  readonly node: BenchNode;
}

async function serve(site: Site): Promise<ChildProcess> {
  const args = [path('../../src/apps/cli/main.ts'), 'serve', '--json', '--port', '0', '--state', site.state];
  const child = spawn(process.execPath, [...args, '--log-level', 'error'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  site.port = Number(new URL((await serveDocument(child)).dataUrl).port);
  return child;
}

/** Whether one chat request is served in full now. */
function isServing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(request({ port, headers: [] }, body(300)), 'latin1'),
    );
    socket.on('data', (data) => {
      resolve(data.toString('latin1').startsWith('HTTP/1.1 200'));
      socket.destroy();
    });
    socket.on('error', () => resolve(false));
    socket.on('close', () => resolve(false));
  });
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await pause(POLL_MS);
}

async function admin(site: Site, pathname: string, init: RequestInit = {}): Promise<Response> {
  const token = readFileSync(join(site.state, 'admin-token'), 'utf8').trim();
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const answer = await fetch(`http://127.0.0.1:${site.port}/spillway/v1${pathname}`, { ...init, headers });
  if (!answer.ok) throw new Error(`Cannot ${init.method ?? 'GET'} ${pathname}: status ${answer.status}`);
  return answer;
}

async function registerAll(site: Site, count: number): Promise<void> {
  const ids = Array.from({ length: count }, (_, i) => `n${i}`);
  const url = `http://127.0.0.1:${site.node.port}`;
  for (let from = 0; from < count; from += AT_ONCE) {
    const nodes = ids
      .slice(from, from + AT_ONCE)
      .map((id) => ({ id, url, protocol: 'openai', models: ['bench'], slots: 4, hardware: 'T4' }));
    await Promise.all(
      nodes.map((node) => admin(site, '/nodes', { method: 'POST', body: JSON.stringify(node) })),
    );
  }
  for (const id of ids.slice(0, CORDONED)) {
    await admin(site, `/nodes/${id}`, { method: 'PATCH', body: JSON.stringify({ cordoned: true }) });
  }
}

async function cordonedOf(site: Site): Promise<number> {
  let cordoned = 0;
  for (let i = 0; i < CORDONED; i++) {
    const row = (await (await admin(site, `/nodes/n${i}`)).json()) as { readonly state: string };
    if (row.state === 'cordoned') cordoned += 1;
  }
  return cordoned;
}

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    nodes: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '7' },
  },
});
const site: Site = {
  port: 0,
  state: mkdtempSync(join(tmpdir(), 'spillway-restart-')),
  node: await startNode('answers'),
};
let child = await serve(site);
await registerAll(site, Number(values.nodes));
const times: number[] = [];
const kept: number[] = [];
for (let round = 0; round < Number(values.rounds); round++) {
  child.kill('SIGKILL');
  await once(child, 'exit');
  const startedAt = performance.now();
  child = await serve(site);
  await until(() => isServing(site.port));
  times.push(Math.round(performance.now() - startedAt));
  kept.push(await cordonedOf(site));
}
child.kill('SIGTERM');
await once(child, 'exit');
await site.node.stop();
rmSync(site.state, { recursive: true });
const sorted = [...times].sort((a, b) => a - b);
const result = {
  nodes: Number(values.nodes),
  medianMs: sorted[sorted.length >> 1],
  worstMs: sorted.at(-1),
  cordonsKept: kept.every((count) => count === CORDONED),
};
if (values.json) process.stdout.write(`${JSON.stringify(result)}\n`);
else console.table([result]);
