/** Writes a generation as the OpenAI wire has it: one JSON document, or server-sent events that end in [DONE]. */
import type { ServerResponse } from 'node:http';
import { sendJson } from '../common/http.ts';
import type { GenerationEnd } from './generate.ts';
import type { GenerateRequest } from './request.ts';

export interface Answer {
  text(piece: string): void;
  end(end: GenerationEnd, promptTokens: number): void;
}

interface Identity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

export function createAnswer(request: GenerateRequest, response: ServerResponse, identity: Identity): Answer {
  return request.stream
    ? createStream(request, response, identity)
    : createDocument(request, response, identity);
}

function usageOf(end: GenerationEnd, promptTokens: number): Readonly<Record<string, number>> {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: end.completionTokens,
    total_tokens: promptTokens + end.completionTokens,
  };
}

function createDocument(request: GenerateRequest, response: ServerResponse, identity: Identity): Answer {
  let content = '';
  return {
    text: (piece) => {
      content += piece;
    },
    end: (end, promptTokens) => {
      if (end.finish === 'aborted') return;
      const base = { index: 0, finish_reason: end.finish, logprobs: null };
      const chat = request.wire === 'chat';
      sendJson(response, 200, {
        ...identity,
        object: chat ? 'chat.completion' : 'text_completion',
        choices: [chat ? { ...base, message: { role: 'assistant', content } } : { ...base, text: content }],
        usage: usageOf(end, promptTokens),
      });
    },
  };
}

/** A client that reads slowly is buffered here: an answer is bounded by the sequence's length, and the slot stays free of it. */
function createStream(request: GenerateRequest, response: ServerResponse, identity: Identity): Answer {
  const chat = request.wire === 'chat';
  const object = chat ? 'chat.completion.chunk' : 'text_completion';
  const usage = request.includeUsage ? { usage: null } : {};
  const event = (value: unknown): void => {
    if (!response.destroyed) response.write(`data: ${JSON.stringify(value)}\n\n`);
  };
  const choice = (delta: Readonly<Record<string, string>>, text: string, finish: string | null): void => {
    const base = { index: 0, finish_reason: finish, logprobs: null };
    event({ ...identity, object, choices: [chat ? { ...base, delta } : { ...base, text }], ...usage });
  };
  let begun = false;
  const begin = (): void => {
    if (begun || response.destroyed) return;
    begun = true;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    if (chat) choice({ role: 'assistant', content: '' }, '', null);
  };
  return {
    text: (piece) => {
      begin();
      choice({ content: piece }, piece, null);
    },
    end: (end, promptTokens) => {
      if (end.finish === 'aborted') return;
      begin();
      choice({}, '', end.finish);
      if (request.includeUsage)
        event({ ...identity, object, choices: [], usage: usageOf(end, promptTokens) });
      if (!response.destroyed) response.end('data: [DONE]\n\n');
    },
  };
}
