/**
 * What a protocol module makes of a request: all that admission needs, and how to write the body for one node. The
 * bytes are kept as they came; the parsed object is dropped, because it costs several times as much while it waits.
 */
import type { Lowered } from '../../core/degrade/index.ts';
import type { Needs } from '../../core/request/needs.ts';
import type { RequestShape } from '../../core/request/task.ts';

export interface InferenceRequest {
  /** Which kind of request: `chat`, `completions`, `embeddings`, `images`. */
  readonly endpoint: string;
  /** Path below the node's base path. */
  readonly path: string;
  /** As the client wrote it. */
  readonly model: string;
  readonly stream: boolean;
  readonly shape: RequestShape;
  /** `contextTokens` is 0 here; the estimate of the model fills it in. */
  readonly needs: Needs;
  /** Whether the context length of a node matters at all. */
  readonly usesContext: boolean;
  /** Class hints in the body, removed from what a node sees; undefined when absent. */
  readonly serviceTier: unknown;
  readonly bodyPriority: unknown;
  /** The usage chunk was asked for by us and is hidden from the client. */
  readonly hidesUsage: boolean;
  readonly body: Buffer;
  /** Of the body's bytes, 32 bits. Worked out each time it is read. */
  readonly checksum: number;
  /** Of the body's bytes: equal bodies have equal fingerprints, and others hardly ever. Worked out each time it is read. */
  readonly fingerprint: string;
  /** The prompt's bytes as they came, up to where the next turn would go on; undefined where no engine keeps such. */
  promptText(): Buffer | undefined;
  /** The body for a node that knows the model by this name, with what is lowered of it. */
  bodyFor(modelName: string, lowered?: Lowered): readonly Uint8Array[];
}

export type ParseResult =
  | { readonly kind: 'request'; readonly request: InferenceRequest }
  | { readonly kind: 'bad'; readonly detail: string; readonly param: string };
