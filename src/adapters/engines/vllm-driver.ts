/**
 * vLLM. `/health` tells whether the engine lives (503 when its core died), `/v1/models` what it serves and how long
 * a context may be, `/metrics` what runs, what waits and how full the cache is. Room is by readings: it batches.
 *
 * Abort: closing the connection aborts the sequence and frees its cache at the next step.
 * Source: vLLM's server and metrics documentation.
 */
import type { EngineDriver } from '../../ports/engine-driver.ts';
import { readingOf, VLLM_NAMES } from './load-reading.ts';
import { modelsOf } from './model-list.ts';
import { lifeOf, MODELS_PATH } from './openai-driver.ts';
import { smallGet } from './small-get.ts';

const METRICS_PATH = '/metrics';

export function createVllmDriver(): EngineDriver {
  return {
    protocol: 'vllm',
    batching: true,
    abortFreesSlot: true,
    async probe(endpoint, timeoutMs) {
      const [health, list, metrics] = await Promise.all([
        smallGet(endpoint, '/health', timeoutMs),
        smallGet(endpoint, MODELS_PATH, timeoutMs),
        smallGet(endpoint, METRICS_PATH, timeoutMs),
      ]);
      // An engine that serves its list lives, even if a proxy hides its health page.
      const life = health.kind === 'nothing' ? lifeOf(list) : lifeOf(health);
      const models = modelsOf(list);
      const reading = readingOf(metrics, VLLM_NAMES);
      return {
        ...life,
        ...(models === undefined ? {} : { models }),
        ...(reading === undefined ? {} : { reading }),
      };
    },
    async read(endpoint, timeoutMs) {
      return readingOf(await smallGet(endpoint, METRICS_PATH, timeoutMs), VLLM_NAMES);
    },
  };
}
