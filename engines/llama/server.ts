/**
 * A real node: a batching LLM engine (llama.cpp) behind the OpenAI wire, with the load pages of llama.cpp's own server.
 * The model is tiny and random, so the text is meaningless; batching, cache, queueing, usage and cancel are real.
 *
 * `--parallel N` sequences run at once; more requests wait inside the engine up to a bound, then 503. A client that
 * closes its connection frees its sequence within one step.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { engineArguments, readJson, sendError, sendJson, sendText, serveEngine } from '../common/http.ts';
import { createAnswer } from './answer.ts';
import { loadChatTemplate, loadModel, type Token } from './binding.ts';
import { generate } from './generate.ts';
import { type GenerateRequest, parseGenerateRequest } from './request.ts';
import { createSlots } from './slots.ts';
import { ensureTinyModel } from './tiny-model.ts';

const MODEL_ID = 'tiny-llama';
const QUEUE_REQUESTS_MAX = 64;
const CONTEXT_TOKENS = 4_096;
const BATCH_TOKENS = 512;

const flags = engineArguments(['parallel', 'model']);
const parallel = Number(flags['parallel'] ?? '2');
const modelPath = flags['model'] ?? fileURLToPath(new URL('./tiny.gguf', import.meta.url));
ensureTinyModel(modelPath);

const model = await loadModel(modelPath);
const context = await model.createContext({
  sequences: parallel,
  contextSize: CONTEXT_TOKENS,
  threads: 1,
  batchSize: BATCH_TOKENS,
});
const sequences = Array.from({ length: parallel }, () => context.getSequence());
const template = model.fileInfo.metadata.tokenizer.chat_template ?? '';
const renderChat = await loadChatTemplate(template);
const slots = createSlots(parallel, QUEUE_REQUESTS_MAX);
const started = Date.now();
const totals = { promptTokens: 0, completionTokens: 0 };

function promptTokensOf(request: GenerateRequest): Token[] {
  const text = request.prompt.kind === 'text' ? request.prompt.text : renderChat(request.prompt.messages);
  return model.tokenize(text);
}

async function serveGeneration(request: GenerateRequest, response: ServerResponse): Promise<void> {
  const promptTokens = promptTokensOf(request);
  const room = context.contextSize - promptTokens.length;
  if (room < 1) {
    const message = `The prompt has ${promptTokens.length} tokens, the context holds ${context.contextSize}`;
    return sendError(response, 400, message);
  }
  const client = new AbortController();
  response.once('close', () => client.abort());
  const answer = await slots.acquire(client.signal);
  if (answer.kind === 'client-left') return;
  if (answer.kind === 'queue-full') {
    return sendError(response, 503, `The engine's queue is full: ${QUEUE_REQUESTS_MAX} requests wait`);
  }
  try {
    await runOnSlot(request, response, {
      slot: answer.lease.slot,
      promptTokens,
      room,
      signal: client.signal,
    });
  } finally {
    answer.lease.release();
  }
}

async function runOnSlot(
  request: GenerateRequest,
  response: ServerResponse,
  run: {
    readonly slot: number;
    readonly promptTokens: Token[];
    readonly room: number;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const sequence = sequences[run.slot];
  if (sequence === undefined) throw new Error(`No sequence for slot ${run.slot}`);
  totals.promptTokens += run.promptTokens.length;
  const writer = createAnswer(request, response, {
    id: `${request.wire === 'chat' ? 'chatcmpl' : 'cmpl'}-${randomUUID()}`,
    created: Math.floor(Date.now() / 1000),
    model: MODEL_ID,
  });
  const end = await generate({
    model,
    sequence,
    promptTokens: run.promptTokens,
    request,
    tokensMax: Math.min(request.completionTokensMax, run.room),
    signal: run.signal,
    onText: (piece) => writer.text(piece),
    onToken: () => {
      totals.completionTokens += 1;
    },
  });
  writer.end(end, run.promptTokens.length);
}

function metricsText(): string {
  const rows: readonly (readonly [string, string, number])[] = [
    ['prompt_tokens_total', 'counter', totals.promptTokens],
    ['tokens_predicted_total', 'counter', totals.completionTokens],
    ['requests_processing', 'gauge', slots.processing],
    ['requests_deferred', 'gauge', slots.deferred],
  ];
  return rows
    .map(([name, type, value]) => `# TYPE llamacpp:${name} ${type}\nllamacpp:${name} ${value}\n`)
    .join('');
}

function readingPage(path: string): unknown {
  switch (path) {
    case '/health':
      return { status: 'ok' };
    case '/props':
      return {
        total_slots: parallel,
        default_generation_settings: { n_ctx: context.contextSize },
        model_path: modelPath,
        chat_template: template,
        build_info: 'node-llama-cpp',
      };
    case '/slots':
      return sequences.map((_, id) => ({ id, n_ctx: context.contextSize, is_processing: slots.isBusy(id) }));
    case '/v1/models': {
      const created = Math.floor(started / 1000);
      return { object: 'list', data: [{ id: MODEL_ID, object: 'model', created, owned_by: 'spillway' }] };
    }
    default:
      return undefined;
  }
}

const WIRES: ReadonlyMap<string, GenerateRequest['wire']> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'completion'],
]);

async function handle(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
  if (request.method === 'GET') {
    if (path === '/metrics') return sendText(response, 200, metricsText());
    const page = readingPage(path);
    return page === undefined
      ? sendError(response, 404, `No such path: ${path}`)
      : sendJson(response, 200, page);
  }
  const wire = WIRES.get(path);
  if (request.method !== 'POST' || wire === undefined)
    return sendError(response, 404, `No such path: ${path}`);
  const body = await readJson(request);
  if (body.kind === 'client-left') return;
  if (body.kind === 'refused') return sendError(response, body.status, body.message);
  const parsed = parseGenerateRequest(body.value, wire, MODEL_ID);
  if (parsed.kind === 'refused') return sendError(response, parsed.status, parsed.message);
  await serveGeneration(parsed.request, response);
}

await serveEngine(flags, handle, () => context.dispose());
