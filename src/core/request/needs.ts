/**
 * What a task needs of a node beyond the model itself. Matched before ranking, exactly: a node that lacks one is
 * refused with a reason, never given the task to truncate.
 */
import type { Tokens } from '../../base/units.ts';

/** A yes-or-no ability that a node offers for a model. */
export type Capability = 'vision' | 'tools' | 'json-schema' | 'audio';

export interface Needs {
  /** Prompt plus the most output asked for; 0 when the length is unknown or does not matter. */
  readonly contextTokens: Tokens;
  /** Sorted, without duplicates. */
  readonly capabilities: readonly Capability[];
  /** Name of the adapter that must be loaded, or '' for none. */
  readonly lora: string;
  /** Width times height of the largest image asked for; 0 for none. */
  readonly pixels: number;
  /** Length of the embedding vector asked for; 0 for any. */
  readonly embeddingSize: number;
  /** Zone label the node must carry, or '' for any. */
  readonly zone: string;
}

export const NO_NEEDS: Needs = Object.freeze({
  contextTokens: 0,
  capabilities: Object.freeze([]),
  lora: '',
  pixels: 0,
  embeddingSize: 0,
  zone: '',
});

/** What a node offers for one model. Absent limits mean unknown, and unknown never refuses. */
export interface ModelOffer {
  readonly model: string;
  /** The name by which the node knows the model, when it differs. */
  readonly upstreamModel?: string;
  readonly contextTokensMax?: Tokens;
  readonly capabilities?: readonly Capability[];
  readonly loras?: readonly string[];
  readonly pixelsMax?: number;
  readonly embeddingSize?: number;
}
