/**
 * The header `traceparent` of W3C Trace Context (https://www.w3.org/TR/trace-context/): which trace a request belongs to,
 * and which step of it asked. What is not exactly of that form does not count: then the trace begins here.
 */
export interface TraceParent {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 of them. */
  readonly spanId: string;
  /** The caller's word that it records; a hint at most. */
  readonly sampled: boolean;
}

const SHAPE = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?$/;
const SAMPLED = 0x01;
const LENGTH_MAX = 128;

export function parseTraceparent(text: string): TraceParent | undefined {
  if (text === '' || text.length > LENGTH_MAX) return undefined;
  const match = SHAPE.exec(text);
  if (match === null) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = match;
  // Later versions may add parts; this one has none, and ff is no version.
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}

export function formatTraceparent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
