/**
 * An engine's load from its metrics page, through lists of names: the same quantity has other names in other
 * versions and engines. What no name matches stays unknown.
 */
import type { EngineAccount } from '../../ports/engine-driver.ts';
import { firstOf, readSamples, type Samples } from './prometheus-text.ts';
import type { SmallAnswer } from './small-get.ts';

/** Newest name first. */
export interface LoadNames {
  readonly running: readonly string[];
  readonly waiting: readonly string[];
  readonly cacheUse: readonly string[];
  /** Counters of the prefix cache; `prefixHitRatio` where the engine tells only that. */
  readonly prefixQueries?: readonly string[];
  readonly prefixHits?: readonly string[];
  readonly prefixHitRatio?: readonly string[];
}

/** Of servers that look like vLLM: itself, SGLang, Text Generation Inference. */
export const VLLM_NAMES: LoadNames = {
  running: [
    'vllm:num_requests_running',
    'vllm_num_requests_running',
    'sglang:num_running_reqs',
    'tgi_batch_current_size',
  ],
  waiting: [
    'vllm:num_requests_waiting',
    'vllm_num_requests_waiting',
    'sglang:num_queue_reqs',
    'tgi_queue_size',
  ],
  cacheUse: [
    'vllm:kv_cache_usage_perc',
    'vllm:gpu_cache_usage_perc',
    'vllm_gpu_cache_usage_perc',
    'sglang:token_usage',
  ],
  prefixQueries: [
    'vllm:prefix_cache_queries_total',
    'vllm:prefix_cache_queries',
    'vllm:gpu_prefix_cache_queries_total',
  ],
  prefixHits: ['vllm:prefix_cache_hits_total', 'vllm:prefix_cache_hits', 'vllm:gpu_prefix_cache_hits_total'],
  prefixHitRatio: ['vllm:gpu_prefix_cache_hit_rate', 'sglang:cache_hit_rate'],
};

export const LLAMA_NAMES: LoadNames = {
  running: ['llamacpp:requests_processing'],
  waiting: ['llamacpp:requests_deferred'],
  cacheUse: ['llamacpp:kv_cache_usage_ratio'],
};

/** Undefined when the page says nothing of the load. */
export function readingOf(answer: SmallAnswer, names: LoadNames): EngineAccount | undefined {
  if (answer.kind !== 'answer' || answer.status !== 200) return undefined;
  const wanted = new Set(Object.values(names).flat());
  const samples = readSamples(answer.body, wanted);
  const running = sumOf(samples, names.running);
  const waiting = sumOf(samples, names.waiting);
  const cacheUse = worstRatioOf(samples, names.cacheUse);
  if (running === undefined && waiting === undefined && cacheUse === undefined) return undefined;
  return {
    ...(running === undefined ? {} : { running }),
    ...(waiting === undefined ? {} : { waiting }),
    ...(cacheUse === undefined ? {} : { cacheUse }),
    ...prefixOf(samples, names),
  };
}

/** Beside the load, never instead of it. */
function prefixOf(samples: Samples, names: LoadNames): Partial<EngineAccount> {
  const prefixQueries = sumOf(samples, names.prefixQueries ?? []);
  const prefixHits = sumOf(samples, names.prefixHits ?? []);
  const prefixHitRatio = meanRatioOf(samples, names.prefixHitRatio ?? []);
  return {
    ...(prefixQueries === undefined ? {} : { prefixQueries }),
    ...(prefixHits === undefined ? {} : { prefixHits }),
    ...(prefixHitRatio === undefined ? {} : { prefixHitRatio }),
  };
}

/** Replicas of one engine add up. */
function sumOf(samples: Samples, names: readonly string[]): number | undefined {
  const found = firstOf(samples, names);
  if (found === undefined || found.some((value) => value < 0)) return undefined;
  return Math.round(found.reduce((sum, value) => sum + value, 0));
}

/** The fullest replica decides. The names say `perc`, the values are ratios; anything else is not understood. */
function worstRatioOf(samples: Samples, names: readonly string[]): number | undefined {
  const found = firstOf(samples, names);
  if (found === undefined || found.some((value) => value < 0 || value > 1)) return undefined;
  return Math.max(...found);
}

/** A rough one over replicas: which of them had how many prompts is not told beside it. */
function meanRatioOf(samples: Samples, names: readonly string[]): number | undefined {
  const found = firstOf(samples, names);
  if (found === undefined || found.some((value) => value < 0 || value > 1)) return undefined;
  return found.reduce((sum, value) => sum + value, 0) / found.length;
}
