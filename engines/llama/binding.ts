/**
 * The part of node-llama-cpp that the server uses, loaded at run time: the package is large and lives in this folder's
 * own node_modules, so the rest of the repository must type-check and run without it.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

export type Token = number;

interface EvaluateOptions {
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
}

export interface Sequence {
  /** Yields one token after another; ending the loop early ends the evaluation. */
  evaluate(tokens: readonly Token[], options: EvaluateOptions): AsyncGenerator<Token, void, void>;
  clearHistory(): Promise<void>;
}

interface Context {
  readonly contextSize: number;
  getSequence(): Sequence;
  dispose(): Promise<void>;
}

export interface Model {
  readonly fileInfo: { readonly metadata: { readonly tokenizer: { readonly chat_template?: string } } };
  tokenize(text: string): Token[];
  detokenize(tokens: readonly Token[], specialTokens: boolean, lastTokens: readonly Token[]): string;
  isEogToken(token: Token): boolean;
  createContext(options: {
    readonly sequences: number;
    readonly contextSize: number;
    readonly threads: number;
    readonly batchSize: number;
  }): Promise<Context>;
}

interface LlamaModule {
  getLlama(options: {
    readonly gpu: false;
    readonly build: 'never';
    readonly maxThreads: number;
    readonly progressLogs: boolean;
    readonly logLevel: string;
  }): Promise<{ loadModel(options: { readonly modelPath: string }): Promise<Model> }>;
}

export type ChatMessages = readonly { readonly role: string; readonly content: string }[];

interface JinjaModule {
  readonly Template: new (
    source: string,
  ) => { render(variables: { messages: ChatMessages; add_generation_prompt: boolean }): string };
}

const require = createRequire(import.meta.url);

async function load(name: string): Promise<unknown> {
  const specifier: string = pathToFileURL(require.resolve(name)).href;
  return await import(specifier);
}

/** `threads: 1`, no GPU and no build: anything else probes hardware or compiles, and hangs on a small machine. */
export async function loadModel(modelPath: string): Promise<Model> {
  const module = (await load('node-llama-cpp')) as LlamaModule;
  const llama = await module.getLlama({
    gpu: false,
    build: 'never',
    maxThreads: 1,
    progressLogs: false,
    logLevel: 'error',
  });
  return await llama.loadModel({ modelPath });
}

export async function loadChatTemplate(source: string): Promise<(messages: ChatMessages) => string> {
  const { Template } = (await load('@huggingface/jinja')) as JinjaModule;
  const template = new Template(source);
  return (messages) => template.render({ messages, add_generation_prompt: true });
}
