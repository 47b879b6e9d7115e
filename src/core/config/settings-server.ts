/** Numbers of the client's side: connections, bodies, spools, and the gateway's own survival. */
import { GIB, KIB, MIB, real, type Setting, whole } from './setting.ts';

type Server =
  `server.${'port' | 'adminPort' | 'headerBytesMax' | 'bodyBytesMax' | 'connectionsMax' | 'headersMs' | 'requestMs' | 'earlyCommitMs' | 'keepAliveCommentMs' | 'spoolBytesMax' | 'spoolBytesTotalMax' | 'stallMs' | 'connectMs' | 'nodeIdleMs' | 'drainMs' | 'overloadStatus'}`;
type Survival = `survival.${'loopLagMs' | 'heapRatio' | 'descriptorsRatio'}`;
export type ServerSetting = Server | Survival;

export const SERVER: Readonly<Record<Server, Setting>> = {
  'server.port': whole(
    8480,
    'port',
    [0, 65_535],
    ['Free of well-known services; 0 takes any free port.', 'own choice'],
  ),
  'server.adminPort': whole(
    0,
    'port',
    [0, 65_535],
    ['Absent: the admin plane shares the data port. 0 takes any free port.', 'own choice'],
  ),
  'server.headerBytesMax': whole(
    16 * KIB,
    'bytes',
    [KIB, MIB],
    ['All headers of one request together.', 'default of node:http'],
  ),
  'server.bodyBytesMax': whole(
    32 * MIB,
    'bytes',
    [KIB, GIB],
    ['Room for several images in base64.', 'limits of public vision services: 20 to 32 MB'],
  ),
  'server.connectionsMax': whole(
    65_536,
    'count',
    [1, 1_000_000],
    [
      'More are closed at once; each costs about 20 KB while it waits.',
      'own choice; open descriptors are watched as well',
    ],
  ),
  'server.headersMs': whole(
    10_000,
    'ms',
    [100, 600_000],
    ['A slow header is an attack or a broken client.', 'half of the usual 20 s'],
  ),
  'server.requestMs': whole(
    60_000,
    'ms',
    [100, 3_600_000],
    ['Time for the whole request to arrive.', '32 MiB at 4.5 Mbit/s'],
  ),
  'server.earlyCommitMs': whole(
    10_000,
    'ms',
    [10, 600_000],
    [
      'A waiting stream commits 200 and sends keep-alives before a proxy gives up on it.',
      'half of the shortest idle limit found in common proxies',
    ],
  ),
  'server.keepAliveCommentMs': whole(
    10_000,
    'ms',
    [10, 600_000],
    ['Interval of keep-alives on a waiting stream.', 'as earlyCommitMs'],
  ),
  'server.spoolBytesMax': whole(
    4 * MIB,
    'bytes',
    [16 * KIB, GIB],
    [
      'A slow reader cannot hold an accelerator: its answer waits here.',
      'a 100,000-token stream is below 20 MB; most are below 1 MB',
    ],
  ),
  'server.spoolBytesTotalMax': whole(
    128 * MIB,
    'bytes',
    [16 * KIB, 64 * GIB],
    ['All spools together.', '32 slow readers at their bound'],
  ),
  'server.stallMs': whole(
    30_000,
    'ms',
    [100, 3_600_000],
    ['A reader that takes nothing for so long is cut.', 'own choice'],
  ),
  'server.connectMs': whole(
    2_000,
    'ms',
    [10, 60_000],
    ['Connecting to a node.', 'one lost SYN is repeated after a second'],
  ),
  'server.nodeIdleMs': whole(
    120_000,
    'ms',
    [100, 86_400_000],
    [
      'Silence of a node between bytes; before the first byte the deadline rules.',
      'longest prefill of common models',
    ],
  ),
  'server.drainMs': whole(
    30_000,
    'ms',
    [0, 3_600_000],
    ['Running requests may go on for so long after SIGTERM.', 'termination grace of Kubernetes'],
  ),
  'server.overloadStatus': whole(
    429,
    'status',
    [429, 503],
    ['429 or 503, on the OpenAI and generic wire.', 'SDKs retry both'],
  ),
};

export const SURVIVAL: Readonly<Record<Survival, Setting>> = {
  'survival.loopLagMs': whole(
    200,
    'ms',
    [5, 60_000],
    [
      'Median of the last second; above it every answer is late by more than a first byte should be.',
      'own choice: a fiftieth of the critical first-byte bound',
    ],
  ),
  'survival.heapRatio': real(
    0.85,
    'ratio',
    [0.1, 0.99],
    ['Garbage collection takes over beyond this use of the heap or memory limit.', 'V8 practice'],
  ),
  'survival.descriptorsRatio': real(
    0.9,
    'ratio',
    [0.1, 0.99],
    ['Connections to nodes need descriptors too.', 'own choice'],
  ),
};
