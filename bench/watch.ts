/**
 * What watching costs who is served meanwhile: a real gateway with a thousand nodes, and viewers of `GET /watch` at its
 * fastest rhythm, in another process. Told is the CPU of the gateway's thread per second with none, one and the most
 * viewers; with none there are still the probes of the nodes.
 *
 *   node bench/watch.ts [--json] [--nodes N] [--seconds S] [--rounds N]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { type StartedGateway, startGateway } from '../src/apps/gateway/start-gateway.ts';
import { resolveConfig } from '../src/core/config/index.ts';
import { createPictureSource } from '../src/edge/admin/picture.ts';
import { WATCH_VIEWERS_MAX } from '../src/edge/admin/watch.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    nodes: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
  },
});
const NODES = Number(values.nodes);
const SECONDS = Number(values.seconds);
const ROUNDS = Number(values.rounds);
/** The first probes of all nodes, and the compiler. */
const WARM_MS = 4_000;
const VIEWERS = [0, 1, WATCH_VIEWERS_MAX];

/** Reads so many streams and counts their bytes; in a process of its own, so that its CPU is not the gateway's. */
const VIEWER_PROGRAM = `
const { get } = require('node:http');
const [url, token, viewers] = process.argv.slice(1);
let open = 0;
for (let i = 0; i < Number(viewers); i++) {
  get(url + '/spillway/v1/watch?everyMs=250', { headers: { authorization: 'Bearer ' + token }, agent: false }, (res) => {
    if (res.statusCode !== 200) throw new Error('Status ' + res.statusCode);
    res.resume();
    open += 1;
    if (open === Number(viewers)) process.stdout.write('open');
  });
}`;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

async function startViewers(started: StartedGateway, viewers: number): Promise<ChildProcess | undefined> {
  if (viewers === 0) return undefined;
  const { adminUrl, adminToken } = started;
  const child = spawn(process.execPath, ['-e', VIEWER_PROGRAM, adminUrl, adminToken, String(viewers)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}

/** CPU of this thread in ms per second of wall time. */
async function loadOf(started: StartedGateway, viewers: number): Promise<number> {
  const child = await startViewers(started, viewers);
  const before = { cpu: cpuMs(), at: performance.now() };
  await pause(SECONDS * 1_000);
  const load = ((cpuMs() - before.cpu) / (performance.now() - before.at)) * 1_000;
  child?.kill();
  return load;
}

const stub = createServer((_req, res) => {
  res.writeHead(200, { 'content-type': 'application/json' });
  res.end('{"object":"list","data":[{"id":"m"}]}');
});
await new Promise<void>((resolve) => stub.listen(0, '127.0.0.1', resolve));
const { port } = stub.address() as AddressInfo;
const resolved = resolveConfig({
  server: { port: 0 },
  nodes: Array.from({ length: NODES }, (_, i) => ({
    id: `node-${i}`,
    url: `http://127.0.0.1:${port}/${i}`,
    models: [{ model: 'm' }],
    slots: 4,
  })),
  // Probes of a thousand nodes would drown what is measured.
  health: { reconcileMs: 30_000 },
});
if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
const started = await startGateway(resolved.config);
await pause(WARM_MS);
const loads = VIEWERS.map((): number[] => []);
for (let round = 0; round < ROUNDS; round++) {
  for (const [i, viewers] of VIEWERS.entries()) loads[i]?.push(await loadOf(started, viewers));
}
const { fleetEvent, pictureEvent } = createPictureSource(started.gateway, Date.now).render();
const result = {
  nodes: NODES,
  pictureBytes: pictureEvent.length,
  idsBytes: fleetEvent.length,
  cpuMsPerSecond: Object.fromEntries(
    VIEWERS.map((viewers, i) => [viewers, loads[i]?.map((load) => Number(load.toFixed(1)))]),
  ),
};
if (values.json) process.stdout.write(`${JSON.stringify(result)}\n`);
else {
  process.stdout.write(
    `${NODES} nodes: a picture has ${result.pictureBytes} bytes, the ids ${result.idsBytes}\n`,
  );
  for (const [viewers, each] of Object.entries(result.cpuMsPerSecond))
    process.stdout.write(`${viewers} viewers: ${each?.join(', ')} ms of CPU per second\n`);
}
await started.stop();
stub.closeAllConnections();
stub.close();
