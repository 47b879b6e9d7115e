/**
 * The node behind every gateway of the comparison: a tiny raw server, so that its own cost disturbs least. It answers a
 * chat completion at once, a stream as spaced events, or never (`--hold`). Tells its port to its parent.
 */
import { createServer, type Socket } from 'node:net';
import { answer, EVENT_GAP_MS, EVENTS_PER_STREAM } from './wire.ts';

const holds = process.argv.includes('--hold');
const HEAD_END = Buffer.from('\r\n\r\n');
const PLAIN = answer();
const CHUNK =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n';
const LAST =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n';

const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const EVENT = chunked(CHUNK);
const END = `${chunked(LAST)}0\r\n\r\n`;

interface Stream {
  readonly socket: Socket;
  left: number;
}

let streams: Stream[] = [];
setInterval(() => {
  for (const stream of streams) stream.socket.write(--stream.left > 0 ? EVENT : END, 'latin1');
  streams = streams.filter((stream) => stream.left > 0 && !stream.socket.destroyed);
}, EVENT_GAP_MS);

const MODELS = '{"object":"list","data":[{"id":"bench","object":"model"}]}';

function reply(socket: Socket, head: string, body: string): void {
  if (head.startsWith('GET ')) {
    socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${MODELS.length}\r\n\r\n${MODELS}`,
    );
  } else if (holds) return;
  else if (body.includes('"stream":true')) {
    socket.write(STREAM_HEAD, 'latin1');
    streams.push({ socket, left: EVENTS_PER_STREAM });
  } else socket.write(PLAIN, 'latin1');
}

const server = createServer((socket) => {
  let carry: Buffer = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (chunk: Buffer) => {
    carry = carry.length === 0 ? chunk : Buffer.concat([carry, chunk]);
    const end = carry.indexOf(HEAD_END);
    if (end < 0) return;
    const head = carry.toString('latin1', 0, end);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (carry.length < end + 4 + length) return;
    // Only the end is looked at: the flag is the last field of every body of the load client.
    const body = carry.toString('latin1', Math.max(end + 4, end + 4 + length - 64), end + 4 + length);
    carry = carry.subarray(end + 4 + length);
    reply(socket, head, body);
  });
});
server.listen(0, '127.0.0.1', 1_024, () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit());
