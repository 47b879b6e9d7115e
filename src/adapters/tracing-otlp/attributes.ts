/**
 * Names of span attributes. Those of OpenTelemetry's conventions for generative AI are still "in development" and have
 * changed before (https://opentelemetry.io/docs/specs/semconv/gen-ai/): they stand here and nowhere else.
 */
export const ATTRIBUTES = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  errorType: 'error.type',
  requestId: 'spillway.request.id',
  class: 'spillway.class',
  tenant: 'spillway.tenant',
  outcome: 'spillway.outcome',
  stream: 'spillway.stream',
  attempts: 'spillway.attempts',
  queueWaitMs: 'spillway.queue_wait_ms',
  degraded: 'spillway.degraded',
  leftWhile: 'spillway.client_left_while',
  attempt: 'spillway.attempt',
  node: 'spillway.node',
  end: 'spillway.attempt.end',
  retryable: 'spillway.attempt.retryable',
} as const;

/** Events of a span. */
export const EVENTS = {
  admitted: 'spillway.admitted',
  dispatched: 'spillway.dispatched',
  sent: 'spillway.sent',
  'first-byte': 'spillway.first_byte',
} as const;

/** What the conventions call the endpoints. */
const OPERATIONS: Readonly<Record<string, string>> = {
  chat: 'chat',
  completions: 'text_completion',
  embeddings: 'embeddings',
  images: 'generate_content',
};

export function operationOf(endpoint: string): string {
  return OPERATIONS[endpoint] ?? endpoint;
}

/** The format that nodes speak: the conventions ask for it where the provider itself cannot be known. */
export const PROVIDER = 'openai';
