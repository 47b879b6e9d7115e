/**
 * Whether a fresh answer says what the remembered one said. Compared is what a client asked for (texts, vectors,
 * pictures), not ids, times and counts. Engines that batch are not exact to the last bit, so vectors may differ a little.
 */
import type { CachedAnswer } from './answer-cache.ts';

export type Agreement = 'same' | 'different' | 'unreadable';

/** Least cosine of two vectors that count as the same. */
const COSINE_MIN = 0.9999;

type Fields = Readonly<Record<string, unknown>>;

/** Both are answers to the same request. */
export function compareAnswers(remembered: CachedAnswer, fresh: CachedAnswer): Agreement {
  const before = contentOf(remembered);
  const after = contentOf(fresh);
  if (before === undefined || after === undefined) return 'unreadable';
  if (typeof before === 'string' || typeof after === 'string') return before === after ? 'same' : 'different';
  const isAlike =
    before.length === after.length && before.every((vector, i) => isClose(vector, after[i] as number[]));
  return isAlike ? 'same' : 'different';
}

/** A text that stands for the answer, or its vectors. */
function contentOf({ endpoint, contentType, body }: CachedAnswer): string | readonly number[][] | undefined {
  try {
    if (contentType.startsWith('text/event-stream')) return streamText(body.toString('utf8'));
    const answer = JSON.parse(body.toString('utf8')) as Fields;
    if (endpoint === 'embeddings')
      return vectorsOf(answer) ?? JSON.stringify(listOf(answer['data']).map((one) => one['embedding']));
    if (endpoint === 'images')
      return JSON.stringify(listOf(answer['data']).map((one) => one['b64_json'] ?? one['url']));
    return JSON.stringify(
      listOf(answer['choices']).map((one) => one['text'] ?? (one['message'] as Fields)['content']),
    );
  } catch {
    return undefined;
  }
}

function streamText(body: string): string {
  const texts: string[] = [];
  for (const line of body.split('\n')) {
    if (!line.startsWith('data:') || line.includes('[DONE]')) continue;
    for (const choice of listOf((JSON.parse(line.slice(5)) as Fields)['choices'])) {
      const index = Number(choice['index'] ?? 0);
      const piece = choice['text'] ?? (choice['delta'] as Fields | undefined)?.['content'];
      if (typeof piece === 'string') texts[index] = (texts[index] ?? '') + piece;
    }
  }
  return JSON.stringify(texts);
}

function vectorsOf(answer: Fields): number[][] | undefined {
  const vectors = listOf(answer['data']).map((one) => one['embedding']);
  return vectors.every((one) => Array.isArray(one) && one.every((value) => typeof value === 'number'))
    ? (vectors as number[][])
    : undefined;
}

function listOf(value: unknown): readonly Fields[] {
  if (!Array.isArray(value)) throw new TypeError('Expected a list');
  return value as readonly Fields[];
}

function isClose(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  let product = 0;
  let lengthA = 0;
  let lengthB = 0;
  for (const [i, x] of a.entries()) {
    const y = b[i] as number;
    product += x * y;
    lengthA += x * x;
    lengthB += y * y;
  }
  if (lengthA === 0 || lengthB === 0) return lengthA === lengthB;
  return product / Math.sqrt(lengthA * lengthB) >= COSINE_MIN;
}
