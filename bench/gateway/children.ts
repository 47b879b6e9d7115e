/** Processes of the comparison: started here, ended here. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { LoadOrder, LoadResult } from './load.ts';

const ENDED_MS = 3_000;

export function path(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), ENDED_MS);
  await closed;
  clearTimeout(timer);
}

export interface BenchNode {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startNode(mode: 'answers' | 'holds'): Promise<BenchNode> {
  const child = fork(path('./node.ts'), mode === 'holds' ? ['--hold'] : []);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { port, stop: () => end(child) };
}

export interface LoadClient {
  run(order: LoadOrder): Promise<LoadResult>;
  stop(): Promise<void>;
}

export function startLoad(): LoadClient {
  const child = fork(path('./load.ts'));
  return {
    async run(order) {
      const answered = once(child, 'message');
      child.send(order);
      const [result] = (await answered) as [LoadResult];
      return result;
    },
    stop: () => end(child),
  };
}

/** A port that was free a moment ago: for programs that cannot be told to choose one. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No free port');
  return address.port;
}
