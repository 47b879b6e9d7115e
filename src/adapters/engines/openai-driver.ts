/**
 * Any server that speaks the OpenAI wire: Ollama, SGLang, TEI, LM Studio, a cloud. It is asked for its model list
 * and nothing else, so any answer is life: 401 and 404 mean that it keeps the list to itself, 429 and 503 that it is
 * busy or loading.
 *
 * Abort: closing the connection frees the slot. True for Ollama and SGLang; a server that computes on regardless
 * ends soon enough for its own queue to show it, and its rate is measured with that.
 */
import type { EngineDriver, EngineProbe } from '../../ports/engine-driver.ts';
import { modelsOf } from './model-list.ts';
import { type SmallAnswer, smallGet } from './small-get.ts';

export const MODELS_PATH = '/v1/models';

export function createOpenAiDriver(): EngineDriver {
  return {
    protocol: 'openai',
    batching: false,
    abortFreesSlot: true,
    async probe(endpoint, timeoutMs) {
      const answer = await smallGet(endpoint, MODELS_PATH, timeoutMs);
      const life = lifeOf(answer);
      const models = modelsOf(answer);
      return models === undefined ? life : { ...life, models };
    },
  };
}

/** Life by one answer: busy and loading are alive; ready is what would take work now. */
export function lifeOf(answer: SmallAnswer): EngineProbe {
  if (answer.kind === 'nothing') {
    const dead = { alive: false, ready: false, detail: answer.detail };
    return answer.silent ? { ...dead, silent: true } : dead;
  }
  if (answer.kind === 'unreadable') return { alive: true, ready: false, detail: answer.detail };
  return {
    alive: true,
    ready: answer.status < 500 && answer.status !== 429,
    detail: `HTTP ${answer.status}`,
  };
}
