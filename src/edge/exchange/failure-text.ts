/** What a node says of its failure: the message of a JSON answer in one of the usual forms, or the first line of a plain text. */

/** Beginning of the answer that is looked at. */
export const SAID_BYTES_MAX = 2_048;

/** '' where it says nothing that is meant for people: no body, a page of HTML, bytes. */
export function failureText(body: Buffer): string {
  const text = body.toString('utf8').trim();
  if (text === '' || text.startsWith('<')) return '';
  if (text.startsWith('{')) return messageOf(text);
  return text.split('\n', 1)[0] ?? '';
}

/** As OpenAI, vLLM, llama.cpp (`error.message`), Ollama (`error`), FastAPI (`detail`) and others (`message`) write it. */
function messageOf(text: string): string {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return '';
  }
  if (!isObject(answer)) return '';
  const { error, message, detail } = answer;
  for (const said of [isObject(error) ? error['message'] : error, message, detail])
    if (typeof said === 'string') return said;
  return '';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
