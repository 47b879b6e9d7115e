/**
 * OpenAI requests: what is asked for, of which model, and how much of it. Only what the gateway uses is checked; the
 * rest is the engine's business and travels untouched.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { Bytes, Tokens } from '../../../base/units.ts';
import { type Lowered, NOTHING_LOWERED } from '../../../core/degrade/index.ts';
import type { Capability, Needs } from '../../../core/request/needs.ts';
import { NO_NEEDS } from '../../../core/request/index.ts';
import type { RequestShape } from '../../../core/request/task.ts';
import { quoted } from '../../outcomes/refusal.ts';
import type { InferenceRequest, ParseResult } from '../inference-request.ts';
import { type BodyEdits, editBody } from './body-edits.ts';
import { locateJsonFault } from './json-fault.ts';
import { topLevelMembers } from './json-members.ts';

export type OpenAiEndpoint = 'chat' | 'completions' | 'embeddings' | 'images';

export const OPENAI_PATHS: Readonly<Record<OpenAiEndpoint, string>> = Object.freeze({
  chat: '/v1/chat/completions',
  completions: '/v1/completions',
  embeddings: '/v1/embeddings',
  images: '/v1/images/generations',
});

/** The member that is the prompt, of endpoints whose engines keep prompts. */
const PROMPT_MEMBERS: Readonly<Partial<Record<OpenAiEndpoint, string>>> = Object.freeze({
  chat: 'messages',
  completions: 'prompt',
});

/** Longer is no model's name. */
const MODEL_LENGTH_MAX = 256;
/** Counts beyond this are pressed down; they only feed estimates. */
const COUNT_MAX = 2 ** 31 - 1;
const IMAGES_MAX = 1_000;

type Fields = Readonly<Record<string, unknown>>;

/** Thrown and caught inside this module alone, to keep the checks flat. */
class BadField extends Error {
  override readonly name = 'BadField';
  readonly param: string;

  constructor(param: string, rule: string) {
    super(rule);
    this.param = param;
  }
}

export function parseOpenAi(endpoint: OpenAiEndpoint, body: Buffer): ParseResult {
  const fields = parseObject(body);
  if (typeof fields === 'string') return { kind: 'bad', detail: fields, param: '' };
  try {
    return { kind: 'request', request: describe(endpoint, body, fields) };
  } catch (error) {
    if (error instanceof BadField) return { kind: 'bad', detail: error.message, param: error.param };
    throw error;
  }
}

/** The object, or what is wrong with the text. */
function parseObject(body: Buffer): Fields | string {
  if (body.length === 0) return 'the body is empty, a JSON object is needed';
  const text = textOf(body);
  if (text === undefined) return 'the body is not valid UTF-8';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const fault = locateJsonFault(text);
    return `malformed JSON at position ${fault.position} (line ${fault.line}, column ${fault.column})`;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'the body must be a JSON object';
  return value as Fields;
}

/** Most bodies are ASCII, and reading them as such takes half of the time. */
function textOf(body: Buffer): string | undefined {
  if (isAscii(body)) return body.toString('latin1');
  return isUtf8(body) ? body.toString('utf8') : undefined;
}

function describe(endpoint: OpenAiEndpoint, body: Buffer, fields: Fields): InferenceRequest {
  const model = modelName(fields);
  const stream = flag(fields, 'stream');
  const aspects = ASPECTS[endpoint](body, fields, stream);
  const canStream = endpoint === 'chat' || endpoint === 'completions';
  if (stream && !canStream) throw new BadField('stream', 'this endpoint does not stream');
  return new OpenAiRequest({ endpoint, path: OPENAI_PATHS[endpoint], model, stream, aspects, body, fields });
}

interface RequestParts {
  readonly endpoint: OpenAiEndpoint;
  readonly path: string;
  readonly model: string;
  readonly stream: boolean;
  readonly aspects: Aspects;
  readonly body: Buffer;
  readonly fields: Fields;
}

/** A class, since one is made for every request, and its fingerprint only for those that need it. */
class OpenAiRequest implements InferenceRequest {
  readonly endpoint: OpenAiEndpoint;
  readonly path: string;
  readonly model: string;
  readonly stream: boolean;
  readonly shape: RequestShape;
  readonly needs: Needs;
  readonly usesContext: boolean;
  readonly serviceTier: unknown;
  readonly bodyPriority: unknown;
  readonly hidesUsage: boolean;
  readonly body: Buffer;
  readonly #edits: BodyEdits;
  #checksum = -1;

  constructor({ endpoint, path, model, stream, aspects, body, fields }: RequestParts) {
    this.endpoint = endpoint;
    this.path = path;
    this.model = model;
    this.stream = stream;
    this.shape = aspects.shape;
    this.needs = aspects.needs;
    this.usesContext = path !== OPENAI_PATHS.images;
    this.serviceTier = fields.service_tier;
    this.bodyPriority = fields.priority;
    this.#edits = planEdits(fields, model, stream);
    this.hidesUsage = this.#edits.streamOptions !== '';
    this.body = body;
  }

  get checksum(): number {
    if (this.#checksum < 0) this.#checksum = crc32(this.body);
    return this.#checksum;
  }

  get fingerprint(): string {
    return `${this.checksum.toString(36)}-${this.body.length.toString(36)}`;
  }

  promptText(): Buffer | undefined {
    const name = PROMPT_MEMBERS[this.endpoint];
    if (name === undefined) return undefined;
    const member = topLevelMembers(this.body).findLast((one) => one.name === name);
    // Without the closing bracket or quote, which the next turn has elsewhere.
    return member === undefined ? undefined : this.body.subarray(member.valueStart, member.end - 1);
  }

  bodyFor(name: string, lowered: Lowered = NOTHING_LOWERED): readonly Uint8Array[] {
    return editBody(this.body, this.#edits, { modelName: name, lowered });
  }
}

function planEdits(fields: Fields, model: string, stream: boolean): BodyEdits {
  const removesHints = 'service_tier' in fields || 'priority' in fields;
  const given = fields.stream_options;
  const hasStreamOptions = 'stream_options' in fields;
  let streamOptions = '';
  if (stream) {
    if (given !== undefined && given !== null && !isObject(given)) {
      throw new BadField('stream_options', 'must be an object');
    }
    if (!isObject(given)) streamOptions = '{"include_usage":true}';
    else if (given.include_usage !== true) streamOptions = JSON.stringify({ ...given, include_usage: true });
  }
  return { model, removesHints, streamOptions, hasStreamOptions };
}

interface Aspects {
  readonly shape: RequestShape;
  readonly needs: Needs;
}

const ASPECTS: Readonly<Record<OpenAiEndpoint, (body: Buffer, fields: Fields, stream: boolean) => Aspects>> =
  {
    chat: chatAspects,
    completions: completionAspects,
    embeddings: embeddingAspects,
    images: imageAspects,
  };

function chatAspects(body: Buffer, fields: Fields): Aspects {
  const messages = fields.messages;
  if (!Array.isArray(messages)) throw new BadField('messages', 'must be an array of messages');
  if (messages.length === 0) throw new BadField('messages', 'must hold at least one message');
  let mediaBytes = 0;
  let hasVision = false;
  let hasAudio = false;
  for (const message of messages as readonly unknown[]) {
    if (!isObject(message)) throw new BadField('messages', 'each message must be an object');
    const content = message.content;
    if (!Array.isArray(content)) continue;
    for (const part of content as readonly unknown[]) {
      if (!isObject(part)) continue;
      const type = part.type;
      if (type === 'image_url' || type === 'input_image') {
        hasVision = true;
        mediaBytes += mediaLength(part.image_url);
      } else if (type === 'input_audio') {
        hasAudio = true;
        mediaBytes += mediaLength(part.input_audio);
      }
    }
  }
  const capabilities: Capability[] = [];
  if (hasAudio) capabilities.push('audio');
  if (asksForSchema(fields.response_format)) capabilities.push('json-schema');
  if (Array.isArray(fields.tools) && fields.tools.length > 0) capabilities.push('tools');
  if (hasVision) capabilities.push('vision');
  const outputTokensMax = Math.max(count(fields, 'max_tokens'), count(fields, 'max_completion_tokens'));
  return {
    shape: textShape(Math.max(1, body.length - mediaBytes), outputTokensMax),
    needs: capabilities.length === 0 ? NO_NEEDS : { ...NO_NEEDS, capabilities },
  };
}

function completionAspects(body: Buffer, fields: Fields): Aspects {
  const prompt = fields.prompt;
  if (prompt !== undefined && typeof prompt !== 'string' && !Array.isArray(prompt)) {
    throw new BadField('prompt', 'must be a string or an array');
  }
  return {
    shape: textShape(body.length, count(fields, 'max_tokens')),
    needs: NO_NEEDS,
  };
}

function embeddingAspects(body: Buffer, fields: Fields): Aspects {
  const input = fields.input;
  if (typeof input !== 'string' && !Array.isArray(input)) {
    throw new BadField('input', 'must be a string or an array');
  }
  if (input.length === 0) throw new BadField('input', 'must not be empty');
  const embeddingSize = count(fields, 'dimensions');
  return {
    shape: { ...NO_SHAPE, promptBytes: body.length, hasNoOutput: true },
    needs: embeddingSize === 0 ? NO_NEEDS : { ...NO_NEEDS, embeddingSize },
  };
}

function imageAspects(body: Buffer, fields: Fields): Aspects {
  if (typeof fields.prompt !== 'string') throw new BadField('prompt', 'must be a string');
  const images = 'n' in fields && fields.n !== null ? count(fields, 'n') : 1;
  if (images < 1 || images > IMAGES_MAX) throw new BadField('n', `must be from 1 to ${IMAGES_MAX}`);
  const pixels = pixelsOf(fields.size);
  const steps = Math.max(count(fields, 'steps'), count(fields, 'num_inference_steps'));
  return {
    shape: { ...NO_SHAPE, promptBytes: body.length, images, steps, pixelsPerImage: pixels },
    needs: pixels === 0 ? NO_NEEDS : { ...NO_NEEDS, pixels },
  };
}

/** Written out, since most requests have one: a spread takes several times as long. */
function textShape(promptBytes: Bytes, outputTokensMax: Tokens): RequestShape {
  return { promptBytes, outputTokensMax, images: 0, steps: 0, pixelsPerImage: 0, statedWorkUs: 0 };
}

const NO_SHAPE: RequestShape = Object.freeze({
  promptBytes: 1,
  outputTokensMax: 0,
  images: 0,
  steps: 0,
  pixelsPerImage: 0,
  statedWorkUs: 0,
});

function modelName(fields: Fields): string {
  const model = fields.model;
  if (model === undefined) throw new BadField('model', 'a model must be named');
  if (typeof model !== 'string' || model === '' || model.length > MODEL_LENGTH_MAX) {
    throw new BadField('model', `must be a string of 1 to ${MODEL_LENGTH_MAX} characters`);
  }
  return model;
}

function flag(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') throw new BadField(name, 'must be true or false');
  return value;
}

/** A count of things; 0 when absent. */
function count(fields: Fields, name: string): number {
  const value = fields[name];
  if (value === undefined || value === null) return 0;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    throw new BadField(name, 'must be a whole number that is not negative');
  }
  return Math.min(value, COUNT_MAX);
}

/** Pixels of `WIDTHxHEIGHT`; 0 for `auto` and absent. */
function pixelsOf(size: unknown): number {
  if (size === undefined || size === null || size === 'auto') return 0;
  const match = typeof size === 'string' ? /^(\d{1,5})x(\d{1,5})$/.exec(size) : null;
  const pixels = match === null ? 0 : Number(match[1]) * Number(match[2]);
  if (pixels === 0) {
    const given = typeof size === 'string' ? `, not ${quoted(size)}` : '';
    throw new BadField('size', `must be WIDTHxHEIGHT or auto${given}`);
  }
  return pixels;
}

/** Bytes of an embedded image or sound, which are not prompt text; a remote URL counts as text. */
function mediaLength(media: unknown): number {
  const payload = isObject(media) ? (media.url ?? media.data) : media;
  return typeof payload === 'string' && payload.length > 1_024 ? payload.length : 0;
}

function asksForSchema(format: unknown): boolean {
  return isObject(format) && format.type === 'json_schema';
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
