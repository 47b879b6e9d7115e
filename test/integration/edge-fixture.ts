/**
 * What the data plane's integration tests share: a small honest gateway that assigns at once (or holds, when told), and
 * nodes whose behaviour is a function. Everything is on 127.0.0.1 and a free port, and closed by `close`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { createHttpTransport } from '../../src/adapters/transport-http/index.ts';
import type { TaskId } from '../../src/base/units.ts';
import { defaultGatewayConfig, type GatewayOverrides } from '../../src/core/config/index.ts';
import type { GatewayConfig } from '../../src/core/config/types.ts';
import {
  type AttemptResult,
  type LimitsView,
  NO_RETRY,
  type Outcome,
  type RetryHint,
} from '../../src/core/request/outcome.ts';
import type { WorkEstimate } from '../../src/core/scheduler/contract.ts';
import { createDataPlane, type DataPlane } from '../../src/edge/data-plane.ts';
import { BeaconDesk } from '../../src/edge/user-side/beacon-desk.ts';
import { UserSide } from '../../src/edge/user-side/user-side.ts';
import { type MetricsSink, NO_METRICS } from '../../src/ports/metrics-sink.ts';
import type { Gateway, JoinedEnd, SubmitSpec, TaskListener } from '../../src/runtime/contract.ts';

const ATTEMPTS_MAX = 3;
const UNTIL_MS_MAX = 10_000;
export const SOON: RetryHint = { retryable: true, afterUs: 2_000_000 };

interface FakeTask {
  readonly id: TaskId;
  readonly spec: SubmitSpec;
  readonly listener: TaskListener;
  state: 'queued' | 'running' | 'done';
  attempt: number;
  isCancelled: boolean;
  /** What the task ends with, whatever its attempt says. */
  verdict?: Outcome;
}

/** Assigns in a microtask after submit, retries on the next node, and checks the contract of its callers. */
export class FakeGateway {
  config: GatewayConfig;
  ready = true;
  /** While true, tasks wait. */
  isHolding = false;
  abortFreesSlot = true;
  silence = { firstByteUs: 0, idleUs: 0 };
  upstreamModel = '';
  nodeIds: string[] = [];
  readonly tasks: Map<TaskId, FakeTask> = new Map<TaskId, FakeTask>();
  readonly specs: SubmitSpec[] = [];
  readonly results: AttemptResult[] = [];
  readonly outcomes: Outcome[] = [];
  readonly learned: unknown[] = [];
  /** Ends of requests that another one's work answered. */
  readonly joined: JoinedEnd[] = [];
  /** What was done against the contract; empty in a passing test. */
  readonly breaches: string[] = [];
  assignments = 0;
  /** What is left to every tenant. */
  limits: LimitsView | undefined;
  aliases: Record<string, string> = { 'gpt-alias': 'tiny' };
  known: string[] = ['tiny', 'org/big-model', 'embed', 'paint'];
  #nextId = 1;

  constructor(config: GatewayConfig) {
    this.config = config;
  }

  now(): number {
    return Math.round(performance.now() * 1_000);
  }

  submit(spec: SubmitSpec, listener: TaskListener): { taskId: TaskId; publicId: string } {
    const id = this.#nextId++;
    const task: FakeTask = { id, spec, listener, state: 'queued', attempt: 0, isCancelled: false };
    this.tasks.set(id, task);
    this.specs.push(spec);
    queueMicrotask(() => {
      if (!this.isHolding) this.#assign(task);
    });
    return { taskId: id, publicId: `req_${id}` };
  }

  noteRefused(): string {
    return `req_${this.#nextId++}`;
  }

  nextId(): { taskId: TaskId; publicId: string } {
    const taskId = this.#nextId++;
    return { taskId, publicId: `req_${taskId}` };
  }

  noteJoined(_taskId: TaskId, end: JoinedEnd): void {
    this.joined.push(end);
  }

  /** Lets everything that waits go on. */
  release(): void {
    this.isHolding = false;
    for (const task of this.tasks.values()) if (task.state === 'queued') this.#assign(task);
  }

  /** Ends a waiting or running task as the scheduler would. */
  finish(outcome: Outcome): void {
    for (const task of this.tasks.values()) {
      if (task.state === 'done') continue;
      task.verdict = outcome;
      if (task.state === 'running') task.listener.abort();
      this.#end(task, outcome);
    }
  }

  cancel(id: TaskId): void {
    const task = this.tasks.get(id);
    if (task === undefined || task.state === 'done') return;
    task.isCancelled = true;
    if (task.state === 'running') task.listener.abort();
    else this.#end(task, { kind: 'cancelled' });
  }

  attemptSent(id: TaskId): void {
    if (this.tasks.get(id)?.state !== 'running') this.breaches.push(`attemptSent of ${id} while not running`);
  }

  attemptFirstByte(id: TaskId): void {
    if (this.tasks.get(id)?.state !== 'running')
      this.breaches.push(`attemptFirstByte of ${id} while not running`);
  }

  attemptEnded(id: TaskId, result: AttemptResult): void {
    this.results.push(result);
    const task = this.tasks.get(id);
    if (task === undefined) {
      this.breaches.push(`attemptEnded of unknown ${id}`);
      return;
    }
    if (task.state === 'done') return;
    if (task.state !== 'running') this.breaches.push(`attemptEnded of ${id} while ${task.state}`);
    if (result.kind === 'ok') this.#end(task, { kind: 'served' });
    else if (result.kind === 'declined') {
      this.#end(task, { kind: 'failed', reason: 'declined', hint: NO_RETRY });
    } else if (task.isCancelled || result.kind === 'aborted') this.#end(task, { kind: 'cancelled' });
    else if (result.retryable && task.attempt < Math.min(ATTEMPTS_MAX, this.nodeIds.length)) {
      task.state = 'queued';
      queueMicrotask(() => this.#assign(task));
    } else this.#end(task, { kind: 'failed', reason: 'node-failed', hint: SOON });
  }

  noteFailure(): void {}

  keepsPrompts(): boolean {
    return false;
  }

  estimate(_model: string, shape: { promptBytes: number }): WorkEstimate {
    const promptTokens = Math.ceil(shape.promptBytes / 4);
    return {
      workUs: 1_000,
      firstByteWorkUs: 500,
      contextTokens: promptTokens,
      tokens: promptTokens,
      promptTokens,
    };
  }

  limitsOf(): LimitsView | undefined {
    return this.limits;
  }

  learn(...args: unknown[]): void {
    this.learned.push(args);
  }

  classDeadlineUs(): number {
    return 30_000_000;
  }

  resolveModel(name: string): string | undefined {
    return this.known.includes(name) ? name : this.aliases[name];
  }

  models(): string[] {
    return this.known;
  }

  request(): undefined {
    return undefined;
  }

  get live(): number {
    return [...this.tasks.values()].filter((task) => task.state !== 'done').length;
  }

  #assign(task: FakeTask): void {
    if (task.state !== 'queued') return;
    if (this.nodeIds.length === 0) {
      this.#end(task, { kind: 'rejected', reason: 'no-node', hint: SOON });
      return;
    }
    task.state = 'running';
    const nodeId = this.nodeIds[(task.id + task.attempt) % this.nodeIds.length] as string;
    task.attempt++;
    this.assignments++;
    const { abortFreesSlot, upstreamModel, silence } = this;
    task.listener.assigned({ nodeId, attempt: task.attempt, upstreamModel, abortFreesSlot, silence });
  }

  #end(task: FakeTask, decided: Outcome): void {
    if (task.state === 'done') return;
    const outcome = task.verdict ?? decided;
    task.state = 'done';
    this.outcomes.push(outcome);
    task.listener.finished(outcome);
  }
}

export interface NodeSeen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type NodeScript = (res: ServerResponse, seen: NodeSeen) => void;

export interface TestNode {
  readonly url: string;
  readonly port: number;
  readonly seen: NodeSeen[];
  /** Resolves when the gateway has closed the connection of the n-th request (from 0) before its answer ended. */
  aborted(index: number): Promise<void>;
  script: NodeScript;
  close(): Promise<void>;
}

export async function startNode(script: NodeScript): Promise<TestNode> {
  const seen: NodeSeen[] = [];
  const aborts = new Map<number, PromiseWithResolvers<void>>();
  const abortOf = (index: number): PromiseWithResolvers<void> => {
    const known = aborts.get(index) ?? Promise.withResolvers<void>();
    aborts.set(index, known);
    return known;
  };
  const node = { script, seen, aborted: (index: number) => abortOf(index).promise };
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const index = seen.length;
      res.on('close', () => {
        if (!res.writableFinished) abortOf(index).resolve();
      });
      const row = {
        method: req.method as string,
        url: req.url as string,
        headers: req.headers,
        body: Buffer.concat(chunks).toString(),
      };
      seen.push(row);
      node.script(res, row);
    });
  });
  const port = await listen(server);
  return Object.assign(node, {
    url: `http://127.0.0.1:${port}`,
    port,
    close: () => closeServer(server),
  });
}

export async function listen(server: Server | import('node:net').Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

export interface Edge {
  readonly gateway: FakeGateway;
  readonly plane: DataPlane;
  readonly port: number;
  readonly url: string;
  /** Names and arguments of metric calls. */
  readonly metricCalls: [string, ...unknown[]][];
  close(): Promise<void>;
}

export interface EdgeOptions {
  readonly nodes?: readonly TestNode[];
  readonly config?: GatewayOverrides;
  readonly nodeHeaders?: readonly string[];
  readonly basePath?: string;
}

export async function startEdge(options: EdgeOptions = {}): Promise<Edge> {
  const server = { port: 0, ...options.config?.server };
  const gateway = new FakeGateway(defaultGatewayConfig({ ...options.config, server }));
  const transport = createHttpTransport({ connectMs: gateway.config.server.connectMs });
  for (const [index, node] of (options.nodes ?? []).entries()) {
    const id = `n${index}`;
    transport.open({ id, url: `${node.url}${options.basePath ?? ''}`, headers: options.nodeHeaders ?? [] });
    gateway.nodeIds.push(id);
  }
  const metricCalls: [string, ...unknown[]][] = [];
  const metrics = recordMetrics(metricCalls);
  const plane = createDataPlane({
    gateway: gateway as unknown as Gateway,
    transport,
    metrics,
    beacons: new BeaconDesk({
      config: () => gateway.config.rum,
      now: () => gateway.now(),
      userSide: new UserSide(metrics),
      metrics,
    }),
    wallMs: Date.now,
  });
  const { port } = await plane.listen();
  return {
    gateway,
    plane,
    port,
    url: `http://127.0.0.1:${port}`,
    metricCalls,
    async close(): Promise<void> {
      const closed = plane.close();
      plane.destroy();
      await closed;
      await transport.shutdown();
      await Promise.all((options.nodes ?? []).map((node) => node.close()));
    },
  };
}

function recordMetrics(calls: [string, ...unknown[]][]): MetricsSink {
  const names = Object.keys(NO_METRICS) as (keyof MetricsSink)[];
  const recorders = names.map((name) => [name, (...args: unknown[]) => void calls.push([name, ...args])]);
  return Object.fromEntries(recorders) as MetricsSink;
}

/** Resolves when `isTrue` holds, looking after each turn of the event loop; fails with its text after ten seconds. */
export async function until(isTrue: () => boolean): Promise<void> {
  for (const giveUpAt = performance.now() + UNTIL_MS_MAX; !isTrue(); ) {
    if (performance.now() > giveUpAt) throw new Error(`Not within ${UNTIL_MS_MAX} ms: ${isTrue.toString()}`);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Sends raw bytes and resolves with everything that came back until the other side closed. */
export function rawExchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
  });
}

/** A connection under the test's own hand. */
export function openRaw(port: number, bytes: string): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(bytes, 'latin1');
      resolve(socket);
    });
    socket.on('error', () => {});
  });
}

export function rawPost(path: string, body: string, headers = ''): string {
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;
}

export const CHAT: { model: string; messages: { role: 'user'; content: string }[] } = {
  model: 'tiny',
  messages: [{ role: 'user', content: 'Say hello' }],
};

export function sendJson(
  res: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  const text = JSON.stringify(value);
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  res.end(text);
}

export function completion(content: string): unknown {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'tiny',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
  };
}

export function delta(fields: Record<string, unknown>, finish: string | null = null): string {
  return `data: ${JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'tiny',
    choices: [{ index: 0, delta: fields, finish_reason: finish }],
  })}\n\n`;
}

export const ROLE: string = delta({ role: 'assistant', content: '' });
export const USAGE: string =
  'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"tiny","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}\n\n';
export const DONE = 'data: [DONE]\n\n';

export function streamHead(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
}

/** A whole, well-behaved stream of the given words. */
export function streamWords(res: ServerResponse, words: readonly string[]): void {
  streamHead(res);
  res.write(ROLE);
  for (const word of words) res.write(delta({ content: word }));
  res.write(delta({}, 'stop'));
  res.write(USAGE);
  res.end(DONE);
}
