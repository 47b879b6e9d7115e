/**
 * One generation on one sequence: tokens in, text pieces out. The sequences share a context, and the engine evaluates
 * all running ones in one batch per step (continuous batching).
 */
import type { Model, Sequence, Token } from './binding.ts';
import type { GenerateRequest } from './request.ts';

export interface GenerationEnd {
  readonly completionTokens: number;
  readonly finish: 'stop' | 'length' | 'aborted';
}

/** Bytes of one character may come as several tokens; more than this many undecodable ones are given out as they are. */
const UNDECODED_TOKENS_MAX = 8;

export interface Generation {
  readonly model: Model;
  readonly sequence: Sequence;
  readonly promptTokens: readonly Token[];
  readonly request: GenerateRequest;
  /** Most tokens that still fit into the sequence. */
  readonly tokensMax: number;
  readonly signal: AbortSignal;
  readonly onText: (text: string) => void;
  readonly onToken: () => void;
}

/** Ends within one evaluation step after `signal` aborts; the sequence is then free for the next request. */
export async function generate(generation: Generation): Promise<GenerationEnd> {
  const { request, sequence, signal } = generation;
  await sequence.clearHistory();
  const writer = createStopWriter(request.stop, generation.onText);
  const decoder = createDecoder(generation.model);
  const options = {
    temperature: request.temperature,
    ...(request.topP === undefined ? {} : { topP: request.topP }),
    ...(request.seed === undefined ? {} : { seed: request.seed }),
  };
  let completionTokens = 0;
  // The generator ends by itself at an end token; returning out of the loop cancels what is pending.
  for await (const token of sequence.evaluate(generation.promptTokens, options)) {
    if (signal.aborted) return { completionTokens, finish: 'aborted' };
    completionTokens += 1;
    generation.onToken();
    if (writer.write(decoder(token))) return { completionTokens, finish: 'stop' };
    if (completionTokens >= generation.tokensMax) {
      writer.flush();
      return { completionTokens, finish: 'length' };
    }
  }
  writer.flush();
  return { completionTokens, finish: 'stop' };
}

/** Turns tokens into text as soon as the text is whole characters. */
function createDecoder(model: Model): (token: Token) => string {
  let context: Token[] = [];
  let pending: Token[] = [];
  return (token) => {
    pending.push(token);
    const text = model.detokenize(pending, false, context);
    if (text.endsWith('\uFFFD') && pending.length < UNDECODED_TOKENS_MAX) return '';
    context = pending;
    pending = [];
    return text;
  };
}

export interface StopWriter {
  /** True once a stop text has appeared; what came before it has then been written. */
  write(text: string): boolean;
  flush(): void;
}

/** Holds back as much text as could be the beginning of a stop text. */
export function createStopWriter(stops: readonly string[], sink: (text: string) => void): StopWriter {
  const heldMax = Math.max(0, ...stops.map((stop) => stop.length - 1));
  let held = '';
  const emit = (text: string): void => {
    if (text !== '') sink(text);
  };
  return {
    write: (text) => {
      held += text;
      const found = stops.map((stop) => held.indexOf(stop)).filter((index) => index >= 0);
      if (found.length > 0) {
        emit(held.slice(0, Math.min(...found)));
        held = '';
        return true;
      }
      emit(held.slice(0, Math.max(0, held.length - heldMax)));
      held = heldMax === 0 ? '' : held.slice(-heldMax);
      return false;
    },
    flush: () => {
      emit(held);
      held = '';
    },
  };
}
