/** Traces of requests that end without a task of their own: refused at the door, or answered from what is known. */
import type { MonoUs } from '../base/units.ts';
import type { RequestEnd, Tracing } from '../ports/tracing.ts';

export interface ShortRequest extends Partial<RequestEnd> {
  readonly traceparent: string;
  readonly receivedAt: MonoUs;
  readonly at: MonoUs;
  readonly outcome: string;
}

export function traceShort(tracing: Tracing, request: ShortRequest): void {
  const { traceparent, receivedAt, ...told } = request;
  tracing.begin({ traceparent, receivedAt }).end(shortEnd(told));
}

/** An end without attempts; what is not told is unknown. */
export function shortEnd(told: Partial<RequestEnd> & Pick<RequestEnd, 'at' | 'outcome'>): RequestEnd {
  return {
    publicId: '',
    endpoint: '',
    className: '',
    tenant: '',
    model: '',
    stream: false,
    attempts: 0,
    queueWaitUs: 0,
    degraded: '',
    leftWhile: '',
    ...told,
  };
}
