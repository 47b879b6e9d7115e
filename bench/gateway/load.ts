/**
 * The load client: a fixed number of kept-alive connections, each sending its next request when the answer to the last
 * one is whole, until a count is reached. One process for all targets; it takes orders from its parent.
 */
import { connect, type Socket } from 'node:net';

export interface LoadOrder {
  readonly port: number;
  readonly request: string;
  readonly count: number;
  readonly connections: number;
  /** `hold`: sends one request per connection and keeps them open until the next order. */
  readonly mode: 'closed-loop' | 'hold';
}

export interface LoadResult {
  readonly answers: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly events: number;
  readonly seconds: number;
}

const HEAD_END = '\r\n\r\n';
const CHUNKS_END = '\r\n0\r\n\r\n';
const held: Socket[] = [];

interface Run {
  readonly order: LoadOrder;
  started: number;
  answers: number;
  events: number;
  readonly byStatus: Record<string, number>;
}

/** What is still missing of an answer whose head has been read; -1 for chunks. */
interface Reading {
  left: number;
  tail: string;
  carry: string;
}

function runOne(run: Run, done: () => void): Socket {
  const socket = connect({ port: run.order.port, host: '127.0.0.1', noDelay: true });
  const reading: Reading = { left: 0, tail: '', carry: '' };
  let isBusy = false;
  const next = (): void => {
    if (run.started >= run.order.count) {
      isBusy = false;
      socket.end();
      done();
      return;
    }
    run.started++;
    isBusy = true;
    socket.write(run.order.request, 'latin1');
  };
  socket.on('connect', next);
  socket.on('data', (chunk: Buffer) => {
    if (take(run, reading, chunk.toString('latin1'))) next();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    if (!isBusy || held.includes(socket)) return;
    run.byStatus['broken'] = (run.byStatus['broken'] ?? 0) + 1;
    done();
  });
  return socket;
}

/** True when the answer is whole. */
function take(run: Run, reading: Reading, text: string): boolean {
  let body = text;
  if (reading.left === 0) {
    reading.carry += text;
    const end = reading.carry.indexOf(HEAD_END);
    if (end < 0) return false;
    const head = reading.carry.slice(0, end);
    const status = head.slice(9, 12);
    run.byStatus[status] = (run.byStatus[status] ?? 0) + 1;
    const length = /content-length: ?(\d+)/i.exec(head)?.[1];
    body = reading.carry.slice(end + 4);
    reading.carry = '';
    reading.tail = '';
    reading.left = length === undefined ? -1 : Number(length);
    if (reading.left === 0) return ended(run);
  }
  if (reading.left > 0) {
    reading.left -= body.length;
    return reading.left === 0 && ended(run);
  }
  run.events += body.split('"delta"').length - 1;
  reading.tail = (reading.tail + body).slice(-CHUNKS_END.length);
  if (reading.tail !== CHUNKS_END) return false;
  reading.left = 0;
  return ended(run);
}

function ended(run: Run): true {
  run.answers++;
  return true;
}

async function perform(order: LoadOrder): Promise<LoadResult> {
  for (const socket of held.splice(0)) socket.destroy();
  const run: Run = { order, started: 0, answers: 0, events: 0, byStatus: {} };
  const startedAt = performance.now();
  if (order.mode === 'hold') {
    // In small groups, so that no accept queue overflows.
    for (let i = 0; i < order.connections; i += 100) {
      const group = Array.from({ length: Math.min(100, order.connections - i) }, () => runOne(run, () => {}));
      held.push(...group);
      await Promise.all(group.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    }
  } else {
    await Promise.all(
      Array.from(
        { length: order.connections },
        () => new Promise<void>((resolve) => void runOne(run, resolve)),
      ),
    );
  }
  const { answers, byStatus, events } = run;
  return { answers, byStatus, events, seconds: (performance.now() - startedAt) / 1_000 };
}

process.on('message', (order: LoadOrder) => void perform(order).then((result) => process.send?.(result)));
process.on('disconnect', () => process.exit());
