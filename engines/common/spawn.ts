/** Starts an engine as a child process and waits for its ready line. Used by tests, the demo and benches. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface EngineProcess {
  /** Base URL without a trailing slash. */
  readonly url: string;
  readonly pid: number;
  /** Sends SIGTERM and resolves with the exit code once the process has gone; null when a signal ended it. */
  stop(): Promise<number | null>;
}

const ENGINES = fileURLToPath(new URL('..', import.meta.url));
/** Last bytes of stderr kept for the error message of an engine that does not start. */
const STDERR_CHARS_MAX = 4_000;

/** `name` is the engine's folder: `embedding` or `llama`. Rejects with the engine's stderr when it ends before it is ready. */
export async function spawnEngine(name: string, args: readonly string[] = []): Promise<EngineProcess> {
  const script = `${ENGINES}${name}/server.ts`;
  // The pipe to the child's stdin is its lifeline: it closes when this process ends in whatever way.
  const child = spawn(process.execPath, [script, '--port', '0', '--until', 'stdin-ends', ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  const url = await readyUrl(name, child);
  return {
    url,
    pid: child.pid ?? 0,
    stop: () => {
      child.kill('SIGTERM');
      return exited;
    },
  };
}

function readyUrl(name: string, child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let stdout = '';
    let stderr = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString('utf8')).slice(-STDERR_CHARS_MAX);
    });
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout = (stdout + chunk.toString('utf8')).slice(-STDERR_CHARS_MAX);
      const url = /"url":"([^"]+)"/.exec(stdout)?.[1];
      if (url !== undefined) resolve(url);
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      reject(new Error(`Engine ${name} ended before it was ready, code ${code}: ${stderr}`));
    });
  });
}
