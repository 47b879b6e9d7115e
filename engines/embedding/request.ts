/** What the embedding node accepts, and how it writes vectors. Pure, so that it is tested without the model. */

const INPUTS_MAX = 256;
/** The model was trained on sentences; longer texts cost quadratic time and mean little. */
const INPUT_CHARS_MAX = 4_000;
export const DIMENSIONS = 512;

export type VectorEncoding = 'float' | 'base64';

export interface EmbeddingRequest {
  readonly inputs: readonly string[];
  readonly encoding: VectorEncoding;
}

export type ParsedEmbeddingRequest =
  | { readonly kind: 'ok'; readonly request: EmbeddingRequest }
  | { readonly kind: 'refused'; readonly status: 400 | 404; readonly message: string };

export function parseEmbeddingRequest(
  body: Readonly<Record<string, unknown>>,
  modelId: string,
): ParsedEmbeddingRequest {
  if (typeof body['model'] !== 'string') return refused(400, 'model must be a string');
  if (body['model'] !== modelId) return refused(404, `The model ${body['model']} does not exist`);
  const encoding = body['encoding_format'] ?? 'float';
  if (encoding !== 'float' && encoding !== 'base64') {
    return refused(400, 'encoding_format must be float or base64');
  }
  if (body['dimensions'] !== undefined && body['dimensions'] !== DIMENSIONS) {
    return refused(400, `dimensions must be ${DIMENSIONS}`);
  }
  const input = body['input'];
  const inputs: readonly unknown[] = Array.isArray(input) ? input : [input];
  if (inputs.length === 0 || inputs.length > INPUTS_MAX) {
    return refused(400, `input must hold 1 to ${INPUTS_MAX} strings, it holds ${inputs.length}`);
  }
  const texts: string[] = [];
  for (const text of inputs) {
    if (typeof text !== 'string' || text.length === 0 || text.length > INPUT_CHARS_MAX) {
      return refused(400, `Each input must be a string of 1 to ${INPUT_CHARS_MAX} characters`);
    }
    texts.push(text);
  }
  return { kind: 'ok', request: { inputs: texts, encoding } };
}

function refused(status: 400 | 404, message: string): ParsedEmbeddingRequest {
  return { kind: 'refused', status, message };
}

/** `base64` is the little-endian float32 array that OpenAI clients ask for by default. */
export function encodeVector(
  vector: readonly number[],
  encoding: VectorEncoding,
): readonly number[] | string {
  if (encoding === 'float') return vector;
  const bytes = Buffer.alloc(vector.length * Float32Array.BYTES_PER_ELEMENT);
  vector.forEach((value, index) => {
    bytes.writeFloatLE(value, index * Float32Array.BYTES_PER_ELEMENT);
  });
  return bytes.toString('base64');
}
