import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { call, chat, CLI, createFixture, type Fixture } from './cli-fixture.ts';

let fixture: Fixture;

beforeEach(() => {
  fixture = createFixture();
});

afterEach(() => fixture.end());

function file(name: string, text: string): string {
  const path = join(fixture.folder, name);
  writeFileSync(path, text);
  return path;
}

describe('spillway', () => {
  test('teaches its commands with examples and exit codes', async () => {
    const { code, stdout } = await fixture.cli(['--help']);
    expect(code).toBe(0);
    expect(stdout).toContain('spillway serve --node http://gpu-1:8000');
    expect(stdout).toContain('Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.');
  });

  test('takes a reader that has seen enough for no failure', async () => {
    const child = fixture.shell(
      `${process.execPath} ${CLI} --help 2>${join(fixture.folder, 'err')} | head -c 1`,
    );
    await new Promise((resolve) => child.once('close', resolve));
    expect(readFileSync(join(fixture.folder, 'err'), 'utf8')).toBe('');
  });

  test.each([
    [['serve']],
    [['check']],
    [['demo']],
    [['nodes']],
    [['queue']],
    [['signals']],
    [['ledgers']],
    [['top']],
    [['config']],
    [['config', 'show']],
    [['config', 'set']],
    [['config', 'rollback']],
    [['explain']],
    [['keys']],
    [['keys', 'create']],
    [['keys', 'list']],
    [['keys', 'revoke']],
  ])('shows an example in the help of %j', async (command) => {
    const { code, stdout } = await fixture.cli([...command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Examples?:\n {2}\S/m);
    expect(stdout).toContain(`spillway ${command.join(' ')}`);
  });

  test('suggests the command that was meant', async () => {
    const { code, stderr } = await fixture.cli(['nodse']);
    expect(code).toBe(2);
    expect(stderr).toContain('Did you mean nodes?');
  });

  test.each([
    [['nonsense']],
    [['serve', '--prot', '1']],
    [['serve', '--port', '99999']],
    [['check']],
    [['keys', 'create']],
  ])('ends with 2 and a hint for %j', async (args) => {
    const { code, stdout, stderr } = await fixture.cli(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/error: /);
    expect(stderr).not.toMatch(/\n {4}at /);
  });
});

describe('spillway check', () => {
  test('lists every issue with file, line and column and ends with 2', async () => {
    const path = file('bad.yaml', 'nodes:\n  - url: ftp://x\nbonds: {}\nserver:\n  port: 70000\n');
    const { code, stdout, stderr } = await fixture.cli(['check', path]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.trim().split('\n')).toEqual([
      `${path}:2:10: nodes[0].url: Expected http:// or https://, a host, and optionally a port and a base path (received "ftp://x")`,
      `${path}:3:1: bonds: Unknown key; did you mean bounds?`,
      `${path}:5:9: server.port: Expected a whole number from 0 to 65535 port (received 70000)`,
    ]);
  });

  test('writes one JSON document with the issues', async () => {
    const path = file('bad.yaml', 'seed: -1');
    const { code, stdout } = await fixture.cli(['check', path, '--json']);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      issues: [{ path: ['seed'], line: 1, column: 7, received: '-1' }],
    });
  });

  test('ends with 0 for a good configuration and says what it amounts to', async () => {
    const path = file('good.yaml', 'nodes: [{ url: "http://a:1" }]');
    expect(await fixture.cli(['check', path])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('no issues'),
    });
    const { stdout } = await fixture.cli(['check', path, '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, nodes: 1, classes: 3 });
  });
});

describe('spillway serve', () => {
  test('serves the nodes of the command line and finds its way back for nodes, queue and explain', async () => {
    const stub = await fixture.stub();
    const { document, stderr } = await fixture.serve(['--node', stub.url]);
    const answer = await chat(document.dataUrl);
    expect(answer.status).toBe(200);
    const nodes = await fixture.cli(['nodes', '--json']);
    expect(JSON.parse(nodes.stdout)).toMatchObject({
      nodes: [{ url: stub.url, state: 'active', source: 'command-line' }],
    });
    expect((await fixture.cli(['queue'])).stdout).toContain('0 waiting, 0 running');
    const explained = await fixture.cli(['explain', String(answer.headers['x-spillway-id'])]);
    expect(explained.stdout).toContain('served on');
    expect(statSync(document.adminTokenFile).mode & 0o777).toBe(0o600);
    const token = readFileSync(document.adminTokenFile, 'utf8').trim();
    expect(stderr()).not.toContain(token);
  });

  test('says what it looked for when nothing is there, and what to do next', async () => {
    // The usual ports of this machine may be taken, by an engine or by anything.
    const { document, child, ended } = await fixture.serve([]);
    const { found } = document as unknown as { found: readonly string[] };
    child.kill('SIGTERM');
    expect(await ended()).toBe(0);
    if (found.length > 0) return;
    const plain = spawnPlain();
    const text = await plain.until(/spillway demo/);
    expect(text).toContain('11434 (Ollama), 8000 (vLLM), 30000 (SGLang)');
    expect(text).toContain('spillway serve --node http://');
  });

  test('prints a curl line that works', async () => {
    const stub = await fixture.stub("it's a model");
    const plain = spawnPlain(stub.url);
    const text = await plain.until(/-d '.*'\n/);
    const line = text.slice(text.indexOf('curl '));
    const ran = await runShell(`curl -s ${line.slice(5)}`);
    expect(JSON.parse(ran)).toMatchObject({ choices: [{ message: { content: 'hello' } }] });
  });

  test('refuses a configuration with issues before it listens', async () => {
    const path = file('bad.yaml', 'nodes: [{ url: "nope" }]');
    const { code, stdout, stderr } = await fixture.cli(['serve', '--config', path]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/bad\.yaml:1:16: nodes\[0\]\.url/);
    expect((await fixture.cli(['serve', '--node', 'nope'])).stderr).toMatch(/^command line: nodes\[0\]\.url/);
    expect((await fixture.cli(['serve', '--host', '0.0.0.0', '--port', '0'])).stderr).toContain(
      'Without tenant keys',
    );
  });

  test('says what to do when the port is in use or another gateway has the folder', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address() as { port: number };
    const busy = await fixture.cli(['serve', '--port', String(port), '--node', 'http://127.0.0.1:9']);
    expect([busy.code, busy.stderr]).toEqual([
      1,
      expect.stringContaining('the port is in use; stop what uses it, or name another one with --port'),
    ]);
    taken.close();
    await fixture.serve(['--node', 'http://127.0.0.1:9']);
    const second = await fixture.cli(['serve', '--port', '0', '--node', 'http://127.0.0.1:9']);
    expect([second.code, second.stderr]).toEqual([
      1,
      expect.stringMatching(/Another gateway .* uses the state folder/),
    ]);
  });

  test('lets what runs finish on SIGTERM, refuses what comes, and ends with 0', async () => {
    const stub = await fixture.stub();
    const { child, document, ended, stderr } = await fixture.serve(['--node', stub.url]);
    stub.holding = true;
    const running = chat(document.dataUrl);
    await vi.waitUntil(() => stub.calls === 1, { timeout: 20_000 });
    child.kill('SIGTERM');
    await vi.waitUntil(async () => (await call(`${document.dataUrl}/readyz`)).status === 503, {
      timeout: 10_000,
    });
    stub.release();
    expect((await running).status).toBe(200);
    expect(await ended()).toBe(0);
    expect(stderr()).toContain('The gateway stopped');
    expect((await fixture.cli(['nodes'])).code).toBe(1);
  });

  test('serves its registered nodes again after it was killed, cordoned ones still cordoned', async () => {
    const stub = await fixture.stub();
    const { child, document, ended } = await fixture.serve(['--node', stub.url]);
    const token = readFileSync(document.adminTokenFile, 'utf8').trim();
    const ids = Array.from({ length: 30 }, (_, i) => `n${i}`);
    for (const id of ids) {
      const body = { id, url: stub.url, models: ['stub-model'], slots: 1 };
      expect((await call(`${document.adminUrl}/spillway/v1/nodes`, { token, body })).status).toBe(201);
    }
    await call(`${document.adminUrl}/spillway/v1/nodes/n7`, {
      token,
      method: 'PATCH',
      body: { cordoned: true },
    });
    child.kill('SIGKILL');
    await ended();
    const again = await fixture.serve([]);
    expect((await chat(again.document.dataUrl)).status).toBe(200);
    const rows = JSON.parse((await fixture.cli(['nodes', '--json'])).stdout).nodes as {
      id: string;
      state: string;
    }[];
    expect(rows.map((row) => row.id).toSorted()).toEqual(ids.toSorted());
    expect(rows.find((row) => row.id === 'n7')?.state).toBe('cordoned');
  });

  test('keeps no prompt and no key in its log', async () => {
    const stub = await fixture.stub();
    const { child, document, ended, stderr } = await fixture.serve([
      '--node',
      stub.url,
      '--log-level',
      'debug',
    ]);
    const body = { model: 'stub-model', messages: [{ role: 'user', content: 'a-secret-prompt' }] };
    await call(`${document.dataUrl}/v1/chat/completions`, { body, token: 'a-secret-key' });
    child.kill('SIGTERM');
    await ended();
    expect(stderr()).toContain('stopped');
    expect(stderr()).not.toMatch(/a-secret-prompt|a-secret-key/);
  });
});

describe('spillway nodes', () => {
  test('says what to do when no gateway answers, and when the token is missing or wrong', async () => {
    const nobody = await fixture.cli(['nodes', '--url', 'http://127.0.0.1:9']);
    expect([nobody.code, nobody.stderr]).toEqual([
      1,
      expect.stringContaining('start one with `spillway serve`, or name it with --url'),
    ]);
    const { document } = await fixture.serve(['--node', 'http://127.0.0.1:9']);
    const elsewhere = ['nodes', '--url', document.adminUrl, '--state', join(fixture.folder, 'none')];
    const missing = await fixture.cli(elsewhere);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('asks for its admin token')]);
    const wrong = await fixture.cli([...elsewhere, '--token', 'wrong']);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('refused the token')]);
  });
});

describe('spillway nodes and queue', () => {
  test('stay readable at 80 columns, whatever the names are', async () => {
    const stub = await fixture.stub('an-organisation/a-model-with-a-rather-long-name-70b-instruct');
    const { document } = await fixture.serve(['--node', stub.url]);
    stub.holding = true;
    const model = 'an-organisation/a-model-with-a-rather-long-name-70b-instruct';
    const asked = chat(document.dataUrl, { model });
    await vi.waitUntil(() => stub.calls === 1, { timeout: 20_000 });
    for (const command of ['nodes', 'queue']) {
      const { code, stdout } = await fixture.cli([command]);
      expect(code).toBe(0);
      expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    }
    const nodes = await fixture.cli(['nodes']);
    expect(nodes.stdout).toMatch(/^NODE +STATE +HEALTH +BUSY/);
    stub.release();
    await asked;
  });
});

describe('spillway keys', () => {
  test('shows a secret once, stores its hash alone, and lists and revokes it', async () => {
    const created = await fixture.cli(['keys', 'create', '--tenant', 'acme', '--id', 'k1']);
    const secret = created.stdout.trim();
    expect([created.code, secret]).toEqual([0, expect.stringMatching(/^sk-spillway-[\w-]{32}$/)]);
    const path = join(fixture.folder, 'state', 'keys.json');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, 'utf8')).not.toContain(secret);
    expect(readFileSync(path, 'utf8')).toContain(createHash('sha256').update(secret).digest('hex'));
    const listed = JSON.parse((await fixture.cli(['keys', 'list', '--json'])).stdout);
    expect(listed.keys).toEqual([{ id: 'k1', tenant: 'acme', createdAt: expect.any(String) }]);
    expect((await fixture.cli(['keys', 'revoke', 'k1'])).code).toBe(0);
    expect((await fixture.cli(['keys', 'revoke', 'k1'])).code).toBe(1);
    // Metrics use this name for all the rest, so a gateway would refuse the tenant.
    expect((await fixture.cli(['keys', 'create', '--tenant', 'other'])).code).toBe(2);
  });

  test('creates the first key of a configuration that may not start without one', async () => {
    const config = join(fixture.folder, 'public.yaml');
    writeFileSync(
      config,
      'server: { host: 0.0.0.0 }\nkeysFile: keys.json\nnodes: [{ url: http://127.0.0.1:9 }]\n',
    );
    expect((await fixture.cli(['check', config])).code).toBe(2);
    const created = await fixture.cli(['keys', 'create', '--config', config, '--tenant', 'acme']);
    expect([created.code, existsSync(join(fixture.folder, 'keys.json'))]).toEqual([0, true]);
    expect((await fixture.cli(['check', config])).code).toBe(0);
  });

  test('opens the data plane to its key and closes it when the key is revoked, without a restart', async () => {
    const stub = await fixture.stub();
    const secret = (await fixture.cli(['keys', 'create', '--tenant', 'acme', '--id', 'k1'])).stdout.trim();
    await fixture.cli(['keys', 'create', '--tenant', 'second', '--id', 'k2']);
    const { document } = await fixture.serve(['--node', stub.url]);
    expect((await chat(document.dataUrl)).status).toBe(401);
    expect((await chat(document.dataUrl, { token: secret })).status).toBe(200);
    expect((await fixture.cli(['keys', 'revoke', 'k1'])).code).toBe(0);
    await vi.waitUntil(async () => (await chat(document.dataUrl, { token: secret })).status === 401, {
      timeout: 15_000,
    });
  });
});

/** `serve` for people, as its output. */
function spawnPlain(node?: string): { until(pattern: RegExp): Promise<string> } {
  let text = '';
  const child = fixture.spawn(['serve', '--port', '0', ...(node === undefined ? [] : ['--node', node])]);
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return {
    async until(pattern) {
      await vi.waitUntil(() => pattern.test(text), { timeout: 20_000 });
      return text;
    },
  };
}

/** Asynchronous, since the stub answers in this process. */
function runShell(command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = fixture.shell(command);
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    child.once('error', reject);
    child.once('close', () => resolve(text));
  });
}
