/**
 * What the tests of known failure modes stand on: the real gateway composition, emulated or scripted nodes, plain HTTP
 * clients, all on 127.0.0.1, and an owner that ends all of it. Nothing here waits for a time: `within` looks until a
 * condition holds, and fails at its deadline.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as pass } from 'node:timers/promises';
import { expect } from 'vitest';
import { createHttpClient, type HttpAnswer, type HttpClient } from '../../src/apps/demo/http-client.ts';
import {
  type StartedGateway,
  type StartOptions,
  startGateway,
} from '../../src/apps/gateway/start-gateway.ts';
import { type ConfigInput, resolveConfig } from '../../src/core/config/index.ts';
import type { WorkProfile } from '../../src/core/config/types.ts';
import type { WireNode } from '../../src/edge/admin/views.ts';
import {
  type EmulatedFleet,
  type EmulatedFleetInput,
  IMAGE_MODELS,
  PIXELS_REFERENCE,
  STEPS_REFERENCE,
  startEmulatedFleet,
} from '../../src/emulator/index.ts';
import { type Answer, call } from '../integration/cli-fixture.ts';
import { type NodeScript, sendJson, startNode, type TestNode } from '../integration/edge-fixture.ts';

export const IMAGE_MODEL = 'emulated-image';
export const TEXT_MODEL = 'emulated-text';
const CONNECTIONS_MAX = 4_000;
const LOOK_MS = 5;

export interface CaseBench {
  fleet(input: EmulatedFleetInput): Promise<EmulatedFleet>;
  /** A scripted node; probes are answered for it, with the given models. */
  node(script: NodeScript, models?: readonly string[]): Promise<TestNode>;
  /** The same as an engine of the vLLM kind, with a load page under the test's hand. */
  vllm(script: NodeScript): Promise<LoadedNode>;
  gateway(input: ConfigInput, options?: StartOptions): Promise<StartedGateway>;
  /** A client of the gateway with kept connections. */
  client(dataUrl: string): HttpClient;
  onEnd(close: () => Promise<unknown> | void): void;
  end(): Promise<void>;
}

export interface LoadedNode extends TestNode {
  /** What the load page says. */
  load: { running: number; waiting: number; cacheUse: number };
  /** How it says it: as it should, with 404, with bytes that are no load, or not at all. */
  page: 'good' | 'missing' | 'garbage' | 'silent';
  readonly reads: number;
}

export function createCaseBench(): CaseBench {
  const closers: (() => Promise<unknown> | void)[] = [];
  const onEnd: CaseBench['onEnd'] = (close) => void closers.push(close);
  return {
    onEnd,
    async fleet(input) {
      const fleet = await startEmulatedFleet(input);
      onEnd(() => fleet.close());
      return fleet;
    },
    async node(script, models = ['tiny']) {
      const node = await startNode((res, seen) => {
        if (seen.method !== 'GET') script(res, seen);
        else sendJson(res, 200, { object: 'list', data: models.map((id) => ({ id })) });
      });
      onEnd(() => node.close());
      return node;
    },
    async vllm(script) {
      const load = { running: 0, waiting: 0, cacheUse: 0 };
      const own = { load, page: 'good' as LoadedNode['page'], reads: 0 };
      const node = await startNode((res, seen) => {
        if (seen.method !== 'GET') script(res, seen);
        else if (seen.url !== '/metrics') sendJson(res, 200, { object: 'list', data: [{ id: 'tiny' }] });
        else {
          own.reads += 1;
          sendLoad(res, own);
        }
      });
      onEnd(() => node.close());
      return Object.assign(own, node);
    },
    async gateway(input, options = {}) {
      const server = { port: 0, drainMs: 100, ...input.server };
      const resolved = resolveConfig({ ...input, server });
      if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
      const started = await startGateway(resolved.config, options);
      onEnd(() => started.stop());
      return started;
    },
    client(dataUrl) {
      const { hostname, port } = new URL(dataUrl);
      const client = createHttpClient({
        host: hostname,
        port: Number(port),
        connectionsMax: CONNECTIONS_MAX,
      });
      onEnd(() => client.close());
      return client;
    },
    async end() {
      for (const close of closers.splice(0).reverse()) await close();
    },
  };
}

function sendLoad(res: Parameters<NodeScript>[0], { load, page }: Pick<LoadedNode, 'load' | 'page'>): void {
  if (page === 'silent') return;
  res.writeHead(page === 'missing' ? 404 : 200, { 'content-type': 'text/plain' });
  if (page !== 'good') res.end('<html>no load here</html>');
  else {
    res.end(
      `vllm:num_requests_running{model_name="tiny"} ${load.running}\n` +
        `vllm:num_requests_waiting{model_name="tiny"} ${load.waiting}\n` +
        `vllm:kv_cache_usage_perc{model_name="tiny"} ${load.cacheUse}\n`,
    );
  }
}

/** Looks until `look` gives something true, and returns that; fails with the message after `ms`. */
export async function within<T>(
  ms: number,
  message: string,
  look: () => T | Promise<T>,
): Promise<Exclude<T, false | undefined | null | 0 | ''>> {
  const until = performance.now() + ms;
  for (;;) {
    const found = await look();
    if (found) return found as Awaited<ReturnType<typeof within<T>>>;
    if (performance.now() > until) throw new Error(`Not within ${ms} ms: ${message}`);
    await pass(LOOK_MS);
  }
}

/** Configuration of a scripted node. */
export function nodeAt(
  id: string,
  node: { readonly url: string },
  change: Partial<NonNullable<NonNullable<ConfigInput['nodes']>[number]>> = {},
): NonNullable<NonNullable<ConfigInput['nodes']>[number]> {
  return { id, url: node.url, models: [{ model: 'tiny' }], slots: 1, ...change };
}

/** Configuration of emulated image nodes, as their operator would state them. */
export function imageNodes(fleet: EmulatedFleet): NonNullable<ConfigInput['nodes']> {
  return fleet.nodes.map((node) => ({
    id: node.id,
    url: node.url,
    slots: 1,
    hardware: node.spec.statedHardware,
    models: [{ model: IMAGE_MODEL }],
    labels: { emulated: 'yes' },
  }));
}

/** Work of images on the reference accelerator at a speed-up. */
export function imageProfile(speedup: number): WorkProfile {
  const model = IMAGE_MODELS.A100;
  return {
    kind: 'image',
    fixedMs: model.fixedMs / speedup,
    msPerMegapixelStep: model.perImageMs / STEPS_REFERENCE / (PIXELS_REFERENCE / 1e6) / speedup,
    stepsDefault: STEPS_REFERENCE,
    pixelsDefault: PIXELS_REFERENCE,
  };
}

export interface Wish {
  readonly model?: string;
  readonly stream?: boolean;
  readonly steps?: number;
  readonly deadlineMs?: number;
  readonly className?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

function headersOf(wish: Wish): Record<string, string> {
  return {
    'content-type': 'application/json',
    ...(wish.deadlineMs === undefined ? {} : { 'x-spillway-deadline-ms': String(wish.deadlineMs) }),
    ...(wish.className === undefined ? {} : { 'x-spillway-class': wish.className }),
    ...wish.headers,
  };
}

function partsOf(wish: Wish): { readonly path: string; readonly body: string } {
  const { model = 'tiny', steps, stream, body } = wish;
  if (model.startsWith(IMAGE_MODEL)) {
    const asked = { model, prompt: 'a lighthouse', ...(steps === undefined ? {} : { steps }), ...body };
    return { path: '/v1/images/generations', body: JSON.stringify(asked) };
  }
  const messages = [{ role: 'user', content: 'Say hello' }];
  const asked = { model, messages, ...(stream === true ? { stream } : {}), ...body };
  return { path: '/v1/chat/completions', body: JSON.stringify(asked) };
}

/** One request over a connection of its own. */
export function ask(dataUrl: string, wish: Wish = {}): Promise<Answer> {
  const { path, body } = partsOf(wish);
  return call(`${dataUrl}${path}`, { body, headers: headersOf(wish) });
}

/** A request under the test's own hand, to be broken off: `socket.destroy()`. */
export function open(dataUrl: string, wish: Wish = {}): Promise<Socket> {
  const { hostname, port } = new URL(dataUrl);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(requestText(wish), 'latin1');
      resolve(socket);
    });
    socket.on('error', () => undefined);
  });
}

/** Head and body as they go over the wire. */
export function requestText(wish: Wish = {}): string {
  const { path, body } = partsOf(wish);
  const headers = Object.entries(headersOf(wish)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${headers.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

export interface Sent {
  /** Undefined when the client gave up or the connection broke. */
  readonly answer: HttpAnswer | undefined;
  readonly ms: number;
}

/** One request over kept connections. */
export function send(client: HttpClient, wish: Wish = {}, timeoutMs = 60_000): Promise<Sent> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    client.send(requestText(wish), timeoutMs, (result) =>
      resolve({
        answer: result.kind === 'answer' ? result.answer : undefined,
        ms: performance.now() - startedAt,
      }),
    );
  });
}

/** Runs `count` requests, `concurrency` at a time. */
export async function sendMany(
  client: HttpClient,
  options: { readonly count: number; readonly concurrency: number; readonly wish: (index: number) => Wish },
): Promise<Sent[]> {
  const results: Sent[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < options.count; index = next++)
      results.push(await send(client, options.wish(index)));
  };
  await Promise.all(Array.from({ length: options.concurrency }, worker));
  return results;
}

/** A node's row as an operator sees it. */
export async function nodeRow(started: StartedGateway, id: string): Promise<WireNode> {
  const answer = await call(`${started.adminUrl}/spillway/v1/nodes/${id}`, { token: started.adminToken });
  expect(answer.status).toBe(200);
  return answer.json as unknown as WireNode;
}

export async function queueDepth(started: StartedGateway): Promise<number> {
  const answer = await call(`${started.adminUrl}/spillway/v1/queue`, { token: started.adminToken });
  return answer.json['depth'] as number;
}

export function inflightOf(started: StartedGateway): number {
  return started.gateway.nodes().reduce((sum, node) => sum + node.inflight, 0);
}

/** Nothing queued, running, or held, and nothing was ever given back twice. */
export async function expectAllReleased(started: StartedGateway): Promise<void> {
  await within(5_000, 'every request has ended', () => started.gateway.queue().running === 0);
  await within(5_000, 'nothing is in flight', () => inflightOf(started) === 0);
  const answer = await call(`${started.adminUrl}/spillway/v1/dump`, { token: started.adminToken });
  expect(answer.json).toMatchObject({
    runtime: { liveRequests: 0, permitsReleasedTwice: 0, listenerErrors: 0 },
    scheduler: { limits: { tasks: 0, tokens: 0 } },
  });
  expect(started.gateway.queue()).toMatchObject({ depth: 0, running: 0, bytes: 0, workMs: 0 });
  expect(started.gateway.nodes().map((node) => node.inflight)).toEqual(started.gateway.nodes().map(() => 0));
}

export const isServed = (sent: Sent): boolean => sent.answer?.status === 200;
