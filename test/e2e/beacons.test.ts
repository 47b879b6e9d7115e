/**
 * Beacons from a real browser: the page of the documentation, on an origin of its own, in front of an application that calls
 * the gateway with its key.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sha256Hex } from '../../src/adapters/config-file/index.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { call } from '../integration/cli-fixture.ts';
import { completion, listen, sendJson } from '../integration/edge-fixture.ts';
import { browserPath } from '../support/browser.ts';
import { ask, type CaseBench, createCaseBench, nodeAt, within } from '../support/case-bench.ts';
import { launchBrowser } from './console-bench.ts';

const KEY = 'sk-acme';
const EXAMPLE_HOST = 'https://spillway.example.com';

/** The code that readers are told to take. */
function documentedCode(gatewayUrl: string): string {
  const page = readFileSync(new URL('../../docs/concepts/user-side.md', import.meta.url), 'utf8');
  const code = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
  expect(code).toContain('sendBeacon');
  expect(code).toContain(EXAMPLE_HOST);
  return code.replace(EXAMPLE_HOST, gatewayUrl);
}

describe.skipIf(browserPath() === undefined)('a browser', () => {
  let browser: Browser;
  let bench: CaseBench;
  let page: Page;

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());
  beforeEach(async () => {
    bench = createCaseBench();
    page = await browser.newPage();
  });
  afterEach(async () => {
    await page.close();
    await bench.end();
  });

  interface Application {
    readonly origin: string;
    /** The gateway that its backend calls, known once it runs. */
    gatewayUrl: string;
  }

  /** Serves its page, and passes what the gateway says on to it. */
  async function application(): Promise<Application> {
    const app = { origin: '', gatewayUrl: '' };
    const server = createServer((req, res) => {
      if (req.url !== '/api/chat')
        return res.writeHead(200, { 'content-type': 'text/html' }).end('<p>A page</p>');
      req.resume();
      void ask(app.gatewayUrl, { headers: { authorization: `Bearer ${KEY}` } }).then((answer) => {
        const passed = ['x-spillway-beacon', 'x-spillway-id'].map((name) => [name, answer.headers[name]]);
        res.writeHead(answer.status, Object.fromEntries(passed)).end(answer.text);
      });
      return res;
    });
    app.origin = `http://127.0.0.1:${await listen(server)}`;
    bench.onEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    return app;
  }

  async function gateway(originsAllowed: readonly string[]): Promise<StartedGateway> {
    const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
    return bench.gateway({
      nodes: [nodeAt('n0', node, { slots: 4 })],
      tenants: [{ id: 'acme', keys: [{ id: 'k', sha256: sha256Hex(KEY) }] }],
      rum: { enabled: true, originsAllowed },
    });
  }

  async function beacons(started: StartedGateway): Promise<Readonly<Record<string, number>>> {
    const answer = await call(`${started.adminUrl}/spillway/v1/user-side`, { token: started.adminToken });
    return answer.json['beacons'] as Readonly<Record<string, number>>;
  }

  /** Runs code in the page as a module would, and returns what it returns. */
  function run<T>(code: string): Promise<T> {
    return page.evaluate<T>(`(async () => { const question = 'hello?'; ${code} })()`);
  }

  test('tells by sendBeacon what its user saw, with the code of the documentation', async () => {
    const app = await application();
    const started = await gateway([app.origin]);
    app.gatewayUrl = started.dataUrl;
    await page.goto(app.origin);
    await run(documentedCode(started.dataUrl));
    await within(10_000, 'the beacon has come', async () => (await beacons(started))['accepted'] === 1);
    const answer = await call(`${started.adminUrl}/spillway/v1/user-side`, { token: started.adminToken });
    const [row] = answer.json['classes'] as {
      users: { completionMs: { count: number }; outcomes: object };
    }[];
    expect(row?.users).toMatchObject({ completionMs: { count: 1 }, outcomes: { ok: 1 } });
  });

  test('may ask first and read the answer, on an origin that is allowed and on no other', async () => {
    const [app, foreign] = [await application(), await application()];
    const started = await gateway([app.origin]);
    const post = `
      const answer = await fetch('${started.dataUrl}/spillway/v1/rum', {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}',
      });
      return answer.status;`;
    await page.goto(app.origin);
    expect(await run(post)).toBe(400);
    await page.goto(foreign.origin);
    await expect(run(post)).rejects.toThrow('Failed to fetch');
    await run(`navigator.sendBeacon('${started.dataUrl}/spillway/v1/rum', '{}');`);
    // What this origin sent by itself was refused before it was looked at.
    await page.goto(app.origin);
    expect(await run(post)).toBe(400);
    expect(await beacons(started)).toEqual({ unreadable: 2 });
  });
});
