/**
 * The hardware catalogue: published service times of accelerators, each with where it is from, how it was derived and
 * how far off it may be. Nothing here was measured on the machine that this runs on.
 *
 * Images are Stable Diffusion 1 in fp16 under diffusers 0.11. Two sizes of language model: `large` is Llama-2-70B over
 * four cards, `small` a model of 7 to 8 billion parameters on one. Embeddings are an encoder of 335 million parameters.
 *
 * Where nobody published a number, the row of a measured card is scaled: decoding reads all weights once per step, so
 * its time goes with the inverse of the memory bandwidth; prefill, pictures and embeddings compute, so theirs go with the
 * inverse of the dense fp16 rate. Such rows say so and are less certain.
 */
import type { Ratio } from '../base/units.ts';
import type { EmbeddingModel, ImageModel, TextModel } from './service-time.ts';

export type Derivation =
  /** Taken from a table as it stands. */
  | 'measured'
  /** Least squares over published measurements of this card. */
  | 'fitted'
  /** Measurements of other hardware that delivers the same headline rate. */
  | 'stand-in'
  /** Another card's row times the ratio of memory bandwidths, or of compute rates. */
  | 'scaled';

export interface Sourced<Model> {
  readonly model: Model;
  readonly derivation: Derivation;
  /** Relative: the truth for the software that is named lies within this of the model, as far as can be told. */
  readonly uncertainty: Ratio;
  readonly source: string;
}

export interface CatalogueEntry {
  readonly name: string;
  readonly images?: Sourced<ImageModel>;
  readonly textLarge?: Sourced<TextModel>;
  readonly textSmall?: Sourced<TextModel>;
  readonly embeddings?: Sourced<EmbeddingModel>;
}

const LAMBDA = 'LambdaLabsML/lambda-diffusers, benchmarks/*.csv: 512 x 512, 30 steps, fp16, batches to 8';
const SPLITWISE = 'Mutinifni/splitwise-sim, data/perf_model.csv: Llama-2-70B, tensor parallel over 4';

const VIDUR = 'microsoft/vidur, data/profiling: time of one step without attention';

const A100_LARGE: TextModel = {
  stepMs: 43.4,
  perSequenceMs: 0.215,
  perContextTokenMs: 0.0004,
  prefillMsPerToken: 0.332,
};

/** One token of 335 million parameters computes 335 / 6,740 of what one of Llama-2-7B does. */
const EMBEDDINGS_A100: Sourced<EmbeddingModel> = {
  model: { fixedMs: 5, perTokenMs: (0.0646 * 335) / 6_740 },
  derivation: 'scaled',
  uncertainty: 0.5,
  source: `${VIDUR}: 0.0646 ms per token of Llama-2-7B, by parameters`,
};

function fittedImages(fixedMs: number, perImageMs: number): Sourced<ImageModel> {
  return { model: { fixedMs, perImageMs }, derivation: 'fitted', uncertainty: 0.1, source: LAMBDA };
}

function scaledText(model: TextModel, times: number, source: string): Sourced<TextModel> {
  return {
    model: {
      stepMs: model.stepMs * times,
      perSequenceMs: model.perSequenceMs * times,
      perContextTokenMs: model.perContextTokenMs * times,
      prefillMsPerToken: model.prefillMsPerToken * times,
    },
    derivation: 'scaled',
    uncertainty: 0.5,
    source,
  };
}

const T4: CatalogueEntry = {
  name: 'T4',
  images: {
    model: { fixedMs: 1_330, perImageMs: 4_011 },
    derivation: 'stand-in',
    uncertainty: 0.3,
    source: `${LAMBDA}; a seventh of an H100 (MIG 1g), whose 5.6 steps/s are what T4 owners report (4 to 6)`,
  },
  textLarge: scaledText(A100_LARGE, 2.0 / 0.32, `${SPLITWISE}; A100 by bandwidth 2.0 / 0.32 TB/s`),
};

const V100: CatalogueEntry = {
  name: 'V100',
  images: fittedImages(580, 1_258),
  textLarge: scaledText(A100_LARGE, 2.0 / 0.9, `${SPLITWISE}; A100 by bandwidth 2.0 / 0.9 TB/s`),
};

const A10: CatalogueEntry = { name: 'A10', images: fittedImages(490, 1_555) };

const A100_40: CatalogueEntry = {
  name: 'A100-40',
  images: fittedImages(620, 526),
  embeddings: EMBEDDINGS_A100,
  textLarge: {
    model: A100_LARGE,
    derivation: 'stand-in',
    uncertainty: 0.3,
    source: `${SPLITWISE}; measured on the 80 GB card, whose memory is 1.3 times as fast`,
  },
};

const A100_80: CatalogueEntry = {
  name: 'A100-80',
  images: fittedImages(750, 591),
  embeddings: EMBEDDINGS_A100,
  textLarge: { model: A100_LARGE, derivation: 'fitted', uncertainty: 0.1, source: SPLITWISE },
};

const H100: CatalogueEntry = {
  name: 'H100',
  images: fittedImages(530, 551),
  textLarge: {
    model: { stepMs: 28.8, perSequenceMs: 0.29, perContextTokenMs: 0.0001, prefillMsPerToken: 0.107 },
    derivation: 'fitted',
    uncertainty: 0.1,
    source: SPLITWISE,
  },
};

/** Sorted from slow to fast where pictures tell. */
export const CATALOGUE: readonly CatalogueEntry[] = [T4, A10, V100, A100_80, A100_40, H100];

/** Other names of the same entries. */
const ALIASES: Readonly<Record<string, string>> = { A100: 'A100-40' };

const BY_NAME: ReadonlyMap<string, CatalogueEntry> = new Map(CATALOGUE.map((entry) => [entry.name, entry]));

/** Undefined for what is not in the catalogue. */
export function catalogueEntry(name: string): CatalogueEntry | undefined {
  return BY_NAME.get(ALIASES[name] ?? name);
}

/** All names that `catalogueEntry` knows. */
export function catalogueNames(): readonly string[] {
  return [...BY_NAME.keys(), ...Object.keys(ALIASES)];
}
