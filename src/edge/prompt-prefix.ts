/**
 * How a prompt begins, in numbers: its bytes as they came, in blocks of equal size, each with a hash that covers all
 * before it, the model and the tenant. Two turns of a conversation begin with the same bytes, since clients repeat what was
 * said; how a tokenizer cuts them does not matter. What does not fill a block is left out.
 *
 * The tenant salts the hash: what one tenant's prompts begin with says nothing of another's, and engines that share between
 * tenants are followed only as far as each tenant's own requests go.
 *
 * A hash has 53 bits, so that it is a number: two chains of 32 bits, mixed word by word (multiply and shift, as in MurmurHash3).
 * A collision sends a request to a node that does not keep its prompt, and costs what that saves.
 */
import type { Bytes } from '../base/units.ts';
import { PREFIX_BLOCKS_MAX } from '../core/request/index.ts';
import type { TaskPrefix } from '../core/request/task.ts';
import type { WorkEstimate } from '../core/scheduler/contract.ts';
import type { InferenceRequest } from './protocols/inference-request.ts';

/**
 * Part of the work that is the prompt's where the model's profile does not tell: small, so that little is waited for. Reading
 * 1,500 tokens takes a large model on the reference accelerator about a tenth of the time of answering with 200.
 */
const PROMPT_SHARE_UNKNOWN = 0.1;

export interface PromptPrefixOptions {
  readonly tenant: string;
  readonly model: string;
  readonly blockBytes: Bytes;
}

/** The prompt's blocks and what each is worth; undefined where the request has no prompt that fills one. */
export function promptPrefix(
  request: InferenceRequest,
  estimate: WorkEstimate,
  { tenant, model, blockBytes }: PromptPrefixOptions,
): TaskPrefix | undefined {
  if (request.body.length < blockBytes) return undefined;
  const prompt = request.promptText();
  if (prompt === undefined || prompt.length < blockBytes) return undefined;
  const blocks = hashBlocks(prompt, `${model}\n${tenant}`, blockBytes);
  const promptUs = estimate.promptWorkUs ?? estimate.workUs * PROMPT_SHARE_UNKNOWN;
  return { blocks, workUsPerBlock: Math.floor(promptUs * Math.min(1, blockBytes / prompt.length)) };
}

/** One number for each whole block, at most `PREFIX_BLOCKS_MAX`. */
export function hashBlocks(prompt: Buffer, salt: string, blockBytes: Bytes): readonly number[] {
  const salted = Buffer.from(salt);
  const chain = { high: 0x9747b28c, low: 0x3c6ef372 };
  mixAll(chain, salted, 0, salted.length);
  const count = Math.min(PREFIX_BLOCKS_MAX, Math.floor(prompt.length / blockBytes));
  const blocks: number[] = [];
  for (let at = 0; at < count; at++) {
    mixAll(chain, prompt, at * blockBytes, (at + 1) * blockBytes);
    blocks.push((chain.high >>> 11) * 2 ** 32 + (chain.low >>> 0));
  }
  return blocks;
}

interface Chain {
  high: number;
  low: number;
}

function mixAll(chain: Chain, bytes: Buffer, from: number, until: number): void {
  let { high, low } = chain;
  let at = from;
  for (; at + 4 <= until; at += 4) {
    const word =
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24);
    high = Math.imul(high ^ word, 0xcc9e2d51);
    high ^= high >>> 15;
    low = Math.imul(low + word, 0x85ebca6b);
    low ^= low >>> 13;
  }
  for (; at < until; at++) {
    high = Math.imul(high ^ (bytes[at] as number), 0x01000193);
    low = Math.imul(low + (bytes[at] as number), 0xc2b2ae35);
  }
  // Whatever was mixed last reaches all bits of both.
  high = Math.imul(high ^ (high >>> 16) ^ low, 0x1b873593);
  low = Math.imul(low ^ (low >>> 16) ^ high, 0xe6546b64);
  chain.high = high ^ (high >>> 13);
  chain.low = low ^ (low >>> 16);
}
