/** The OpenAI model list as engines serve it, with the context lengths that some of them add. */
import type { ModelOffer } from '../../core/request/needs.ts';
import { arrayIn, countIn, parseJson, recordIn, textIn } from './read-json.ts';
import type { SmallAnswer } from './small-get.ts';

/** Models taken from one engine, and the longest name taken. */
const MODELS_MAX = 1_000;
const NAME_CHARS_MAX = 256;

/** Undefined when the answer is not a model list; an empty list is an answer: the engine serves nothing. */
export function modelsOf(answer: SmallAnswer): readonly ModelOffer[] | undefined {
  if (answer.kind !== 'answer' || answer.status !== 200) return undefined;
  const rows = arrayIn(recordIn(parseJson(answer.body))?.['data']);
  if (rows === undefined) return undefined;
  const offers = new Map<string, ModelOffer>();
  for (const value of rows) {
    const row = recordIn(value);
    const model = textIn(row?.['id']);
    if (
      row === undefined ||
      model === undefined ||
      model.length > NAME_CHARS_MAX ||
      offers.size >= MODELS_MAX
    )
      continue;
    const contextTokensMax = contextOf(row);
    offers.set(model, contextTokensMax === undefined ? { model } : { model, contextTokensMax });
  }
  // Sorted, so that an engine that lists in another order has not changed.
  return [...offers.values()].sort((a, b) => (a.model < b.model ? -1 : 1));
}

/** Who serves the first model: engines put their name there. */
export function ownerOf(answer: SmallAnswer): string {
  if (answer.kind !== 'answer' || answer.status !== 200) return '';
  const rows = arrayIn(recordIn(parseJson(answer.body))?.['data']);
  return textIn(recordIn(rows?.[0])?.['owned_by']) ?? '';
}

/** vLLM and SGLang: `max_model_len`. llama.cpp: `meta.n_ctx` where it is the running length, never the trained one. */
function contextOf(row: Readonly<Record<string, unknown>>): number | undefined {
  return countIn(row['max_model_len']) ?? countIn(recordIn(row['meta'])?.['n_ctx']);
}
