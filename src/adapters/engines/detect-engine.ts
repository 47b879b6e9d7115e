/**
 * Finds engines on this machine for a start without configuration: asks the usual local ports who is there.
 * An engine is told by what only it serves, not by its port: two of them share 8080.
 */
import type { NodeConfig, NodeProtocol } from '../../core/config/types.ts';
import type { ModelOffer } from '../../core/request/needs.ts';
import type { NodeEndpoint } from '../../ports/node-transport.ts';
import { modelsOf, ownerOf } from './model-list.ts';
import { MODELS_PATH } from './openai-driver.ts';
import { arrayIn, parseJson, recordIn, textIn } from './read-json.ts';
import { type SmallAnswer, smallGet } from './small-get.ts';

export type EngineName = 'ollama' | 'vllm' | 'sglang' | 'llama.cpp' | 'tei' | 'a1111' | 'openai';

export interface DetectedEngine {
  readonly engine: EngineName;
  readonly url: string;
  readonly version: string;
  /** What it serves now; empty when it does not say, or has nothing loaded. */
  readonly models: readonly ModelOffer[];
  /** The node to register, or undefined: found, and not usable by this version. */
  readonly node: NodeConfig | undefined;
  /** One line for people. */
  readonly summary: string;
}

/** Where engines listen by their own defaults, for a look and for saying what was looked for. */
export const LOCAL_CANDIDATES: readonly { readonly url: string; readonly names: string }[] = [
  { url: 'http://127.0.0.1:11434', names: 'Ollama' },
  { url: 'http://127.0.0.1:8000', names: 'vLLM' },
  { url: 'http://127.0.0.1:30000', names: 'SGLang' },
  { url: 'http://127.0.0.1:8080', names: 'llama.cpp, TEI' },
  { url: 'http://127.0.0.1:3000', names: 'TEI' },
  { url: 'http://127.0.0.1:7860', names: 'Stable Diffusion WebUI' },
];

/** A local engine answers at once, unless it is busy. */
const DETECT_MS = 1_000;

interface Answers {
  readonly list: SmallAnswer;
  readonly ollama: SmallAnswer;
  readonly version: SmallAnswer;
  readonly sglang: SmallAnswer;
  readonly props: SmallAnswer;
  readonly info: SmallAnswer;
  readonly sdModels: SmallAnswer;
}

/** All that answer, in the order of the candidates. */
export async function detectEngines(
  candidates: readonly string[] = LOCAL_CANDIDATES.map(({ url }) => url),
): Promise<readonly DetectedEngine[]> {
  const found = await Promise.all(candidates.map((url) => detectEngine(url)));
  return found.filter((engine) => engine !== undefined);
}

/** Undefined when nothing answers there, or nothing that is known. */
export async function detectEngine(
  url: string,
  timeoutMs: number = DETECT_MS,
): Promise<DetectedEngine | undefined> {
  const endpoint: NodeEndpoint = { id: 'detect', url, headers: [] };
  const list = await smallGet(endpoint, MODELS_PATH, timeoutMs);
  if (list.kind === 'nothing') return undefined;
  const get = (path: string): Promise<SmallAnswer> => smallGet(endpoint, path, timeoutMs);
  const [ollama, version, sglang, props, info, sdModels] = await Promise.all([
    get('/api/version'),
    get('/version'),
    get('/get_model_info'),
    get('/props'),
    get('/info'),
    get('/sdapi/v1/sd-models'),
  ]);
  return judge(url, { list, ollama, version, sglang, props, info, sdModels });
}

function judge(url: string, answers: Answers): DetectedEngine | undefined {
  const models = modelsOf(answers.list);
  const owner = ownerOf(answers.list);
  const ollama = textIn(bodyOf(answers.ollama)?.['version']);
  if (ollama !== undefined) return usable({ engine: 'ollama', url, version: ollama, models });
  if (textIn(bodyOf(answers.sglang)?.['model_path']) !== undefined || owner === 'sglang') {
    return usable({ engine: 'sglang', url, models });
  }
  if (owner === 'vllm') {
    return usable({
      engine: 'vllm',
      url,
      version: textIn(bodyOf(answers.version)?.['version']) ?? '',
      models,
    });
  }
  const props = bodyOf(answers.props);
  if (props?.['total_slots'] !== undefined || owner === 'llamacpp') {
    return usable({ engine: 'llama.cpp', url, version: textIn(props?.['build_info']) ?? '', models });
  }
  const tei = bodyOf(answers.info);
  const teiModel = textIn(tei?.['model_id']);
  if (tei !== undefined && teiModel !== undefined && recordIn(tei['model_type']) !== undefined) {
    // It has no model list of its own: the name is written into the node.
    const written = [{ model: teiModel }];
    return usable({ engine: 'tei', url, version: textIn(tei['version']) ?? '', models: written, written });
  }
  const images = sdModelsOf(answers.sdModels);
  if (images !== undefined) return notYetUsable('a1111', url, images);
  return models === undefined ? undefined : usable({ engine: 'openai', url, models });
}

const PROTOCOLS: Readonly<Record<Exclude<EngineName, 'a1111'>, NodeProtocol>> = {
  ollama: 'openai',
  vllm: 'vllm',
  sglang: 'openai',
  'llama.cpp': 'llama.cpp',
  tei: 'openai',
  openai: 'openai',
};

interface Found {
  readonly engine: Exclude<EngineName, 'a1111'>;
  readonly url: string;
  readonly version?: string;
  readonly models?: readonly ModelOffer[] | undefined;
  /** Models written into the node, for an engine without a list. */
  readonly written?: readonly ModelOffer[];
}

function usable({ engine, url, version = '', models = [], written = [] }: Found): DetectedEngine {
  const node: NodeConfig = {
    id: `${engine}-${new URL(url).host.replace(/[^A-Za-z0-9.]+/g, '-')}`,
    url,
    protocol: PROTOCOLS[engine],
    models: written,
    hardware: '',
    labels: {},
    headers: {},
  };
  return {
    engine,
    url,
    version,
    models,
    node,
    summary: `${title(engine, version)} at ${url}: ${listed(models)}`,
  };
}

function notYetUsable(engine: 'a1111', url: string, models: readonly ModelOffer[]): DetectedEngine {
  const summary = `${title(engine, '')} at ${url}: ${listed(models)} (found, not yet usable by this version)`;
  return { engine, url, version: '', models, node: undefined, summary };
}

const TITLES: Readonly<Record<EngineName, string>> = {
  ollama: 'Ollama',
  vllm: 'vLLM',
  sglang: 'SGLang',
  'llama.cpp': 'llama.cpp',
  tei: 'Text Embeddings Inference',
  a1111: 'Stable Diffusion WebUI',
  openai: 'an OpenAI-compatible server',
};

/** Names in a summary; the rest is counted. */
const LISTED_MAX = 3;

function title(engine: EngineName, version: string): string {
  return version === '' ? TITLES[engine] : `${TITLES[engine]} ${version}`;
}

function listed(models: readonly ModelOffer[]): string {
  if (models.length === 0) return 'no models yet';
  const names = models.slice(0, LISTED_MAX).map((offer) => offer.model);
  const more = models.length - names.length;
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ');
}

function bodyOf(answer: SmallAnswer): Readonly<Record<string, unknown>> | undefined {
  return answer.kind === 'answer' && answer.status === 200 ? recordIn(parseJson(answer.body)) : undefined;
}

function sdModelsOf(answer: SmallAnswer): readonly ModelOffer[] | undefined {
  if (answer.kind !== 'answer' || answer.status !== 200) return undefined;
  const rows = arrayIn(parseJson(answer.body));
  const names = rows
    ?.map((row) => textIn(recordIn(row)?.['model_name']))
    .filter((name) => name !== undefined);
  if (names === undefined || (rows !== undefined && rows.length > 0 && names.length === 0)) return undefined;
  return names.map((model) => ({ model }));
}
