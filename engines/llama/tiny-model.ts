/**
 * A tiny model of the llama architecture with seeded random weights. The engine that runs it is real (batching, cache,
 * sampling, cancel); the text is meaningless, and its name says so.
 *
 * One trick: the first value of every embedding is a large constant that the residual stream carries to the output,
 * and the output row of each token that must not be spoken (end, unknown, raw bytes) has a large negative first
 * value. So every answer runs to its token limit or a stop text, which makes lengths exact in tests.
 */
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { encodeGguf, type MetadataValue, type Tensor } from './gguf.ts';

export interface TinyModelShape {
  readonly embedding: number;
  readonly layers: number;
  readonly heads: number;
  readonly feedForward: number;
  /** Longest sequence the model says it was trained for. */
  readonly contextTokens: number;
  readonly seed: number;
}

/** About 8 million weights: some milliseconds a token on one core, so that overlap and abort can be seen. */
const TINY_SHAPE: TinyModelShape = {
  embedding: 320,
  layers: 6,
  heads: 8,
  feedForward: 896,
  contextTokens: 8192,
  seed: 7,
};

const UNKNOWN = 0;
const BEGIN = 1;
const END = 2;
/** Token types of the specification. */
const TOKEN_TYPE = { normal: 1, unknown: 2, control: 3, byte: 6 } as const;
const CARRIER = 4;
const SILENCE = -8;
const WORDS =
  'the of and to in a is that it was for on are as with his they at be this from have or by one had not but what ' +
  'all were when we there can an your which their said if do will each about how up out them then she many some ' +
  'so these would other into has more her two like him see time could no make than first been its who now people ' +
  'my made over did down only way find use may water long little very after words called just where most know';

/** Plain blocks; the engine renders it with the library that real chat templates use. */
const CHAT_TEMPLATE: string =
  "{% for message in messages %}{{ '[' + message.role + '] ' + message.content + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '[assistant] ' }}{% endif %}";

interface Vocabulary {
  readonly tokens: readonly string[];
  readonly scores: readonly number[];
  readonly types: readonly number[];
}

/** SentencePiece-like: control tokens, all bytes as fallback, printable characters, words with a leading space mark. */
export function tinyVocabulary(): Vocabulary {
  const tokens = ['<unk>', '<s>', '</s>'];
  const types: number[] = [TOKEN_TYPE.unknown, TOKEN_TYPE.control, TOKEN_TYPE.control];
  for (let byte = 0; byte < 256; byte++) {
    tokens.push(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
    types.push(TOKEN_TYPE.byte);
  }
  const pieces = new Set<string>(['\u2581']);
  for (let code = 0x21; code < 0x7f; code++) pieces.add(String.fromCharCode(code));
  for (const word of WORDS.split(' ')) {
    // The tokenizer merges pairs, so each prefix must be a piece or the word is never reached.
    for (let length = 1; length <= word.length; length++) pieces.add(`\u2581${word.slice(0, length)}`);
  }
  for (const piece of pieces) {
    tokens.push(piece);
    types.push(TOKEN_TYPE.normal);
  }
  // A longer piece wins over a shorter one: its score is higher.
  const scores = tokens.map((token, id) => (types[id] === TOKEN_TYPE.normal ? token.length - 100 : 0));
  return { tokens, scores, types };
}

function metadataOf(shape: TinyModelShape, vocabulary: Vocabulary): Map<string, MetadataValue> {
  const number = (value: number): MetadataValue => ({ type: 'uint32', value });
  return new Map<string, MetadataValue>([
    ['general.architecture', { type: 'string', value: 'llama' }],
    ['general.name', { type: 'string', value: 'Spillway tiny (random weights, text is meaningless)' }],
    ['general.file_type', number(0)],
    ['llama.context_length', number(shape.contextTokens)],
    ['llama.embedding_length', number(shape.embedding)],
    ['llama.block_count', number(shape.layers)],
    ['llama.feed_forward_length', number(shape.feedForward)],
    ['llama.attention.head_count', number(shape.heads)],
    ['llama.attention.head_count_kv', number(shape.heads)],
    ['llama.attention.layer_norm_rms_epsilon', { type: 'float32', value: 1e-5 }],
    ['llama.rope.dimension_count', number(shape.embedding / shape.heads)],
    ['llama.vocab_size', number(vocabulary.tokens.length)],
    ['tokenizer.ggml.model', { type: 'string', value: 'llama' }],
    ['tokenizer.ggml.tokens', { type: 'strings', value: vocabulary.tokens }],
    ['tokenizer.ggml.scores', { type: 'float32s', value: vocabulary.scores }],
    ['tokenizer.ggml.token_type', { type: 'int32s', value: vocabulary.types }],
    ['tokenizer.ggml.unknown_token_id', number(UNKNOWN)],
    ['tokenizer.ggml.bos_token_id', number(BEGIN)],
    ['tokenizer.ggml.eos_token_id', number(END)],
    ['tokenizer.ggml.add_bos_token', { type: 'bool', value: true }],
    ['tokenizer.ggml.add_eos_token', { type: 'bool', value: false }],
    ['tokenizer.chat_template', { type: 'string', value: CHAT_TEMPLATE }],
  ]);
}

function tensorsOf(shape: TinyModelShape, vocabulary: Vocabulary): Tensor[] {
  const draw = uniformSource(shape.seed);
  const width = shape.embedding;
  const matrix = (name: string, columns: number, rows: number, gain: number): Tensor => {
    const values = new Float32Array(columns * rows);
    const bound = gain * Math.sqrt(3 / columns);
    for (let index = 0; index < values.length; index++) values[index] = bound * (2 * draw() - 1);
    return { name, dimensions: [columns, rows], values };
  };
  const ones = (name: string): Tensor => ({
    name,
    dimensions: [width],
    values: new Float32Array(width).fill(1),
  });
  const vocabularySize = vocabulary.tokens.length;
  const embedding = matrix('token_embd.weight', width, vocabularySize, Math.sqrt(width));
  const output = matrix('output.weight', width, vocabularySize, 3);
  for (let id = 0; id < vocabularySize; id++) {
    embedding.values[id * width] = CARRIER;
    output.values[id * width] = vocabulary.types[id] === TOKEN_TYPE.normal ? 0 : SILENCE;
  }
  const tensors = [embedding, ones('output_norm.weight'), output];
  for (let layer = 0; layer < shape.layers; layer++) {
    const name = (part: string): string => `blk.${layer}.${part}.weight`;
    tensors.push(
      ones(name('attn_norm')),
      matrix(name('attn_q'), width, width, 1),
      matrix(name('attn_k'), width, width, 1),
      matrix(name('attn_v'), width, width, 1),
      silenceCarrier(matrix(name('attn_output'), width, width, 0.5)),
      ones(name('ffn_norm')),
      matrix(name('ffn_gate'), width, shape.feedForward, 1),
      matrix(name('ffn_up'), width, shape.feedForward, 1),
      silenceCarrier(matrix(name('ffn_down'), shape.feedForward, width, 0.5)),
    );
  }
  return tensors;
}

/** Row 0 writes to the carrier: zeros keep it constant through all layers. */
function silenceCarrier(tensor: Tensor): Tensor {
  tensor.values.fill(0, 0, tensor.dimensions[0] ?? 0);
  return tensor;
}

/** Uniform in [0, 1), 32-bit state: the same file on every machine. */
function uniformSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function encodeTinyModel(shape: TinyModelShape): Buffer {
  const vocabulary = tinyVocabulary();
  return encodeGguf(metadataOf(shape, vocabulary), tensorsOf(shape, vocabulary));
}

/** Writes the model unless it is there; whole or not at all, also when two engines start at once. */
export function ensureTinyModel(path: string): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  const partial = `${path}.${process.pid}.part`;
  writeFileSync(partial, encodeTinyModel(TINY_SHAPE));
  renameSync(partial, path);
}
