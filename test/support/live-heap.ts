/**
 * What a process keeps alive, measured from outside: the heap in use right after a full collection, asked for through
 * the inspector. Resident memory tells when the collector last ran; this tells what is still reachable.
 */
import type { RunningCli } from '../integration/cli-fixture.ts';

/** Environment of a process whose heap is to be measured: an inspector on a free port of the loopback. */
export const INSPECTED: Readonly<Record<string, string>> = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** Bytes reachable in `process`, which was started with the environment `INSPECTED`: objects and their buffers. */
export async function liveBytesOf(process: RunningCli): Promise<number> {
  const url = /Debugger listening on (ws:\S+)/.exec(process.stderr())?.[1];
  if (url === undefined) throw new Error(`no inspector: ${process.stderr()}`);
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true });
    socket.addEventListener('error', reject, { once: true });
  });
  try {
    await ask(socket, 1, 'HeapProfiler.collectGarbage');
    const usage = (await ask(socket, 2, 'Runtime.getHeapUsage')) as HeapUsage;
    return usage.usedSize + usage.backingStorageSize;
  } finally {
    socket.close();
  }
}

interface HeapUsage {
  readonly usedSize: number;
  readonly backingStorageSize: number;
}

function ask(socket: WebSocket, id: number, method: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onMessage = ({ data }: MessageEvent): void => {
      const answer = JSON.parse(String(data)) as { readonly id?: number; readonly result?: unknown };
      if (answer.id !== id) return;
      socket.removeEventListener('message', onMessage);
      if (answer.result === undefined) reject(new Error(`${method}: ${String(data)}`));
      else resolve(answer.result);
    };
    socket.addEventListener('message', onMessage);
    socket.send(JSON.stringify({ id, method }));
  });
}
