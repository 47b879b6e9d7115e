/** Bytes that an emulated node answers with. Each says that it is emulated. */
import { crc32, deflateSync } from 'node:zlib';
import type { Ratio, Tokens } from '../base/units.ts';
import type { ImageSize } from '../hardware/service-time.ts';
import type { EmulatedNodeSpec } from './spec.ts';

const WORDS = ['This ', 'text ', 'is ', 'emulated: ', 'no ', 'model ', 'wrote ', 'it. '];

/** A picture of one grey pixel whose comment says what it is: a bounded stand-in for images of any size. */
const PIXEL_B64 = emulatedPng('emulated image: no model drew it').toString('base64');

function emulatedPng(comment: string): Buffer {
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    pngChunk('IHDR', header),
    pngChunk('tEXt', Buffer.from(`Comment\0${comment}`, 'latin1')),
    pngChunk('IDAT', deflateSync(Buffer.from([0, 128]))),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(content.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

export function ownedBy(spec: EmulatedNodeSpec): string {
  return `emulated ${spec.statedHardware}`;
}

export function modelsReply(spec: EmulatedNodeSpec): string {
  const ids = spec.distilled === undefined ? [spec.model] : [spec.model, spec.distilled.model];
  const data = ids.map((id) => ({
    id,
    object: 'model',
    created: 0,
    owned_by: ownedBy(spec),
    emulated: true,
  }));
  return JSON.stringify({ object: 'list', data });
}

/** `serviceMs` and `queuedMs` are wall times on this node, so that a client can tell waiting from service; `steps` is what was done. */
export function imagesReply(
  spec: EmulatedNodeSpec,
  { images, steps }: ImageSize,
  times: { queuedMs: number; serviceMs: number },
): string {
  const image = `{"b64_json":"${PIXEL_B64}"}`;
  const images64 = images === 1 ? image : new Array<string>(images).fill(image).join(',');
  const emulated = `{"hardware":"${spec.statedHardware}","steps":${steps},"queuedMs":${times.queuedMs.toFixed(2)},"serviceMs":${times.serviceMs.toFixed(2)}}`;
  return `{"created":0,"data":[${images64}],"emulated":${emulated}}`;
}

export interface TextReply {
  readonly id: string;
  readonly model: string;
  readonly chat: boolean;
}

export function tokenText(index: number): string {
  return WORDS[index % WORDS.length] as string;
}

function frame(reply: TextReply, choice: string, rest: string): string {
  const object = reply.chat ? 'chat.completion.chunk' : 'text_completion';
  return `data: {"id":"${reply.id}","object":"${object}","created":0,"model":${JSON.stringify(reply.model)},"choices":[${choice}]${rest}}\n\n`;
}

export function sseTokens(reply: TextReply, from: number, count: number): string {
  let text =
    from === 0 && reply.chat ? frame(reply, '{"index":0,"delta":{"role":"assistant","content":""}}', '') : '';
  for (let index = from; index < from + count; index += 1) {
    const piece = JSON.stringify(tokenText(index));
    const choice = reply.chat
      ? `{"index":0,"delta":{"content":${piece}},"finish_reason":null}`
      : `{"index":0,"text":${piece},"finish_reason":null}`;
    text += frame(reply, choice, '');
  }
  return text;
}

function usageOf(promptTokens: Tokens, outputTokens: Tokens): string {
  return `{"prompt_tokens":${promptTokens},"completion_tokens":${outputTokens},"total_tokens":${promptTokens + outputTokens}}`;
}

export function sseEnd(
  reply: TextReply,
  end: { promptTokens: Tokens; outputTokens: Tokens; reason: string; includeUsage: boolean },
): string {
  const choice = reply.chat
    ? `{"index":0,"delta":{},"finish_reason":"${end.reason}"}`
    : `{"index":0,"text":"","finish_reason":"${end.reason}"}`;
  const usage = end.includeUsage
    ? frame(reply, '', `,"usage":${usageOf(end.promptTokens, end.outputTokens)}`)
    : '';
  return `${frame(reply, choice, '')}${usage}data: [DONE]\n\n`;
}

export function textReply(
  reply: TextReply,
  end: { promptTokens: Tokens; outputTokens: Tokens; reason: string },
): string {
  let text = '';
  for (let index = 0; index < end.outputTokens; index += 1) text += tokenText(index);
  const content = JSON.stringify(text);
  const choice = reply.chat
    ? `{"index":0,"message":{"role":"assistant","content":${content}},"finish_reason":"${end.reason}"}`
    : `{"index":0,"text":${content},"finish_reason":"${end.reason}"}`;
  const object = reply.chat ? 'chat.completion' : 'text_completion';
  const usage = usageOf(end.promptTokens, end.outputTokens);
  return `{"id":"${reply.id}","object":"${object}","created":0,"model":${JSON.stringify(reply.model)},"choices":[${choice}],"usage":${usage},"emulated":true}`;
}

/** Load readings under the names that vLLM uses. */
export function metricsReply(
  model: string,
  load: { running: number; waiting: number; cacheUse: number },
): string {
  const labels = `{model_name=${JSON.stringify(model)},emulated="1"}`;
  return [
    '# Emulated: these readings describe no real accelerator.',
    '# TYPE vllm:num_requests_running gauge',
    `vllm:num_requests_running${labels} ${load.running}`,
    '# TYPE vllm:num_requests_waiting gauge',
    `vllm:num_requests_waiting${labels} ${load.waiting}`,
    '# TYPE vllm:kv_cache_usage_perc gauge',
    `vllm:kv_cache_usage_perc${labels} ${load.cacheUse.toFixed(4)}`,
    '',
  ].join('\n');
}

const DEVICE_MEMORY_MIB = 81_920;

/** The memory of one accelerator under the names of NVIDIA's exporter (DCGM). */
export function deviceReply(memoryUse: Ratio): string {
  const used = Math.round(DEVICE_MEMORY_MIB * memoryUse);
  return [
    '# Emulated: these readings describe no real accelerator.',
    '# TYPE DCGM_FI_DEV_FB_USED gauge',
    `DCGM_FI_DEV_FB_USED{gpu="0",emulated="1"} ${used}`,
    '# TYPE DCGM_FI_DEV_FB_FREE gauge',
    `DCGM_FI_DEV_FB_FREE{gpu="0",emulated="1"} ${DEVICE_MEMORY_MIB - used}`,
    '',
  ].join('\n');
}

export function errorReply(message: string, type: string): string {
  return JSON.stringify({ error: { message: `Emulated node: ${message}`, type, param: null, code: null } });
}
