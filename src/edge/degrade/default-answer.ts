/**
 * Configured answers, in the shape of the OpenAI wire. There is none for embeddings and images: an invented vector would
 * be stored and compared for years, and a picture that nobody drew is no lesser picture.
 */
import type { DefaultAnswers, ModelConfig } from '../../core/config/types.ts';

export interface DefaultAnswer {
  readonly contentType: string;
  readonly body: Buffer;
}

export function defaultTextOf(model: ModelConfig | undefined, endpoint: string): string | undefined {
  const texts: DefaultAnswers | undefined = model?.default;
  if (endpoint === 'chat') return texts?.chat;
  return endpoint === 'completions' ? texts?.completions : undefined;
}

export interface DefaultParts {
  readonly id: string;
  readonly model: string;
  readonly text: string;
  readonly isChat: boolean;
  readonly stream: boolean;
}

export function defaultAnswer(parts: DefaultParts): DefaultAnswer {
  return parts.stream
    ? { contentType: 'text/event-stream; charset=utf-8', body: Buffer.from(streamOf(parts)) }
    : { contentType: 'application/json; charset=utf-8', body: Buffer.from(JSON.stringify(wholeOf(parts))) };
}

/** Nothing was generated and nothing is billed. */
const NO_USAGE = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

function wholeOf(parts: DefaultParts): unknown {
  const { id, model, text, isChat } = parts;
  const choice = isChat
    ? {
        index: 0,
        message: { role: 'assistant', content: text, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      }
    : { index: 0, text, logprobs: null, finish_reason: 'stop' };
  const object = isChat ? 'chat.completion' : 'text_completion';
  return { id, object, created: 0, model, choices: [choice], usage: NO_USAGE };
}

function streamOf(parts: DefaultParts): string {
  const { text, isChat } = parts;
  const first = isChat
    ? { index: 0, delta: { role: 'assistant', content: text }, logprobs: null, finish_reason: null }
    : { index: 0, text, logprobs: null, finish_reason: null };
  const last = isChat
    ? { index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }
    : { index: 0, text: '', logprobs: null, finish_reason: 'stop' };
  return `${eventOf(parts, first)}${eventOf(parts, last)}data: [DONE]\n\n`;
}

function eventOf({ id, model, isChat }: DefaultParts, choice: unknown): string {
  const object = isChat ? 'chat.completion.chunk' : 'text_completion';
  return `data: ${JSON.stringify({ id, object, created: 0, model, choices: [choice] })}\n\n`;
}
