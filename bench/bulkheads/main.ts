/**
 * One model's nodes hang: what do the other models, `/v1/models` and `/metrics` feel of it?
 *
 *   node bench/bulkheads/main.ts [--json] [--rounds N] [--seconds S]
 *
 * Real processes and sockets on 127.0.0.1, emulated nodes. `stuck` has a node of its own and shares another with `quick`, in
 * a group that gives it half of the slots at most; `quick` has a node of its own as well. Two such stacks are asked at the same
 * fixed rate at the same time, so that what else the machine does meets both; one hangs, and they take turns. Printed is the
 * median over the rounds of each 99th percentile, and of the ratios.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createHttpClient, type HttpCall, type HttpClient } from '../../src/apps/demo/http-client.ts';
import { percentile } from '../../src/apps/demo/percentile.ts';
import { end, path } from '../gateway/children.ts';

const QUICK_PER_SECOND = 80;
const STUCK_PER_SECOND = 20;
const CONTROL_PER_SECOND = 25;
const TIMEOUT_MS = 60_000;

const KINDS = ['quick', 'models', 'metrics'] as const;
type Kind = (typeof KINDS)[number];
type Percentiles = Readonly<Record<Kind, number>>;

const chat = (model: string): string => {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hello there' }] });
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-spillway-deadline-ms: 60000\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
};
const get = (target: string, token: string): string =>
  `GET ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`;

async function startNode(): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const child = fork(path('../bulkheads/node.ts'));
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

async function tell(child: ChildProcess, order: 'hang' | 'answer'): Promise<void> {
  const told = once(child, 'message');
  child.send(order);
  await told;
}

async function startGateway(
  folder: string,
  ports: readonly number[],
): Promise<{ readonly child: ChildProcess; readonly dataUrl: string; readonly token: string }> {
  const [own, shared, others] = ports;
  const file = join(folder, 'spillway.yaml');
  const node = (id: string, port: number | undefined, slots: number, models: string): string =>
    `  - { id: ${id}, url: "http://127.0.0.1:${port}", slots: ${slots}, models: [${models}], labels: { pool: ${id} } }`;
  const lines = [
    'server: { port: 0 }',
    'models: [{ id: stuck, profile: { kind: generic, meanMs: 50 } }, { id: quick, profile: { kind: generic, meanMs: 50 } }]',
    'nodes:',
    node('own', own, 4, 'stuck'),
    node('shared', shared, 8, 'stuck, quick'),
    node('others', others, 8, 'quick'),
    'groups:',
    '  - { name: shared, nodes: { labels: { pool: shared } }, shares: [{ model: stuck, max: 0.5 }] }',
    'state: { folder: state }',
    '',
  ];
  writeFileSync(file, lines.join('\n'));
  const arguments_ = [path('../../src/apps/cli/main.ts'), 'serve', '--json', '--config', file];
  const child = spawn(process.execPath, [...arguments_, '--log-level', 'error'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    text += chunk.toString();
    const dataUrl = /"dataUrl":\s*"([^"]+)"/.exec(text)?.[1];
    const tokenFile = /"adminTokenFile":\s*"([^"]+)"/.exec(text)?.[1];
    if (dataUrl !== undefined && tokenFile !== undefined)
      return { child, dataUrl, token: readFileSync(tokenFile, 'utf8').trim() };
  }
  throw new Error(`The gateway told no address: ${text}`);
}

interface Stack {
  readonly client: HttpClient;
  readonly token: string;
  readonly nodes: readonly ChildProcess[];
  stop(): Promise<void>;
}

/** A gateway with its nodes. */
async function startStack(): Promise<Stack> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-bulkheads-'));
  const started = await Promise.all([startNode(), startNode(), startNode()]);
  const nodes = started.map(({ child }) => child);
  const ports = started.map(({ port }) => port);
  const { child, dataUrl, token } = await startGateway(folder, ports);
  const { port } = new URL(dataUrl);
  const client = createHttpClient({ host: '127.0.0.1', port: Number(port), connectionsMax: 2_000 });
  return {
    client,
    token,
    nodes,
    async stop() {
      client.close();
      await Promise.all([child, ...nodes].map(end));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Asks at fixed rates and gives the 99th percentiles of what has to be answered; hangs up on the rest. */
async function measure(
  { client, token, nodes }: Stack,
  order: 'hang' | 'answer',
  seconds: number,
): Promise<Percentiles> {
  for (const node of nodes) await tell(node, order);
  const taken: Record<Kind, number[]> = { quick: [], models: [], metrics: [] };
  const open: Promise<void>[] = [];
  const stuck: HttpCall[] = [];
  const ask = (kind: Kind, request: string): void => {
    const begunAt = performance.now();
    open.push(
      new Promise((done) => {
        client.send(request, TIMEOUT_MS, (result) => {
          if (result.kind !== 'answer' || result.answer.status !== 200) taken[kind].push(TIMEOUT_MS);
          else taken[kind].push(performance.now() - begunAt);
          done();
        });
      }),
    );
  };
  const timers = [
    setInterval(() => ask('quick', chat('quick')), 1_000 / QUICK_PER_SECOND),
    setInterval(() => ask('models', get('/v1/models', token)), 1_000 / CONTROL_PER_SECOND),
    setInterval(() => ask('metrics', get('/metrics', token)), 1_000 / CONTROL_PER_SECOND),
    setInterval(
      () => void stuck.push(client.send(chat('stuck'), TIMEOUT_MS, () => {})),
      1_000 / STUCK_PER_SECOND,
    ),
  ];
  await sleep(seconds * 1_000);
  for (const timer of timers) clearInterval(timer);
  await Promise.all(open);
  for (const call of stuck) call.hangUp();
  const p99 = (kind: Kind): number => percentile(taken[kind], 0.99);
  return { quick: p99('quick'), models: p99('models'), metrics: p99('metrics') };
}

const median = (values: readonly number[]): number => percentile(values, 0.5);

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      json: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '4' },
    },
  });
  const stacks = await Promise.all([startStack(), startStack()]);
  const seconds = Number(values.seconds);
  const calm: Percentiles[] = [];
  const hung: Percentiles[] = [];
  try {
    await Promise.all(stacks.map((stack) => measure(stack, 'answer', seconds)));
    for (let round = 0; round < Number(values.rounds); round++) {
      const [one, other] = (round % 2 === 0 ? stacks : stacks.toReversed()) as [Stack, Stack];
      const [undisturbed, disturbed] = await Promise.all([
        measure(one, 'answer', seconds),
        measure(other, 'hang', seconds),
      ]);
      calm.push(undisturbed);
      hung.push(disturbed);
    }
  } finally {
    await Promise.all(stacks.map((stack) => stack.stop()));
  }
  const rows = KINDS.map((kind) => ({
    kind,
    calmP99Ms: median(calm.map((row) => row[kind])),
    hungP99Ms: median(hung.map((row) => row[kind])),
    ratio: median(hung.map((row, round) => row[kind] / (calm[round] as Percentiles)[kind])),
    ratioMax: kind === 'quick' ? 1.1 : 2,
  }));
  if (values.json) console.log(JSON.stringify({ rows, calm, hung }));
  else
    for (const { kind, calmP99Ms, hungP99Ms, ratio, ratioMax } of rows)
      console.log(
        `${kind.padEnd(8)} P99 ${calmP99Ms.toFixed(1)} ms, while the other model hangs ${hungP99Ms.toFixed(1)} ms: ${ratio.toFixed(2)} (at most ${ratioMax})`,
      );
  process.exitCode = rows.every(({ ratio, ratioMax }) => ratio <= ratioMax) ? 0 : 1;
}

await main();
