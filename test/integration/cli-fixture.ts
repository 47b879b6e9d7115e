/**
 * What tests of the command line, the admin plane and live reload stand on: a stub engine over a real socket, the
 * command line as a process of its own, temporary folders, and an owner that ends all of it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const CLI: string = fileURLToPath(new URL('../../src/apps/cli/main.ts', import.meta.url));

export interface Stub {
  readonly url: string;
  /** Answers held back while this is true; released by `release`. */
  holding: boolean;
  release(): void;
  /** Requests for work that arrived. */
  readonly calls: number;
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCli {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** The document of `serve --json`. */
  readonly document: { readonly dataUrl: string; readonly adminUrl: string; readonly adminTokenFile: string };
  ended(): Promise<number | null>;
}

export interface Terminal {
  type(keys: string): void;
  /** Lines of the screen as they stand now; empty before the first drawing. */
  screen(): readonly string[];
  /** Everything that came, with its control sequences; at the end what `stty -a` says of the terminal. */
  output(): string;
  /** Exit code of the command. */
  readonly ended: Promise<number>;
}

export interface Fixture {
  readonly folder: string;
  stub(model?: string): Promise<Stub>;
  /** Runs a command to its end. */
  cli(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Finished>;
  /** `serve --json` until it listens. */
  serve(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<RunningCli>;
  /** Starts a command. */
  spawn(args: readonly string[]): ChildProcess;
  shell(command: string): ChildProcess;
  /** A command on a pseudo terminal of its own (`script` of util-linux), as a person would see it. */
  terminal(args: readonly string[], size?: { readonly columns: number; readonly rows: number }): Terminal;
  /** Runs at the end, last added first. */
  onEnd(close: () => Promise<unknown> | void): void;
  end(): Promise<void>;
}

export function createFixture(): Fixture {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-cli-'));
  const closers: (() => Promise<unknown> | void)[] = [];

  function start(args: readonly string[], environment: Readonly<Record<string, string>>): ChildProcess {
    const env = environmentOf(environment);
    const child = spawn(process.execPath, [CLI, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    closers.push(() => killed(child));
    return child;
  }

  function environmentOf(more: Readonly<Record<string, string>>): Record<string, string> {
    return {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      SPILLWAY_STATE: join(folder, 'state'),
      ...more,
    };
  }

  return {
    folder,
    terminal(args, { columns, rows } = { columns: 80, rows: 24 }) {
      const command = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ');
      const script = `stty cols ${columns} rows ${rows}; ${command}; code=$?; stty -a; exit $code`;
      const child = spawn('script', ['-qefc', script, '/dev/null'], {
        env: environmentOf({ TERM: 'xterm', SHELL: '/bin/sh' }),
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      closers.push(() => killed(child));
      return terminalOf(child);
    },
    spawn: (args) => start(args, {}),
    shell: (command) => spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'inherit'] }),
    onEnd: (close) => void closers.push(close),
    async stub(model = 'stub-model') {
      const stub = createStub(model);
      stub.server.listen(0, '127.0.0.1');
      await once(stub.server, 'listening');
      closers.push(() => {
        stub.release();
        stub.server.closeAllConnections();
        return new Promise((resolve) => stub.server.close(resolve));
      });
      const { port } = stub.server.address() as AddressInfo;
      return Object.assign(stub, { url: `http://127.0.0.1:${port}` });
    },
    async cli(args, environment = {}) {
      const child = start(args, environment);
      const output = collect(child);
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, stdout: output.stdout(), stderr: output.stderr() };
    },
    async serve(args, environment = {}) {
      const child = start(['serve', '--json', '--port', '0', ...args], environment);
      const output = collect(child);
      const ended = once(child, 'close').then(([code]) => code as number | null);
      await Promise.race([output.document, ended]);
      if (!output.stdout().includes('"ready": true')) throw new Error(`serve ended: ${output.stderr()}`);
      return { child, ...output, document: JSON.parse(output.stdout()), ended: () => ended };
    },
    async end() {
      for (const close of closers.reverse()) await close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'close');
}

function terminalOf(child: ChildProcess): Terminal {
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const control = /\u001b\[[?0-9;]*[A-Za-z]/g;
  return {
    type: (keys) => void child.stdin?.write(keys),
    output: () => output,
    screen() {
      const drawings = output.split('\u001b[H');
      // The newest may still be on its way.
      const whole = drawings.slice(1).findLast((one) => one.includes('\u001b[J'));
      return whole === undefined ? [] : whole.split(/\r+\n/).map((line) => line.replaceAll(control, ''));
    },
    ended: once(child, 'close').then(([code]) => Number(code)),
  };
}

function collect(child: ChildProcess): {
  stdout(): string;
  stderr(): string;
  readonly document: Promise<void>;
} {
  let stdout = '';
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const document = new Promise<void>((resolve) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      if (/^\}$/m.test(stdout)) resolve();
    });
  });
  return { stdout: () => stdout, stderr: () => stderr, document };
}

function createStub(model: string): Omit<Stub, 'url'> & { readonly server: Server } {
  const held: (() => void)[] = [];
  const stub = {
    holding: false,
    calls: 0,
    release(): void {
      stub.holding = false;
      for (const answer of held.splice(0)) answer();
    },
    server: createServer((req, res) => {
      if (req.method === 'GET') return sendModels(req, res, model);
      stub.calls += 1;
      req.resume();
      const answer = (): void => sendChat(res, model);
      if (stub.holding) held.push(answer);
      else answer();
    }),
  };
  return stub;
}

function sendModels(req: IncomingMessage, res: ServerResponse, model: string): void {
  const isList = req.url === '/v1/models';
  res.writeHead(isList ? 200 : 404, { 'content-type': 'application/json' });
  res.end(isList ? JSON.stringify({ object: 'list', data: [{ id: model, object: 'model' }] }) : '{}');
}

function sendChat(res: ServerResponse, model: string): void {
  const message = { role: 'assistant', content: 'hello' };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  res.writeHead(200, { 'content-type': 'application/json' });
  res.end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model, choices, usage }));
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly json: Record<string, unknown>;
}

export interface CallOptions {
  readonly method?: string;
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called when the head has arrived. */
  readonly onHead?: (res: IncomingMessage) => void;
}

/** One request over a connection of its own. A string body is sent as it is. */
export function call(url: string, options: CallOptions = {}): Promise<Answer> {
  const { body, token } = options;
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const headers = {
    ...(text === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...options.headers,
  };
  return new Promise((resolve, reject) => {
    const method = options.method ?? (text === undefined ? 'GET' : 'POST');
    const req = request(url, { method, headers, agent: false }, (res) => {
      options.onHead?.(res);
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('error', reject);
      res.on('end', () => {
        const received = Buffer.concat(chunks).toString();
        const isJson = (res.headers['content-type'] ?? '').includes('json');
        resolve({
          status: res.statusCode ?? 0,
          headers: res.headers,
          text: received,
          json: isJson ? JSON.parse(received) : {},
        });
      });
    });
    req.on('error', reject);
    req.end(text);
  });
}

export function chat(
  dataUrl: string,
  options: CallOptions & { readonly model?: string } = {},
): Promise<Answer> {
  const body = { model: options.model ?? 'stub-model', messages: [{ role: 'user', content: 'hi' }] };
  return call(`${dataUrl}/v1/chat/completions`, { body, ...options });
}
