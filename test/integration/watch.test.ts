/** `GET /watch` over real sockets: what viewers see, and that one who does not read costs the gateway nothing. */
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { Picture, WatchedFleet } from '../../src/edge/admin/picture.ts';
import { createWatch, type Watch, WATCH_VIEWERS_MAX, type WatchLimits } from '../../src/edge/admin/watch.ts';
import type { Gateway, NodeRow } from '../../src/runtime/contract.ts';
import {
  type CaseBench,
  createCaseBench,
  isServed,
  nodeAt,
  open,
  sendMany,
  within,
} from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import { completion, sendJson } from './edge-fixture.ts';

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

interface Viewer {
  readonly status: number;
  readonly events: { readonly name: string; readonly value: unknown }[];
  readonly pictures: () => Picture[];
  readonly fleets: () => WatchedFleet[];
  readonly isClosed: () => boolean;
  leave(): void;
}

/** Reads the stream as it comes. */
function watch(url: string, token: string, query = ''): Promise<Viewer> {
  return new Promise((resolve, reject) => {
    const req = request(`${url}/spillway/v1/watch${query}`, {
      headers: { authorization: `Bearer ${token}` },
      agent: false,
    });
    req.on('error', reject);
    req.on('response', (res) => resolve(follow(res, () => req.destroy())));
    req.end();
  });
}

function follow(res: IncomingMessage, leave: () => void): Viewer {
  const events: { name: string; value: unknown }[] = [];
  let rest = '';
  let closed = false;
  res.setEncoding('utf8');
  res.on('data', (text: string) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const [, name = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
      events.push({ name, value: JSON.parse(data) });
    }
  });
  res.on('close', () => {
    closed = true;
  });
  res.on('error', () => undefined);
  const named = <T>(name: string): T[] =>
    events.filter((event) => event.name === name).map((event) => event.value as T);
  return {
    status: res.statusCode ?? 0,
    events,
    pictures: () => named<Picture>('picture'),
    fleets: () => named<WatchedFleet>('fleet'),
    isClosed: () => closed,
    leave,
  };
}

async function startWithNode(): Promise<{ started: StartedGateway; release: () => void }> {
  const held: (() => void)[] = [];
  const node = await bench.node((res) => void held.push(() => res.writeHead(500).end()));
  const started = await bench.gateway({ nodes: [nodeAt('one', node)] });
  return { started, release: () => held.splice(0).forEach((answer) => answer()) };
}

describe('GET /watch', () => {
  test('shows a waiting request in a whole picture, with the ids of the nodes before it', async () => {
    const { started, release } = await startWithNode();
    const sockets = [await open(started.dataUrl), await open(started.dataUrl, { className: 'low' })];
    const viewer = await watch(started.adminUrl, started.adminToken, '?everyMs=250');
    const picture = await within(5_000, 'one request runs and one waits', () =>
      viewer.pictures().find(({ queue }) => queue.running === 1 && queue.depth === 1),
    );
    expect(viewer.events[0]?.name).toBe('fleet');
    expect(viewer.fleets()[0]).toMatchObject({ ids: ['one'], total: 1 });
    expect(picture).toMatchObject({
      ready: true,
      accounts: { arrived: 2, served: 0 },
      queue: { byClass: { low: { depth: 1 } } },
      ladder: { stage: 0 },
    });
    expect(Object.values(picture.nodes.byState)).toEqual([1]);
    const number = expect.any(Number);
    expect(picture.nodes.rows[0]).toEqual([number, number, number, 1, 1, null]);
    release();
    for (const socket of sockets) socket.destroy();
  });

  test('tells the ids again when the fleet is another, and only then', async () => {
    const { started } = await startWithNode();
    const viewer = await watch(started.adminUrl, started.adminToken, '?everyMs=250');
    await within(5_000, 'three pictures', () => viewer.pictures().length >= 3);
    expect(viewer.fleets()).toHaveLength(1);
    const node = { id: 'another', url: 'http://127.0.0.1:9', models: ['tiny'] };
    await call(`${started.adminUrl}/spillway/v1/nodes`, { token: started.adminToken, body: node });
    const fleet = await within(5_000, 'the new fleet', () => viewer.fleets()[1]);
    expect(fleet.ids).toEqual(['another', 'one']);
    const picture = await within(5_000, 'a picture of it', () =>
      viewer.pictures().find(({ nodes }) => nodes.fleet === fleet.fleet),
    );
    expect(picture.nodes.rows).toHaveLength(2);
  });

  test('asks for the admin token', async () => {
    const { started } = await startWithNode();
    expect((await watch(started.adminUrl, 'wrong')).status).toBe(401);
    expect((await watch(started.adminUrl, started.metricsToken)).status).toBe(401);
  });

  test('takes so many viewers and no more, and another when one has left', async () => {
    const { started } = await startWithNode();
    const enter = (): Promise<Viewer> => watch(started.adminUrl, started.adminToken);
    const viewers = await Promise.all(Array.from({ length: WATCH_VIEWERS_MAX }, enter));
    expect(viewers.map(({ status }) => status)).toEqual(viewers.map(() => 200));
    const refused = await call(`${started.adminUrl}/spillway/v1/watch`, { token: started.adminToken });
    expect([refused.status, refused.json['reason']]).toEqual([503, 'viewers-max']);
    viewers[0]?.leave();
    await within(5_000, 'a place is free', async () => {
      const next = await enter();
      next.leave();
      return next.status === 200;
    });
  });

  test('ends with the gateway, which does not wait for viewers', async () => {
    const { started } = await startWithNode();
    const viewer = await watch(started.adminUrl, started.adminToken);
    await started.stop();
    await within(1_000, 'the stream has ended', viewer.isClosed);
  });
});

/** The watch on a server of its own, whose sockets the test can look at, with a fleet large enough to fill them. */
async function startWide(
  limits: WatchLimits,
): Promise<{ url: string; watch: Watch; sockets: Socket[]; looks: () => number }> {
  const { started } = await startWithNode();
  let looks = 0;
  const [row] = started.gateway.nodes() as [NodeRow];
  const rows = Array.from(
    { length: 2_000 },
    (_, i): NodeRow => ({ ...row, id: `node-${i}`, drainMs: i * 37 }),
  );
  const gateway = Object.create(started.gateway, {
    nodes: {
      value: () => {
        looks += 1;
        return rows;
      },
    },
  }) as Gateway;
  const wide = createWatch({ gateway, wallMs: Date.now, limits });
  const sockets: Socket[] = [];
  const server: Server = createServer((req, res) => {
    const [path = '', query = ''] = (req.url ?? '').split('?', 2);
    const call = { req, res, method: 'GET', path, query: new URLSearchParams(query), bearer: '' };
    void wide.route.methods['GET']?.(call, '');
  });
  server.on('connection', (socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  bench.onEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, watch: wide, sockets, looks: () => looks };
}

const HEAD_OF_ASK = 'GET /watch?everyMs=2 HTTP/1.1\r\nhost: localhost\r\n\r\n';

/** Asks for the stream and never reads a byte. */
function hang(url: string, head: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.pause();
  socket.on('error', () => undefined);
  socket.write(head);
  bench.onEnd(() => void socket.destroy());
  return socket;
}

describe('a viewer that does not read', () => {
  test('holds one picture at most in the gateway, and others go on seeing', async () => {
    const {
      url,
      watch: wide,
      sockets,
    } = await startWide({ everyMsMin: 2, stallMsMax: 600_000, shareMax: 1 });
    hang(url, HEAD_OF_ASK);
    await within(5_000, 'it watches', () => wide.viewers === 1);
    const [held] = sockets as [Socket];
    await within(30_000, 'its socket is full', () => held.writableLength > 0 && held.bytesWritten > 0);
    const other = await watch(url, '', '?everyMs=2');
    const [fleet] = await within(
      5_000,
      'the other sees',
      () => other.pictures().length > 0 && other.fleets(),
    );
    const pictureBytes = JSON.stringify(other.pictures()[0]).length;
    const heldBytesMax = 2 * (pictureBytes + JSON.stringify(fleet).length);
    const before = other.pictures().length;
    let most = 0;
    await within(30_000, 'the other sees fifty more', () => {
      most = Math.max(most, held.writableLength);
      return other.pictures().length >= before + 50;
    });
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThan(heldBytesMax);
    other.leave();
  });

  test('is cut after a while, and takes nobody with it', async () => {
    const { url, watch: wide, sockets } = await startWide({ everyMsMin: 2, stallMsMax: 200, shareMax: 1 });
    hang(url, HEAD_OF_ASK);
    await within(5_000, 'it watches', () => wide.viewers === 1);
    const other = await watch(url, '', '?everyMs=2');
    await within(30_000, 'it is cut', () => wide.viewers === 1 && sockets[0]?.destroyed === true);
    const seen = other.pictures().length;
    await within(5_000, 'the other sees more', () => other.pictures().length > seen);
    other.leave();
  });

  test('keeps no request waiting, however many of them there are', async () => {
    const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
    const started = await bench.gateway({ nodes: [nodeAt('one', node, { slots: 8 })] });
    const head = `GET /spillway/v1/watch?everyMs=250 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${started.adminToken}\r\n\r\n`;
    for (let i = 0; i < WATCH_VIEWERS_MAX; i++) hang(started.adminUrl, head);
    await within(5_000, 'all of them watch', async () => {
      const next = await watch(started.adminUrl, started.adminToken);
      next.leave();
      return next.status === 503;
    });
    const answers = await sendMany(bench.client(started.dataUrl), {
      count: 200,
      concurrency: 8,
      wish: () => ({}),
    });
    expect(answers.every(isServed)).toBe(true);
  });

  test('a picture is rendered once for all viewers', async () => {
    const { url, looks } = await startWide({ everyMsMin: 20, stallMsMax: 600_000, shareMax: 1 });
    const viewers = await Promise.all(Array.from({ length: 8 }, () => watch(url, '', '?everyMs=20')));
    await within(30_000, 'each has seen twenty', () => viewers.every((one) => one.pictures().length >= 20));
    const seen = viewers.reduce((sum, one) => sum + one.pictures().length, 0);
    expect(looks()).toBeLessThan(seen / 2);
    for (const viewer of viewers) viewer.leave();
  });
});
