import { openAiBody, refuse } from '../outcomes/refusal.ts';

/** A node's 4xx as one event of a stream whose status was committed before: its own body, if that is an error in JSON. */
export function declinedBody(answer: Buffer | undefined): string {
  try {
    const body: unknown = JSON.parse(answer === undefined ? '' : answer.toString('utf8'));
    if (typeof body === 'object' && body !== null && 'error' in body) return JSON.stringify(body);
  } catch {
    // Not JSON: the general form below says as much as is known.
  }
  return openAiBody(refuse('bad-request', 'the node judged the request wrong'));
}
