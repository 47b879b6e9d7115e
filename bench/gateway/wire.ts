/** The bytes of the comparison: requests of a given size, and the node's answer. Every gateway sees the same body. */
export const MODEL = 'bench';
export const EVENT_GAP_MS = 5;
export const EVENTS_PER_STREAM = 40;

const PATH = '/v1/chat/completions';

/** A chat request of exactly this many bytes. */
export function body(bytes: number, stream: 'stream' | 'whole' = 'whole'): string {
  const text = (content: string): string =>
    `{"model":"${MODEL}","messages":[{"role":"user","content":"${content}"}],"max_tokens":64,"temperature":0.7,"stream":${stream === 'stream'}}`;
  const words = 'The quick brown fox jumps over the lazy dog. '.repeat(Math.ceil(bytes / 45));
  return text(words.slice(0, Math.max(0, bytes - text('').length)));
}

export interface Head {
  readonly port: number;
  readonly headers: readonly string[];
}

export function request({ port, headers }: Head, text: string): string {
  const lines = [
    `POST ${PATH} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    'accept: application/json',
    'user-agent: bench',
    'content-type: application/json',
    ...headers,
    `content-length: ${text.length}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
}

export function answer(): string {
  const text = JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: MODEL,
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 60, completion_tokens: 4, total_tokens: 64 },
  });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
}
