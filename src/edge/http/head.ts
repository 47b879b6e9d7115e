/**
 * One pass over a request's raw headers: what the gateway itself needs, and the flat list that a node may see.
 *
 * Nodes see an allow-list. Credentials, cookies, hop-by-hop and control headers never reach them. A header that counts
 * once and is sent twice is joined by a comma, which makes it invalid rather than letting either value win.
 */
export interface RequestHead {
  host: string;
  hostCount: number;
  origin: string;
  authorization: string;
  apiKey: string;
  contentLength: string;
  contentEncoding: string;
  transferEncoding: string;
  expect: string;
  classWish: string;
  /** Undefined when absent: an empty value is an error. */
  deadlineMs: string | undefined;
  prefer: string;
  /** The lesser of the two timeouts an official client sends, in its own text; '' when absent. */
  stainlessTimeout: string;
  stainlessReadTimeout: string;
  /** How often an official client has tried before, in its own text; '' when absent. */
  retryCount: string;
  /** Which stage of a workflow it is, and the id of the request whose answer it works on; '' when absent. */
  stage: string;
  parent: string;
  /** What less the client takes, in its own text. */
  degradeWish: string;
  /** Undefined when absent: an empty one is an error. */
  idempotencyKey: string | undefined;
  inferenceObjective: string;
  priority: string;
  requestId: string;
  /** W3C Trace Context, in the client's own text. */
  traceparent: string;
  tracestate: string;
  /** Names and values that are passed on to a node whatever the rest says; see `nodeHeaders`. */
  readonly forwarded: string[];
}

export function scanHead(rawHeaders: readonly string[]): RequestHead {
  const head = emptyHead();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    take(head, (rawHeaders[i] as string).toLowerCase(), rawHeaders[i + 1] as string);
  }
  return head;
}

function emptyHead(): RequestHead {
  return {
    host: '',
    hostCount: 0,
    origin: '',
    authorization: '',
    apiKey: '',
    contentLength: '',
    contentEncoding: '',
    transferEncoding: '',
    expect: '',
    classWish: '',
    deadlineMs: undefined,
    prefer: '',
    stainlessTimeout: '',
    stainlessReadTimeout: '',
    retryCount: '',
    stage: '',
    parent: '',
    degradeWish: '',
    idempotencyKey: undefined,
    inferenceObjective: '',
    priority: '',
    requestId: '',
    traceparent: '',
    tracestate: '',
    forwarded: ['content-type', 'application/json'],
  };
}

function take(head: RequestHead, name: string, value: string): void {
  switch (name) {
    case 'host':
      head.host = value;
      head.hostCount++;
      break;
    case 'origin':
      head.origin = joined(head.origin, value);
      break;
    case 'authorization':
      head.authorization = joined(head.authorization, value);
      break;
    case 'x-api-key':
      head.apiKey = joined(head.apiKey, value);
      break;
    case 'content-length':
      head.contentLength = joined(head.contentLength, value);
      break;
    case 'content-encoding':
      head.contentEncoding = joined(head.contentEncoding, value);
      break;
    case 'transfer-encoding':
      head.transferEncoding = joined(head.transferEncoding, value);
      break;
    case 'expect':
      head.expect = value;
      break;
    case 'accept':
    case 'openai-beta':
      head.forwarded.push(name, lasting(value));
      break;
    default:
      takeControl(head, name, value);
  }
}

function takeControl(head: RequestHead, name: string, value: string): void {
  switch (name) {
    case 'x-spillway-class':
      head.classWish = joined(head.classWish, value);
      break;
    case 'x-spillway-degrade':
      head.degradeWish = joined(head.degradeWish, value);
      break;
    case 'x-spillway-stage':
      head.stage = joined(head.stage, value);
      break;
    case 'x-spillway-parent':
      head.parent = joined(head.parent, value);
      break;
    case 'x-spillway-deadline-ms':
      head.deadlineMs = head.deadlineMs === undefined ? value : `${head.deadlineMs}, ${value}`;
      break;
    case 'prefer':
      head.prefer = joined(head.prefer, value);
      break;
    case 'x-stainless-timeout':
      head.stainlessTimeout = value;
      break;
    case 'x-stainless-read-timeout':
      head.stainlessReadTimeout = value;
      break;
    case 'x-stainless-retry-count':
      head.retryCount = joined(head.retryCount, value);
      break;
    case 'idempotency-key':
      head.idempotencyKey = head.idempotencyKey === undefined ? value : `${head.idempotencyKey}, ${value}`;
      break;
    case 'x-llm-d-inference-objective':
      head.inferenceObjective = value;
      break;
    case 'priority':
      head.priority = value;
      break;
    case 'traceparent':
      head.traceparent = joined(head.traceparent, value);
      break;
    case 'tracestate':
      head.tracestate = joined(head.tracestate, value);
      break;
    case 'x-request-id':
      head.requestId = isPlainId(value) ? value : '';
      break;
  }
}

/** What a node sees of a client's headers. A traced attempt adds a `traceparent` of its own. */
export function nodeHeaders(
  head: RequestHead,
  trace: { readonly continues: boolean } | undefined,
): readonly string[] {
  const { forwarded, requestId, traceparent, tracestate } = head;
  if (requestId === '' && traceparent === '' && tracestate === '') return forwarded;
  const headers = [...forwarded];
  if (requestId !== '') headers.push('x-request-id', requestId);
  if (trace === undefined && traceparent !== '') headers.push('traceparent', traceparent);
  // It belongs to its traceparent, and is nothing without.
  if (tracestate !== '' && (trace === undefined || trace.continues)) headers.push('tracestate', tracestate);
  return headers;
}

/** Values that many requests share. A part of a head's text would hold all of it while the request waits. */
const LASTING_MAX = 64;
const LASTING_LENGTH_MAX = 64;
const lastingValues = new Map<string, string>();

function lasting(value: string): string {
  const known = lastingValues.get(value);
  if (known !== undefined) return known;
  if (lastingValues.size < LASTING_MAX && value.length <= LASTING_LENGTH_MAX) lastingValues.set(value, value);
  return value;
}

function joined(before: string, value: string): string {
  return before === '' ? value : `${before}, ${value}`;
}

const REQUEST_ID_LENGTH_MAX = 128;

/** Whether a client's id may be echoed and passed on: short, printable, without separators. */
export function isPlainId(value: string): boolean {
  return value.length <= REQUEST_ID_LENGTH_MAX && /^[\w.:/+=@-]+$/.test(value);
}
