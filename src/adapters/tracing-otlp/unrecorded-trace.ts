/** A request that is not sampled: it has ids, for nodes and logs, and costs little more than their digits. */
import { formatTraceparent } from '../../base/trace-context.ts';
import type { AttemptTrace, RequestTrace } from '../../ports/tracing.ts';

export interface IdSource {
  generateTraceId(): string;
  generateSpanId(): string;
}

export class UnrecordedTrace implements RequestTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly continues: boolean;
  readonly #ids: IdSource;

  /** Goes on with the client's trace where there is one: '' begins another. */
  constructor(ids: IdSource, traceId: string) {
    this.#ids = ids;
    this.continues = traceId !== '';
    this.traceId = this.continues ? traceId : ids.generateTraceId();
    this.spanId = ids.generateSpanId();
  }

  event(): void {}

  /** Not sampled whatever the client said: a node that follows the flag would export on a client's word. */
  attempt(): AttemptTrace {
    const { traceId } = this;
    const spanId = this.#ids.generateSpanId();
    return { traceparent: formatTraceparent({ traceId, spanId, sampled: false }), event() {}, end() {} };
  }

  end(): void {}
}
