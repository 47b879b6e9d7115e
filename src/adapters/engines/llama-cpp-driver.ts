/**
 * llama.cpp's server. `/health` answers 503 while it loads its model: alive, not ready. `/props` tells the number of
 * slots, `/slots` which of them work, `/metrics` what runs and what is deferred; the last two may be switched off
 * (501), and then the load is unknown.
 *
 * Abort: closing the connection ends the task at its next token and frees the slot; a prompt that is being read in
 * ends at the end of its batch.
 * Source: the server's README.
 */
import type { EngineAccount, EngineDriver } from '../../ports/engine-driver.ts';
import type { NodeEndpoint } from '../../ports/node-transport.ts';
import { LLAMA_NAMES, readingOf } from './load-reading.ts';
import { modelsOf } from './model-list.ts';
import { lifeOf, MODELS_PATH } from './openai-driver.ts';
import { arrayIn, countIn, parseJson, recordIn } from './read-json.ts';
import { type SmallAnswer, smallGet } from './small-get.ts';

export function createLlamaCppDriver(): EngineDriver {
  return {
    protocol: 'llama.cpp',
    batching: false,
    abortFreesSlot: true,
    async probe(endpoint, timeoutMs) {
      const [health, list, props, reading] = await Promise.all([
        smallGet(endpoint, '/health', timeoutMs),
        smallGet(endpoint, MODELS_PATH, timeoutMs),
        smallGet(endpoint, '/props', timeoutMs),
        readLoad(endpoint, timeoutMs),
      ]);
      const life = health.kind === 'nothing' ? lifeOf(list) : lifeOf(health);
      const models = modelsOf(list);
      const slots = slotsOf(props);
      return {
        ...life,
        ...(models === undefined ? {} : { models }),
        ...(slots === undefined ? {} : { slots }),
        ...(reading === undefined ? {} : { reading }),
      };
    },
    read: readLoad,
  };
}

async function readLoad(endpoint: NodeEndpoint, timeoutMs: number): Promise<EngineAccount | undefined> {
  const [metrics, slots] = await Promise.all([
    smallGet(endpoint, '/metrics', timeoutMs),
    smallGet(endpoint, '/slots', timeoutMs),
  ]);
  return readingOf(metrics, LLAMA_NAMES) ?? busySlotsOf(slots);
}

function slotsOf(answer: SmallAnswer): number | undefined {
  if (answer.kind !== 'answer' || answer.status !== 200) return undefined;
  return countIn(recordIn(parseJson(answer.body))?.['total_slots']);
}

function busySlotsOf(answer: SmallAnswer): EngineAccount | undefined {
  if (answer.kind !== 'answer' || answer.status !== 200) return undefined;
  const rows = arrayIn(parseJson(answer.body))?.map(recordIn);
  if (rows === undefined || rows.some((row) => typeof row?.['is_processing'] !== 'boolean')) return undefined;
  return { running: rows.filter((row) => row?.['is_processing'] === true).length };
}
