/**
 * One emulated node: an HTTP server that speaks the OpenAI wire and takes as long as the hardware it plays would.
 *
 * Every answer carries `x-emulated: 1`. A client that closes its connection frees the slot at once, unless the node
 * plays a server that cannot abort; then its work goes on as a ghost and is counted.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { imageServiceMs } from '../hardware/service-time.ts';
import type { EmulatorClock } from './clock.ts';
import { type FaultChange, type Faults, HEALTHY } from './faults.ts';
import { IMAGE_MODELS, imageWorkMs, TEXT_MODELS, textWorkMs } from './hardware.ts';
import { createImageEngine, type ImageEngine } from './image-engine.ts';
import { lognormalFactor, seededUniform, seedFor, type Uniform } from './noise.ts';
import {
  deviceReply,
  errorReply,
  imagesReply,
  metricsReply,
  modelsReply,
  sseEnd,
  sseTokens,
  textReply,
} from './replies.ts';
import {
  chatSizeOf,
  completionSizeOf,
  imageSizeOf,
  parseBody,
  type Body,
  type TextSize,
} from './requests.ts';
import type { EmulatedFleetSpec, EmulatedNodeSpec } from './spec.ts';
import { createTextEngine, type TextEngine } from './text-engine.ts';
import { createRecentRate, emptyTally, type NodeTruth, type Tally } from './truth.ts';

const BODY_BYTES_MAX = 1_048_576;
/** Requests that a hanging node keeps open; more are cut, so that a forgotten fault cannot exhaust descriptors. */
const HANGING_MAX = 10_000;
/** Longer than gateways keep idle connections, so that it is never the node that closes under a request. */
const KEEP_ALIVE_MS = 120_000;
/** The page of the host's exporter (DCGM), which a real node has on a port of its own. */
const DEVICE_PAGE = '/device/metrics';
const OUTPUT_TOKENS_DEFAULT = 128;
const OUTPUT_TOKENS_SIGMA = 0.6;
const OUTPUT_TOKENS_DRAWN_MAX = 1_024;

export interface EmulatedNode {
  readonly id: string;
  readonly url: string;
  readonly spec: EmulatedNodeSpec;
  faults(): Readonly<Faults>;
  /** Resolves when the port is closed or open again. */
  setFaults(change: FaultChange): Promise<void>;
  truth(): NodeTruth;
  close(): Promise<void>;
}

interface NodeState {
  readonly spec: EmulatedNodeSpec;
  readonly fleet: EmulatedFleetSpec;
  readonly images: ImageEngine;
  readonly text: TextEngine;
  readonly uniform: Uniform;
  readonly tally: Tally;
  readonly recent: ReturnType<typeof createRecentRate>;
  faults: Faults;
  hanging: number;
  replies: number;
  frozenMetrics: string;
}

export async function startEmulatedNode(
  spec: EmulatedNodeSpec,
  fleet: EmulatedFleetSpec,
  clock: EmulatorClock,
): Promise<EmulatedNode> {
  const state = createState(spec, fleet, clock);
  let server = createNodeServer(state);
  const port = await listen(server, spec.port);
  return {
    id: spec.id,
    url: `http://127.0.0.1:${port}`,
    spec,
    faults: () => state.faults,
    async setFaults(change) {
      const wasDead = state.faults.dead;
      if (change.staleMetrics === true && !state.faults.staleMetrics) state.frozenMetrics = metricsNow(state);
      if (change.slowFactor !== undefined && change.slowFactor !== state.faults.slowFactor)
        state.recent.reset();
      state.faults = { ...state.faults, ...change };
      if (state.faults.dead === wasDead) return;
      if (wasDead) {
        server = createNodeServer(state);
        await listen(server, port);
        return;
      }
      state.images.drop();
      state.text.drop();
      await closeServer(server);
    },
    truth: () => truthOf(state),
    async close() {
      state.images.drop();
      state.text.drop();
      if (!state.faults.dead) await closeServer(server);
    },
  };
}

function createState(spec: EmulatedNodeSpec, fleet: EmulatedFleetSpec, clock: EmulatorClock): NodeState {
  const uniform = seededUniform(seedFor(fleet.seed, spec.id));
  const model = TEXT_MODELS[spec.trueHardware];
  const state: NodeState = {
    spec,
    fleet,
    images: createImageEngine(clock, { queueMax: fleet.queueMax }),
    text: createTextEngine(clock, {
      sequencesMax: spec.sequencesMax,
      cacheTokensMax: spec.cacheTokensMax,
      queueMax: fleet.queueMax,
      stepMs: (batch) => {
        const decodeMs =
          model.stepMs +
          model.perSequenceMs * batch.sequences +
          model.perContextTokenMs * batch.contextTokens;
        return (
          (decodeMs + model.prefillMsPerToken * batch.newPromptTokens) * wallFactor(state) * noise(state)
        );
      },
    }),
    uniform,
    tally: emptyTally(),
    recent: createRecentRate(),
    faults: { ...HEALTHY },
    hanging: 0,
    replies: 0,
    frozenMetrics: '',
  };
  return state;
}

/** Wall time of this node per emulated time of its hardware. */
function wallFactor(state: NodeState): number {
  return state.faults.slowFactor / (state.spec.trueSpeed * state.fleet.speedup);
}

function noise(state: NodeState): number {
  return lognormalFactor(state.uniform, state.fleet.noiseSigma);
}

function createNodeServer(state: NodeState): Server {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0 }, (request, response) => {
    if (state.faults.closeConnections) response.shouldKeepAlive = false;
    if (request.method === 'GET') answerGet(state, request, response);
    else readBody(request, response, (text) => answerPost(state, { request, response, text }));
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  return server;
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', 4_096, () => resolve((server.address() as AddressInfo).port));
  });
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function reply(response: ServerResponse, status: number, body: string, extra: readonly string[] = []): void {
  response.writeHead(status, [
    'content-type',
    'application/json',
    'content-length',
    String(Buffer.byteLength(body)),
    'x-emulated',
    '1',
    ...extra,
  ]);
  response.end(body);
}

function readBody(request: IncomingMessage, response: ServerResponse, done: (text: string) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= BODY_BYTES_MAX) chunks.push(chunk);
  });
  request.on('end', () => {
    if (bytes > BODY_BYTES_MAX)
      reply(response, 413, errorReply('The body is too large', 'invalid_request_error'));
    else done((chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)).toString('utf8'));
  });
  request.on('error', () => response.destroy());
}

function answerGet(state: NodeState, request: IncomingMessage, response: ServerResponse): void {
  if (state.faults.hang) return;
  if (request.url === '/v1/models') return reply(response, 200, modelsReply(state.spec));
  if (request.url === '/health') return reply(response, 200, '{"status":"ok","emulated":true}');
  if (request.url === '/metrics' && state.spec.kind === 'text') {
    const body = state.faults.staleMetrics ? state.frozenMetrics : metricsNow(state);
    response.writeHead(200, ['content-type', 'text/plain; version=0.0.4', 'x-emulated', '1']);
    response.end(body);
    return undefined;
  }
  if (request.url === DEVICE_PAGE) {
    response.writeHead(200, ['content-type', 'text/plain; version=0.0.4', 'x-emulated', '1']);
    response.end(deviceReply(state.faults.memoryUse));
    return undefined;
  }
  return reply(response, 404, errorReply('There is nothing here', 'not_found_error'));
}

function metricsNow(state: NodeState): string {
  return metricsReply(state.spec.model, {
    running: state.text.running,
    waiting: state.text.waiting,
    cacheUse: state.text.cacheUse,
  });
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly text: string;
}

function answerPost(state: NodeState, exchange: Exchange): void {
  const { response } = exchange;
  state.tally.received += 1;
  if (answerFault(state, response)) return;
  const body = parseBody(exchange.text);
  if (body === undefined) return bad(response, 'The body is not a JSON object');
  const path = exchange.request.url;
  if (path === '/v1/images/generations' && state.spec.kind === 'image')
    return serveImages(state, response, body);
  if (state.spec.kind === 'text' && path === '/v1/chat/completions') {
    return serveText(state, response, { size: chatSizeOf(body), chat: true });
  }
  if (state.spec.kind === 'text' && path === '/v1/completions') {
    return serveText(state, response, { size: completionSizeOf(body), chat: false });
  }
  return reply(response, 404, errorReply('This node does not serve that path', 'not_found_error'));
}

function bad(response: ServerResponse, message: string): void {
  reply(response, 400, errorReply(message, 'invalid_request_error'));
}

/** True when a fault took the request. */
function answerFault(state: NodeState, response: ServerResponse): boolean {
  const { faults, tally } = state;
  if (faults.hang) {
    if (state.hanging >= HANGING_MAX) response.destroy();
    state.hanging += 1;
    response.on('close', () => {
      state.hanging -= 1;
    });
    return true;
  }
  if (faults.refuseStatus !== 0) {
    tally.refused += 1;
    const wait = faults.refuseRetryAfterS > 0 ? ['retry-after', String(faults.refuseRetryAfterS)] : [];
    reply(response, faults.refuseStatus, errorReply('It refuses (a fault)', 'overloaded_error'), wait);
    return true;
  }
  if (faults.failRatio > 0 && state.uniform() < faults.failRatio) {
    tally.failed += 1;
    reply(response, 500, errorReply('It failed (a fault)', 'server_error'));
    return true;
  }
  if (faults.garbage) {
    tally.failed += 1;
    reply(response, 200, '<html>emulated garbage: no answer');
    return true;
  }
  return false;
}

/** Ends a body early: the head promises more than comes. */
function cut(response: ServerResponse, body: string): void {
  response.writeHead(200, [
    'content-type',
    'application/json',
    'content-length',
    String(Buffer.byteLength(body)),
    'x-emulated',
    '1',
  ]);
  response.write(body.slice(0, body.length >> 1), () => response.destroy());
}

function serveImages(state: NodeState, response: ServerResponse, body: Body): void {
  const asked = imageSizeOf(body);
  if (asked === undefined) return bad(response, 'A size, a number of images or of steps is out of range');
  const { distilled } = state.spec;
  const isDistilled = distilled !== undefined && body['model'] === distilled.model;
  const size = isDistilled ? { ...asked, steps: Math.min(asked.steps, distilled.stepsMax) } : asked;
  const model = IMAGE_MODELS[state.spec.trueHardware];
  const serviceMs = imageServiceMs(model, size) * wallFactor(state) * noise(state);
  const workMs = imageWorkMs(size) / state.fleet.speedup;
  let left = false;
  const ticket = state.images.submit({
    serviceMs,
    finished: (times) => {
      settle(state, { workMs, left });
      // The truth of a node is told for its main model.
      if (!isDistilled) state.recent.add(workMs, times.serviceMs);
      if (left) return;
      const text = imagesReply(state.spec, size, times);
      if (state.faults.truncate) cut(response, text);
      else reply(response, 200, text);
    },
  });
  if (ticket === undefined) {
    state.tally.refused += 1;
    return reply(response, 503, errorReply('Its queue is full', 'overloaded_error'));
  }
  response.on('close', () => {
    if (response.writableFinished || left) return;
    left = true;
    if (response.headersSent) return;
    state.tally.aborted += 1;
    if (state.spec.abortFreesSlot) ticket.cancel();
  });
  return undefined;
}

function settle(state: NodeState, task: { workMs: number; left: boolean }): void {
  if (task.left) {
    state.tally.ghosts += 1;
    state.tally.ghostWorkMs += task.workMs;
  } else {
    state.tally.served += 1;
    state.tally.workMs += task.workMs;
  }
}

function outputTokens(state: NodeState, size: TextSize): number {
  if (size.outputTokensAsked > 0) return size.outputTokensAsked;
  const drawn = OUTPUT_TOKENS_DEFAULT * lognormalFactor(state.uniform, OUTPUT_TOKENS_SIGMA);
  return Math.min(OUTPUT_TOKENS_DRAWN_MAX, Math.max(1, Math.round(drawn)));
}

function serveText(
  state: NodeState,
  response: ServerResponse,
  asked: { readonly size: TextSize | undefined; readonly chat: boolean },
): void {
  const { size, chat } = asked;
  if (size === undefined)
    return bad(response, 'Messages or prompt are missing, or max_tokens is out of range');
  const total = outputTokens(state, size);
  const end = {
    promptTokens: size.promptTokens,
    outputTokens: total,
    reason: total === size.outputTokensAsked ? 'length' : 'stop',
    includeUsage: size.includeUsage,
  };
  state.replies += 1;
  const head = { id: `emu-${state.spec.id}-${state.replies}`, model: state.spec.model, chat };
  const workMs = textWorkMs(size.promptTokens, total) / state.fleet.speedup;
  let left = false;
  let sent = 0;
  const ticket = state.text.submit({
    promptTokens: size.promptTokens,
    outputTokens: total,
    tokens: (count, ended) => {
      if (ended) settle(state, { workMs, left });
      if (left) return;
      if (size.stream) {
        if (sent === 0) openStream(response);
        const events = sseTokens(head, sent, count);
        sent += count;
        if (!ended) response.write(events);
        else response.end(state.faults.truncate ? '' : events + sseEnd(head, end));
      } else if (ended) {
        const text = textReply(head, end);
        if (state.faults.truncate) cut(response, text);
        else reply(response, 200, text);
      }
    },
  });
  if (ticket === undefined) {
    state.tally.refused += 1;
    return reply(response, 503, errorReply('Its queue is full', 'overloaded_error'));
  }
  response.on('close', () => {
    if (response.writableFinished || left) return;
    left = true;
    if (response.writableEnded) return;
    state.tally.aborted += 1;
    if (state.spec.abortFreesSlot) ticket.cancel();
  });
  return undefined;
}

function openStream(response: ServerResponse): void {
  response.writeHead(200, [
    'content-type',
    'text/event-stream',
    'cache-control',
    'no-cache',
    'x-emulated',
    '1',
  ]);
}

function truthOf(state: NodeState): NodeTruth {
  const { spec, tally } = state;
  const model = IMAGE_MODELS[spec.trueHardware];
  const factor = wallFactor(state);
  const engine = spec.kind === 'image' ? state.images : state.text;
  return {
    emulated: true,
    id: spec.id,
    kind: spec.kind,
    model: spec.model,
    statedHardware: spec.statedHardware,
    trueHardware: spec.trueHardware,
    trueSpeed: spec.trueSpeed,
    slowFactor: state.faults.slowFactor,
    dead: state.faults.dead,
    fixedMs: model.fixedMs * factor,
    perImageMs: model.perImageMs * factor,
    received: tally.received,
    served: tally.served,
    aborted: tally.aborted,
    ghosts: tally.ghosts,
    refused: tally.refused,
    failed: tally.failed,
    waiting: engine.waiting,
    running: engine.running,
    busyMs: engine.busyMs(),
    workMs: tally.workMs,
    ghostWorkMs: tally.ghostWorkMs,
    recentRate: state.recent.rate,
    recentTasks: state.recent.tasks,
  };
}
