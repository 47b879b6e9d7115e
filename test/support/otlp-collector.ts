/**
 * A collector of traces for tests: a real HTTP server that takes OTLP in JSON, as collectors do at `/v1/traces`, and keeps
 * the spans that came.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../integration/edge-fixture.ts';

type Value = string | number | boolean | undefined;

export interface SeenSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  /** 2 is a server, 3 a client. */
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly events: readonly { readonly name: string; readonly atNs: bigint }[];
  /** 2 is an error. */
  readonly status: number;
  readonly service: Value;
}

export interface Collector {
  readonly endpoint: string;
  readonly spans: SeenSpan[];
  /** Bodies as they came, to look for what must not be in them. */
  readonly bodies: string[];
  readonly headers: IncomingMessage['headers'][];
  /** What it answers; 'silent' never does. */
  answer: number | 'silent';
  close(): Promise<void>;
}

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
}

type OtlpAttributes = readonly { readonly key: string; readonly value: OtlpValue }[];

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: OtlpAttributes;
  readonly events: readonly { readonly name: string; readonly timeUnixNano: string }[];
  readonly status?: { readonly code?: number };
}

interface OtlpMessage {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

export async function startCollector(): Promise<Collector> {
  const seen = {
    spans: [] as SeenSpan[],
    bodies: [] as string[],
    headers: [] as IncomingMessage['headers'][],
  };
  const state: { answer: Collector['answer'] } = { answer: 200 };
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      if (state.answer === 'silent') return;
      if (state.answer === 200) take(Buffer.concat(chunks).toString(), req, seen);
      answer(res, state.answer);
    });
  });
  const port = await listen(server);
  return Object.assign(state, {
    ...seen,
    endpoint: `http://127.0.0.1:${port}/v1/traces`,
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  });
}

function answer(res: ServerResponse, status: number): void {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end('{}');
}

function take(
  body: string,
  req: IncomingMessage,
  seen: Pick<Collector, 'spans' | 'bodies' | 'headers'>,
): void {
  seen.bodies.push(body);
  seen.headers.push(req.headers);
  const { resourceSpans } = JSON.parse(body) as OtlpMessage;
  for (const { resource, scopeSpans } of resourceSpans) {
    const service = valuesOf(resource.attributes)['service.name'];
    for (const { spans } of scopeSpans)
      seen.spans.push(...spans.map((span) => ({ ...spanOf(span), service })));
  }
}

function spanOf(span: OtlpSpan): Omit<SeenSpan, 'service'> {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId ?? '',
    name: span.name,
    kind: span.kind,
    startNs: BigInt(span.startTimeUnixNano),
    endNs: BigInt(span.endTimeUnixNano),
    attributes: valuesOf(span.attributes),
    events: span.events.map(({ name, timeUnixNano }) => ({ name, atNs: BigInt(timeUnixNano) })),
    status: span.status?.code ?? 0,
  };
}

function valuesOf(attributes: OtlpAttributes): Record<string, Value> {
  const entries = attributes.map(({ key, value }): [string, Value] => {
    const { stringValue, intValue, doubleValue, boolValue } = value;
    return [
      key,
      stringValue ?? doubleValue ?? boolValue ?? (intValue === undefined ? undefined : Number(intValue)),
    ];
  });
  return Object.fromEntries(entries);
}
