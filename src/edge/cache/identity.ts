/**
 * Which requests always have the same answer, and what makes two of them the same request.
 *
 * Remembered are embeddings; completions at temperature 0 or with a fixed seed; images with a fixed seed. Never: what
 * calls tools (an old call would be carried out again), and what points at the web (what is there changes). A body with a
 * member twice is left alone: nodes differ in which one they take, and one could be answered under the name of another.
 *
 * The key is a SHA-256 over who shares, model and revision, endpoint, and the parameters with sorted names. Left out are
 * names that change nothing of an answer: `stream`, `user`, `metadata` and the hints of priority. Streams and whole
 * answers are apart, because a whole answer cannot be made of a stream exactly.
 */
import { createHash } from 'node:crypto';

export interface RequestIdentity {
  /** Tenant or pool: never the same text for one of each. */
  readonly sharedBy: string;
  readonly model: string;
  readonly revision: string;
  readonly endpoint: string;
  readonly stream: boolean;
  readonly body: Buffer;
}

/** Larger bodies are not parsed a second time for it. */
export const CANONICAL_BYTES_MAX = 262_144;
/** Deeper is no request that anybody repeats. */
const DEPTH_MAX = 64;

const IGNORED: ReadonlySet<string> = new Set([
  'model',
  'stream',
  'user',
  'metadata',
  'priority',
  'service_tier',
]);

type Fields = Readonly<Record<string, unknown>>;

/** The key under which its answer is remembered, or undefined where it is none that is. */
export function cacheKey(identity: RequestIdentity): string | undefined {
  const { body, endpoint } = identity;
  if (body.length > CANONICAL_BYTES_MAX) return undefined;
  const fields: unknown = JSON.parse(body.toString('utf8'));
  if (!isObject(fields) || !hasOneAnswer(endpoint, fields)) return undefined;
  const canonical = new Canonical();
  const parts: string[] = [];
  for (const name of Object.keys(fields).sort()) {
    const text = canonical.text(fields[name], 1);
    if (!IGNORED.has(name)) parts.push(`${JSON.stringify(name)}:${text}`);
  }
  const members = canonical.members + Object.keys(fields).length;
  if (canonical.isTooDeep || members !== membersIn(body)) return undefined;
  const { sharedBy, model, revision, stream } = identity;
  const head = JSON.stringify([sharedBy, model, revision, endpoint, stream]);
  return createHash('sha256')
    .update(`${head}{${parts.join(',')}}`)
    .digest('base64');
}

function hasOneAnswer(endpoint: string, fields: Fields): boolean {
  if (endpoint === 'embeddings') return true;
  const hasSeed = Number.isInteger(fields['seed']);
  if (endpoint === 'images') return hasSeed;
  if (fields['temperature'] !== 0 && !hasSeed) return false;
  return !usesTools(fields) && !pointsAtTheWeb(fields['messages']);
}

function usesTools(fields: Fields): boolean {
  const { tools, functions, web_search_options: search } = fields;
  return isFilled(tools) || isFilled(functions) || (search !== undefined && search !== null);
}

function isFilled(list: unknown): boolean {
  return Array.isArray(list) ? list.length > 0 : list !== undefined && list !== null;
}

function pointsAtTheWeb(messages: unknown): boolean {
  if (!Array.isArray(messages)) return false;
  return (messages as readonly unknown[]).some((message) => {
    const content = isObject(message) ? message['content'] : undefined;
    return Array.isArray(content) && (content as readonly unknown[]).some(isRemote);
  });
}

/** A part of a message that is neither text nor carries its own bytes. */
function isRemote(part: unknown): boolean {
  if (!isObject(part) || part['type'] === 'text') return false;
  const image = part['image_url'];
  const url = isObject(image) ? image['url'] : image;
  return typeof url === 'string' ? !url.startsWith('data:') : part['type'] !== 'input_audio';
}

/** Writes values with the names of members sorted, and counts the members. */
class Canonical {
  members = 0;
  isTooDeep = false;

  text(value: unknown, depth: number): string {
    if (depth > DEPTH_MAX) {
      this.isTooDeep = true;
      return '';
    }
    if (Array.isArray(value)) return `[${value.map((one) => this.text(one, depth + 1)).join(',')}]`;
    if (!isObject(value)) return JSON.stringify(value);
    const names = Object.keys(value).sort();
    this.members += names.length;
    return `{${names.map((name) => `${JSON.stringify(name)}:${this.text(value[name], depth + 1)}`).join(',')}}`;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** Members of all objects in the text, those included that a parser drops because their name comes twice. */
function membersIn(json: Buffer): number {
  let members = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === COLON) members++;
    else if (byte === QUOTE) {
      at++;
      while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
    }
  }
  return members;
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
