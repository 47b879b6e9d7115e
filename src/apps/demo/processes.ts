/**
 * The processes of the demo: the emulated fleet, the real embedding nodes, the gateway, the load clients. Each is
 * started here, is known to one `Processes`, and is gone when that is closed, whatever happened in between.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Bytes, DurationMs } from '../../base/units.ts';

const STOP_MS_MAX = 3_000;
const OUTPUT_CHARS_MAX = 8_000;
/** Runs from source by type stripping, and compiled: the sibling applications have the same extension as this file. */
const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

export interface DemoProcess {
  readonly pid: number;
  readonly child: ChildProcess;
  /** The last of what it wrote, for the message when it fails. */
  output(): string;
  hasExited(): boolean;
  /** Asks it to end, insists after a while, resolves when it is gone. */
  stop(): Promise<void>;
}

export interface Processes {
  /** `script` is a path below `src` without its extension. */
  start(script: string, args: readonly string[]): DemoProcess;
  /** With a message channel. */
  startWorker(script: string): DemoProcess;
  /** A script outside `src`, by its full path. */
  startScript(path: string, args: readonly string[]): DemoProcess;
  closeAll(): Promise<void>;
}

export function scriptPath(script: string): string {
  return fileURLToPath(new URL(`../../${script}.${EXTENSION}`, import.meta.url));
}

export function createProcesses(): Processes {
  const all = new Set<DemoProcess>();

  function adopt(child: ChildProcess): DemoProcess {
    let output = '';
    const keep = (chunk: Buffer): void => {
      output = (output + chunk.toString('utf8')).slice(-OUTPUT_CHARS_MAX);
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    child.on('error', (error) => keep(Buffer.from(error.message)));
    const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const hasExited = (): boolean => child.exitCode !== null || child.signalCode !== null;
    const process_: DemoProcess = {
      pid: child.pid ?? 0,
      child,
      output: () => output,
      hasExited,
      async stop() {
        all.delete(process_);
        if (hasExited()) return;
        child.kill('SIGTERM');
        const insist = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
        await exited;
        clearTimeout(insist);
      },
    };
    all.add(process_);
    return process_;
  }

  const startScript = (path: string, args: readonly string[]): DemoProcess =>
    adopt(spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }));

  return {
    start: (script, args) => startScript(scriptPath(script), args),
    startWorker: (script) =>
      adopt(
        fork(scriptPath(script), [], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'], serialization: 'advanced' }),
      ),
    startScript,
    closeAll: async () => {
      await Promise.all([...all].map((one) => one.stop()));
    },
  };
}

/** The first JSON document on its output that says ready, on one line or over several. Rejects with what it wrote when it ends before, or is too slow. */
export async function readyLine<T>(one: DemoProcess, name: string, timeoutMs: DurationMs): Promise<T> {
  const ready = /^\{.*"ready":true.*\}$|^\{\n\s+"ready": true[^]*?\n\}$/m;
  await waitFor(() => ready.test(one.output()), { one, name, timeoutMs });
  return JSON.parse(ready.exec(one.output())?.[0] ?? '{}') as T;
}

export interface WaitOptions {
  readonly one: DemoProcess;
  readonly name: string;
  readonly timeoutMs: DurationMs;
}

export async function waitFor(holds: () => boolean | Promise<boolean>, options: WaitOptions): Promise<void> {
  const until = performance.now() + options.timeoutMs;
  while (!(await holds())) {
    if (options.one.hasExited() || performance.now() > until) {
      const why = options.one.hasExited() ? 'it ended' : `it was not ready within ${options.timeoutMs} ms`;
      throw new Error(`Cannot start ${options.name}: ${why}\n${options.one.output()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

export interface Memory {
  readonly rssBytes: Bytes;
  readonly peakRssBytes: Bytes;
}

/** From the operating system. Zeros where there is no /proc: then the caller's own samples are all there is. */
export function memoryOf(pid: number): Memory {
  const path = `/proc/${pid}/status`;
  if (!existsSync(path)) return { rssBytes: 0, peakRssBytes: 0 };
  try {
    const text = readFileSync(path, 'utf8');
    return { rssBytes: kibOf(text, 'VmRSS') * 1_024, peakRssBytes: kibOf(text, 'VmHWM') * 1_024 };
  } catch {
    return { rssBytes: 0, peakRssBytes: 0 };
  }
}

function kibOf(status: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
}
