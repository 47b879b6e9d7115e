/** What an emulated node reads of an OpenAI request: only what costs time. */
import type { Tokens } from '../base/units.ts';
import { type ImageSize, PIXELS_REFERENCE, STEPS_REFERENCE } from '../hardware/service-time.ts';

const IMAGES_MAX = 16;
const STEPS_MAX = 1_000;
const PIXELS_MAX = 4_096 * 4_096;
const OUTPUT_TOKENS_MAX = 32_768;
/** Bytes of English text per token, roughly; an emulated node has no tokenizer. */
const BYTES_PER_TOKEN = 4;

export type Body = Readonly<Record<string, unknown>>;

export interface TextSize {
  readonly promptTokens: Tokens;
  /** 0: not given. */
  readonly outputTokensAsked: Tokens;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** Undefined when the text is not a JSON object. */
export function parseBody(text: string): Body | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Body) : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined when a field is out of range. */
export function imageSizeOf(body: Body): ImageSize | undefined {
  const images = numberIn(body['n'] ?? 1, 1, IMAGES_MAX);
  const steps = numberIn(body['steps'] ?? body['num_inference_steps'] ?? STEPS_REFERENCE, 1, STEPS_MAX);
  const pixels = pixelsOf(body['size']);
  if (images === undefined || steps === undefined || pixels === undefined) return undefined;
  return { images, steps, pixels };
}

function pixelsOf(size: unknown): number | undefined {
  if (size === undefined || size === 'auto') return PIXELS_REFERENCE;
  const match = typeof size === 'string' ? /^(\d{1,5})x(\d{1,5})$/.exec(size) : null;
  if (match === null) return undefined;
  return numberIn(Number(match[1]) * Number(match[2]), 1, PIXELS_MAX);
}

export function chatSizeOf(body: Body): TextSize | undefined {
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0) return undefined;
  let bytes = 0;
  for (const message of messages as unknown[]) bytes += contentLength(message);
  return textSize(body, bytes);
}

export function completionSizeOf(body: Body): TextSize | undefined {
  const prompt = body['prompt'];
  if (typeof prompt === 'string') return textSize(body, prompt.length);
  if (Array.isArray(prompt)) return textSize(body, JSON.stringify(prompt).length);
  return undefined;
}

function contentLength(message: unknown): number {
  const content = (message as { content?: unknown } | null)?.content;
  if (typeof content === 'string') return content.length;
  return content === undefined || content === null ? 0 : JSON.stringify(content).length;
}

function textSize(body: Body, promptBytes: number): TextSize | undefined {
  const asked = numberIn(body['max_completion_tokens'] ?? body['max_tokens'] ?? 0, 0, OUTPUT_TOKENS_MAX);
  if (asked === undefined) return undefined;
  const options = body['stream_options'] as { include_usage?: unknown } | undefined;
  return {
    promptTokens: Math.max(1, Math.ceil(promptBytes / BYTES_PER_TOKEN)),
    outputTokensAsked: asked,
    stream: body['stream'] === true,
    includeUsage: options?.include_usage === true,
  };
}

function numberIn(value: unknown, min: number, max: number): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
    ? value
    : undefined;
}
