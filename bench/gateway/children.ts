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

/** Where a gateway listens and what opens its admin plane, from the document of `serve --json`. */
export interface ServeDocument {
  readonly dataUrl: string;
  readonly adminTokenFile: string;
}

/** Reads the document of a child whose stdout is a pipe; fails when the child ends before it is whole. */
export async function serveDocument(child: ChildProcess): Promise<ServeDocument> {
  let text = '';
  const ended = once(child, 'exit').then(() => {
    throw new Error(`The gateway did not start: ${text}`);
  });
  const document = new Promise<ServeDocument>((resolve) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      try {
        resolve(JSON.parse(text));
      } catch {
        // Not whole yet.
      }
    });
  });
  ended.catch(() => {});
  return Promise.race([document, ended]);
}

/**
 * A port that was free a moment ago, for programs that cannot be told to choose one and say which: a client of this machine
 * may have it before they do.
 */
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
