/** What the LLM node accepts of the OpenAI wire. Pure, so that it is tested without the engine. */
import type { ChatMessages } from './binding.ts';

const COMPLETION_TOKENS_DEFAULT = 128;
const STOP_TEXTS_MAX = 4;

export interface GenerateRequest {
  readonly wire: 'chat' | 'completion';
  readonly prompt:
    | { readonly kind: 'messages'; readonly messages: ChatMessages }
    | { readonly kind: 'text'; readonly text: string };
  readonly completionTokensMax: number;
  readonly temperature: number;
  readonly topP: number | undefined;
  readonly seed: number | undefined;
  readonly stop: readonly string[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

export type ParsedGenerateRequest =
  | { readonly kind: 'ok'; readonly request: GenerateRequest }
  | { readonly kind: 'refused'; readonly status: 400 | 404; readonly message: string };

type Body = Readonly<Record<string, unknown>>;

class Refusal extends Error {
  readonly status: 400 | 404;
  constructor(status: 400 | 404, message: string) {
    super(message);
    this.status = status;
  }
}

export function parseGenerateRequest(
  body: Body,
  wire: GenerateRequest['wire'],
  modelId: string,
): ParsedGenerateRequest {
  try {
    return { kind: 'ok', request: parse(body, wire, modelId) };
  } catch (error) {
    if (error instanceof Refusal) return { kind: 'refused', status: error.status, message: error.message };
    throw error;
  }
}

function parse(body: Body, wire: GenerateRequest['wire'], modelId: string): GenerateRequest {
  if (typeof body['model'] !== 'string') throw new Refusal(400, 'model must be a string');
  if (body['model'] !== modelId) throw new Refusal(404, `The model ${body['model']} does not exist`);
  if ((body['n'] ?? 1) !== 1) throw new Refusal(400, 'n must be 1');
  const options = body['stream_options'] as { include_usage?: unknown } | undefined | null;
  return {
    wire,
    prompt: wire === 'chat' ? parseMessages(body['messages']) : parsePrompt(body['prompt']),
    completionTokensMax:
      parseNumber(
        body,
        body['max_completion_tokens'] === undefined ? 'max_tokens' : 'max_completion_tokens',
        {
          low: 1,
          high: Number.MAX_SAFE_INTEGER,
          integer: true,
        },
      ) ?? COMPLETION_TOKENS_DEFAULT,
    temperature: parseNumber(body, 'temperature', { low: 0, high: 2, integer: false }) ?? 0.8,
    topP: parseNumber(body, 'top_p', { low: 0, high: 1, integer: false }),
    seed: parseNumber(body, 'seed', { low: 0, high: 0xffff_ffff, integer: true }),
    stop: parseStop(body['stop']),
    stream: body['stream'] === true,
    includeUsage: options?.include_usage === true,
  };
}

function parseMessages(value: unknown): GenerateRequest['prompt'] {
  if (!Array.isArray(value) || value.length === 0)
    throw new Refusal(400, 'messages must be an array that is not empty');
  return { kind: 'messages', messages: value.map(parseMessage) };
}

function parseMessage(value: unknown): { role: string; content: string } {
  const message = (typeof value === 'object' && value !== null ? value : {}) as Body;
  const { role, content } = message;
  if (typeof role !== 'string') throw new Refusal(400, 'Each message must have a role');
  if (typeof content === 'string') return { role, content };
  if (!Array.isArray(content)) throw new Refusal(400, 'Each message must have content: a text or text parts');
  const parts = content.map((part: unknown) => {
    const text = (part as { type?: unknown; text?: unknown } | null)?.text;
    if (typeof text !== 'string') throw new Refusal(400, 'This model reads text parts only');
    return text;
  });
  return { role, content: parts.join('') };
}

function parsePrompt(value: unknown): GenerateRequest['prompt'] {
  if (typeof value !== 'string' || value === '')
    throw new Refusal(400, 'prompt must be a string that is not empty');
  return { kind: 'text', text: value };
}

interface Bounds {
  readonly low: number;
  readonly high: number;
  readonly integer: boolean;
}

function parseNumber(body: Body, name: string, bounds: Bounds): number | undefined {
  const value = body[name];
  if (value === undefined || value === null) return undefined;
  const fits = typeof value === 'number' && value >= bounds.low && value <= bounds.high;
  if (!fits || (bounds.integer && !Number.isInteger(value))) {
    const sort = bounds.integer ? 'an integer' : 'a number';
    throw new Refusal(400, `${name} must be ${sort} from ${bounds.low} to ${bounds.high}`);
  }
  return value;
}

function parseStop(value: unknown): readonly string[] {
  if (value === undefined || value === null) return [];
  const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (texts.length > STOP_TEXTS_MAX) throw new Refusal(400, `stop must hold at most ${STOP_TEXTS_MAX} texts`);
  return texts.map((text) => {
    if (typeof text !== 'string' || text === '')
      throw new Refusal(400, 'stop must hold texts that are not empty');
    return text;
  });
}
