/**
 * Language models. `large` is Llama-2-70B in fp16 over four cards, `small` a model of 7 to 8 billion parameters in fp16 on
 * one, whether or not it fits the memory of every card that is listed.
 *
 * Decoding reads all weights once per step: where nobody measured a card, a step goes with the inverse of its memory
 * bandwidth. Prompts compute: theirs goes with the inverse of the dense fp16 rate. What a further sequence costs, where
 * only single streams were measured, is in the proportion to a prompt's token that it has on the RTX 4090 (0.27).
 */
import type { TextModel } from './service-time.ts';
import type { Derivation, Sourced } from './sourced.ts';

const SPLITWISE = 'Mutinifni/splitwise-sim, data/perf_model.csv: tensor parallel over 4';
const VIDUR = 'microsoft/vidur, data/profiling: steps without attention';
const LLAMA_BENCH =
  'XiongjieDai/GPU-Benchmarks-on-LLM-Inference, README.md: llama.cpp, LLaMA 3 8B F16, one stream';

const A100_LARGE: TextModel = {
  stepMs: 43.4,
  perSequenceMs: 0.215,
  perContextTokenMs: 0.0004,
  prefillMsPerToken: 0.332,
};

function byBandwidth(times: number, ratio: string): Sourced<TextModel> {
  return {
    model: {
      stepMs: A100_LARGE.stepMs * times,
      perSequenceMs: A100_LARGE.perSequenceMs * times,
      perContextTokenMs: A100_LARGE.perContextTokenMs * times,
      prefillMsPerToken: A100_LARGE.prefillMsPerToken * times,
    },
    derivation: 'scaled',
    uncertainty: 0.5,
    source: `${SPLITWISE}; the A100 by bandwidth, ${ratio} TB/s`,
  };
}

export const LARGE_TEXT_ROWS: Readonly<Record<string, Sourced<TextModel>>> = {
  T4: byBandwidth(2.0 / 0.32, '2.0 / 0.32'),
  V100: byBandwidth(2.0 / 0.9, '2.0 / 0.9'),
  'A100-40': {
    model: A100_LARGE,
    derivation: 'stand-in',
    uncertainty: 0.5,
    source: `${SPLITWISE}; measured on the 80 GB card, whose memory is 1.3 times as fast; prompts taken as linear`,
  },
  'A100-80': {
    model: {
      ...A100_LARGE,
      prompt: { floorMs: 66.6, fixedMs: 23.7, perTokenMs: 0.2055, perLongTokenMs: 0.1247 },
    },
    derivation: 'fitted',
    uncertainty: 0.15,
    source: SPLITWISE,
  },
  H100: {
    model: {
      stepMs: 28.8,
      perSequenceMs: 0.29,
      perContextTokenMs: 0.0001,
      prefillMsPerToken: 0.107,
      prompt: { floorMs: 51.6, fixedMs: 14.8, perTokenMs: 0.0906, perLongTokenMs: 0.022 },
    },
    derivation: 'fitted',
    uncertainty: 0.15,
    source: SPLITWISE,
  },
};

function small(
  [stepMs, perSequenceMs, perContextTokenMs, prefillMsPerToken]: readonly [number, number, number, number],
  derivation: Derivation,
  { uncertainty, source }: { readonly uncertainty: number; readonly source: string },
): Sourced<TextModel> {
  return {
    model: { stepMs, perSequenceMs, perContextTokenMs, prefillMsPerToken },
    derivation,
    uncertainty,
    source,
  };
}

/** From slow to fast. */
export const SMALL_TEXT_ROWS: Readonly<Record<string, Sourced<TextModel>>> = {
  T4: small([64, 0.14, 0.0006, 0.32], 'scaled', {
    uncertainty: 0.5,
    source: 'the row of the A100-80: steps by bandwidth 2.0 / 0.32 TB/s, prompts by 312 / 65 TFLOP/s',
  }),
  'M1-Max': small([52.5, 0.65, 0.0034, 2.4], 'measured', {
    uncertainty: 0.3,
    source: `${LLAMA_BENCH}: 18.75 and 15.03 tokens/s over 512 and 8,192, prompts 419 tokens/s`,
  }),
  A10: small([29.9, 0.053, 0.0003, 0.15], 'scaled', {
    uncertainty: 0.3,
    source: `${VIDUR}, Llama-2-7B on the A40; by bandwidth 696 / 600 GB/s and compute 150 / 125 TFLOP/s`,
  }),
  'M2-Ultra': small([26.7, 0.23, 0.0014, 0.84], 'measured', {
    uncertainty: 0.3,
    source: `${LLAMA_BENCH}: 76 cores, 36.90 and 30.68 tokens/s over 512 and 8,192, prompts 1,194 tokens/s`,
  }),
  V100: small([22.9, 0.072, 0.0002, 0.168], 'scaled', {
    uncertainty: 0.4,
    source: 'the row of the A100-80: steps by bandwidth 2.0 / 0.9 TB/s, prompts by 312 / 125 TFLOP/s',
  }),
  'RTX-3090': small([20.9, 0.06, 0.0006, 0.225], 'measured', {
    uncertainty: 0.25,
    source: `${LLAMA_BENCH}: 47.40 and 42.62 tokens/s over 512 and 8,192, prompts 4,445 tokens/s`,
  }),
  'RTX-4090': small([17.3, 0.03, 0.00013, 0.11], 'fitted', {
    uncertainty: 0.2,
    source:
      'mushfiqrahman.dev, vLLM with Mistral-7B, 256 tokens in and 100 out: 2.09, 3.78, 6.44, 9.73, 11.87 requests/s at 4 to 48 at once',
  }),
  'A100-40': small([13.3, 0.029, 0.00011, 0.0672], 'measured', {
    uncertainty: 0.25,
    source: `vLLM with Llama-3.1-8B: 75 tokens/s for one stream; further sequences and prompts of ${VIDUR}`,
  }),
  'A100-80': small([10.3, 0.029, 0.00009, 0.0672], 'fitted', {
    uncertainty: 0.2,
    source: `${VIDUR}, Llama-3-8B on the A100, and half a millisecond on the host`,
  }),
  H100: small([6.5, 0.012, 0.00005, 0.0243], 'fitted', {
    uncertainty: 0.25,
    source: `vLLM with Llama-3.1-8B: 6.5 ms a token for one stream; the rest of ${VIDUR}, Llama-2-7B by parameters`,
  }),
};
