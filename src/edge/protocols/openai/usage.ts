/**
 * A node's own token counts, read from the text of its answer without parsing the whole of it. Escaped text inside a
 * JSON string cannot match: there the quotes carry a backslash.
 */
import type { Usage } from '../../../core/request/task.ts';

const PROMPT_TOKENS = /"prompt_tokens"\s*:\s*(\d{1,10})/;
const COMPLETION_TOKENS = /"completion_tokens"\s*:\s*(\d{1,10})/;
/** The counts stand within this many characters after the name of the member. */
const USAGE_LENGTH_MAX = 512;

export function findUsage(text: string): Usage | undefined {
  const at = text.lastIndexOf('"usage"');
  if (at < 0) return undefined;
  const part = text.slice(at, at + USAGE_LENGTH_MAX);
  const prompt = PROMPT_TOKENS.exec(part);
  const completion = COMPLETION_TOKENS.exec(part);
  if (prompt === null && completion === null) return undefined;
  return {
    ...(prompt === null ? {} : { promptTokens: Number(prompt[1]) }),
    ...(completion === null ? {} : { outputTokens: Number(completion[1]) }),
  };
}
