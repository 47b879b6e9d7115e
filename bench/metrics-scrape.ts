/**
 * What a scrape costs who is served meanwhile: a real gateway of a thousand nodes, all of them busy, with ten thousand
 * requests waiting; its metrics page is fetched by another process, and the longest time is told for which the event loop
 * was held meanwhile. A second without a scrape is told beside it: probes of nodes and the machine hold it too.
 *
 *   node bench/metrics-scrape.ts [--json] [--nodes N] [--queued N] [--scrapes N]
 */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { type StartedGateway, startGateway } from '../src/apps/gateway/start-gateway.ts';
import { resolveConfig } from '../src/core/config/index.ts';
import { NO_NEEDS } from '../src/core/request/needs.ts';
import type { TaskListener } from '../src/runtime/contract.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    nodes: { type: 'string', default: '1000' },
    queued: { type: 'string', default: '10000' },
    scrapes: { type: 'string', default: '5' },
  },
});
const NODES = Number(values.nodes);
const QUEUED = Number(values.queued);
const SCRAPES = Number(values.scrapes);
const MODELS = 50;
const CLASSES = ['critical', 'normal', 'low'];
/** A page is kept for a second. */
const PAUSE_MS = 1_100;
const HOUR_US = 3_600_000_000;
/** Nobody: what is assigned runs until the bench ends. */
const NOBODY: TaskListener = { assigned() {}, abort() {}, finished() {} };

interface Block {
  readonly wallMs: number;
  /** Of this thread: what others on the machine take is not in it. */
  readonly cpuMs: number;
}

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** Turns of the event loop until told to stop; the longest time between two of them. */
function watchLoop(): { stop(): Block } {
  const longest = { wallMs: 0, cpuMs: 0 };
  let isOver = false;
  let last: Block = { wallMs: performance.now(), cpuMs: cpuMs() };
  const look = (): void => {
    const at = { wallMs: performance.now(), cpuMs: cpuMs() };
    longest.wallMs = Math.max(longest.wallMs, at.wallMs - last.wallMs);
    longest.cpuMs = Math.max(longest.cpuMs, at.cpuMs - last.cpuMs);
    last = at;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return {
    stop() {
      isOver = true;
      return longest;
    },
  };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function modelsOf(node: number): { readonly model: string }[] {
  return [0, 1, 2].map((step) => ({ model: `model-${(node + step * 7) % MODELS}` }));
}

async function loadedGateway(nodeUrl: string): Promise<StartedGateway> {
  const resolved = resolveConfig({
    server: { port: 0 },
    gates: { 'flow-wait': 'off', ladder: 'off' },
    nodes: Array.from({ length: NODES }, (_, i) => ({
      id: `node-${i}`,
      url: `${nodeUrl}/${i}`,
      slots: 1,
      models: modelsOf(i),
    })),
  });
  if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
  const started = await startGateway(resolved.config);
  for (let i = 0; i < NODES + QUEUED; i++) {
    started.gateway.submit(
      {
        className: CLASSES[i % 3] as string,
        tenant: `tenant-${i % 500}`,
        model: `model-${i % MODELS}`,
        needs: NO_NEEDS,
        workUs: 1_000_000,
        firstByteWorkUs: 1_000_000,
        bytes: 100,
        deadlineUs: HOUR_US,
        deadlineWished: true,
        stream: false,
        fingerprint: '',
        receivedAt: started.gateway.now(),
      },
      NOBODY,
    );
    // As a burst of arrivals would: the loop has its turn between them.
    if (i % 100 === 99) await pause(0);
  }
  return started;
}

/** Fetches the page in a process of its own and tells its length. */
function scrape({ adminUrl, metricsToken }: StartedGateway): Promise<number> {
  const script =
    'const [, url, token] = process.argv; const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } }); console.log((await answer.text()).length)';
  const args = ['--input-type=module', '-e', script, '--', `${adminUrl}/metrics`, metricsToken];
  return new Promise((resolve, reject) => {
    let said = '';
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString('utf8');
    });
    child.once('close', (code) =>
      code === 0 ? resolve(Number(said)) : reject(new Error(`scrape: ${code}`)),
    );
  });
}

const server = createServer((_, res) => res.end('{"object":"list","data":[]}'));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
const started = await loadedGateway(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
const idle = watchLoop();
await pause(PAUSE_MS);
const withoutScrape = idle.stop();
const blocks: Block[] = [];
let pageBytes = 0;
for (let i = 0; i < SCRAPES; i++) {
  await pause(PAUSE_MS);
  const watch = watchLoop();
  pageBytes = await scrape(started);
  blocks.push(watch.stop());
}
const longest = {
  wallMs: Math.max(...blocks.map(({ wallMs }) => wallMs)),
  cpuMs: Math.max(...blocks.map((block) => block.cpuMs)),
};
const { depth, running } = started.gateway.queue();
const result = { nodes: NODES, running, queued: depth, pageBytes, longest, blocks, withoutScrape };
if (values.json) process.stdout.write(`${JSON.stringify(result)}\n`);
else {
  const told = (block: Block): string => `${block.wallMs.toFixed(1)} (${block.cpuMs.toFixed(1)} of CPU)`;
  process.stdout.write(
    `${NODES} nodes, ${running} running, ${depth} waiting, a page of ${(pageBytes / 1_000).toFixed(0)} kB\n` +
      `longest block in ms: ${told(longest)}; by scrape: ${blocks.map(told).join(', ')}; without a scrape: ${told(withoutScrape)}\n`,
  );
}
process.exit(0);
