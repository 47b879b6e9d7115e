/** The gateways that are compared, each started in its usual fast configuration in front of the same node. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { end, freePort, path, serveDocument } from './children.ts';
import { MODEL } from './wire.ts';

export interface Target {
  readonly name: string;
  readonly port: number;
  /** The process whose tree is counted; workers may appear after it listens. */
  readonly pid: number;
  /** Headers of each request, for who needs some. */
  readonly headers: readonly string[];
  stop(): Promise<void>;
}

const KEY = 'bench-key-0123456789';
const READY_TRIES = 400;
const READY_EVERY_MS = 25;

async function answers(port: number): Promise<void> {
  for (let i = 0; i < READY_TRIES; i++) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(socket.destroy() !== undefined));
      socket.on('error', () => resolve(false));
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, READY_EVERY_MS));
  }
  throw new Error(`Nothing listens on ${port}`);
}

export interface GatewayShape {
  /** Tasks that a node takes at once. */
  readonly slots: number;
  /** Waiting requests in all. */
  readonly tasksMax: number;
  /** Arguments for node itself, such as --cpu-prof. */
  readonly nodeArguments?: readonly string[];
  /** Lines of configuration beside the usual ones. */
  readonly configuration?: readonly string[];
}

export interface SpillwayTarget extends Target {
  /** Requests that wait now. */
  queued(): Promise<number>;
}

/** The whole policy is on: a key, a tenant, classes, deadlines, admission, metrics, the durable registry. */
export async function startSpillway(
  nodePort: number,
  { slots, tasksMax, nodeArguments = [], configuration = [] }: GatewayShape,
): Promise<SpillwayTarget> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-'));
  const file = join(folder, 'spillway.yaml');
  const bounds = `{ tasksMax: ${tasksMax}, classShareMax: 1, tenantShareMax: 1 }`;
  writeFileSync(
    file,
    [
      `server: { port: 0, connectionsMax: 20000 }`,
      `tenants: [{ id: acme, classCeiling: critical, keys: [{ id: acme-1, env: BENCH_KEY }] }]`,
      `models: [{ id: ${MODEL}, profile: { kind: llm, fixedMs: 1, prefillMsPerToken: 0.01, decodeMsPerToken: 0.05 } }]`,
      `nodes: [{ id: gpu-1, url: "http://127.0.0.1:${nodePort}", slots: ${slots}, models: [${MODEL}] }]`,
      `bounds: ${bounds}`,
      `admission: { flowWaitMsMax: 600000, flowWaitDeadlineShare: 1 }`,
      `state: { folder: state }`,
      ...configuration,
      '',
    ].join('\n'),
  );
  const child = spawn(
    process.execPath,
    [
      ...nodeArguments,
      path('../../src/apps/cli/main.ts'),
      'serve',
      '--json',
      '--config',
      file,
      '--log-level',
      'warn',
    ],
    { env: { ...process.env, BENCH_KEY: KEY, SPILLWAY_TOKEN: KEY }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const { dataUrl, adminTokenFile } = await serveDocument(child);
  const token = readFileSync(adminTokenFile, 'utf8').trim();
  return {
    name: 'spillway',
    port: Number(new URL(dataUrl).port),
    pid: child.pid as number,
    headers: [`authorization: Bearer ${KEY}`, 'x-spillway-class: normal', 'x-spillway-deadline-ms: 600000'],
    async queued() {
      const answer = await fetch(`${dataUrl}/spillway/v1/queue`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const { depth } = (await answer.json()) as { depth: number };
      return depth;
    },
    async stop() {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function isInstalled(command: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

function confined(name: string, port: number, child: ChildProcess, folder: string): Target {
  return {
    name,
    port,
    pid: child.pid as number,
    headers: [],
    async stop() {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** One worker, kept-alive upstream connections, no access log, bodies in memory. Undefined when it is not installed. */
export async function startNginx(nodePort: number): Promise<Target | undefined> {
  if (!isInstalled('nginx')) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-nginx-'));
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ');
  writeFileSync(
    join(folder, 'nginx.conf'),
    `worker_processes 1; daemon off; pid ${folder}/pid; error_log ${folder}/error.log crit;
events { worker_connections 4096; }
http {
  access_log off; ${temporary}
  keepalive_requests 100000000; keepalive_timeout 75s; client_body_buffer_size 256k; client_max_body_size 16m;
  upstream node { server 127.0.0.1:${nodePort}; keepalive 256; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`,
  );
  const child = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  await answers(port);
  return confined('nginx', port, child, folder);
}

/** One thread, default buffers, kept-alive upstream connections, no log. Undefined when it is not installed. */
export async function startHaproxy(nodePort: number): Promise<Target | undefined> {
  if (!isInstalled('haproxy')) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'spillway-bench-haproxy-'));
  const port = await freePort();
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 75s
  timeout server 75s
  http-reuse always
frontend in
  bind 127.0.0.1:${port}
  default_backend node
backend node
  server node 127.0.0.1:${nodePort} pool-max-conn 256
`,
  );
  const child = spawn('haproxy', ['-db', '-q', '-f', file], { stdio: ['ignore', 'inherit', 'inherit'] });
  await answers(port);
  return confined('haproxy', port, child, folder);
}

const PORTKEY = path('../portkey/node_modules/@portkey-ai/gateway/build/start-server.js');

/** The npm package as it comes. Undefined when it is not installed; see `scripts/install-portkey.ts`. */
export async function startPortkey(nodePort: number): Promise<Target | undefined> {
  if (!existsSync(PORTKEY)) return undefined;
  const port = await freePort();
  const child = spawn(process.execPath, [PORTKEY, '--headless', `--port=${port}`], {
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: 'ignore',
  });
  await answers(port);
  const headers = [
    `authorization: Bearer ${KEY}`,
    'x-portkey-provider: openai',
    `x-portkey-custom-host: http://127.0.0.1:${nodePort}/v1`,
  ];
  return {
    name: 'portkey',
    port,
    pid: child.pid as number,
    headers,
    stop: () => end(child),
  };
}
