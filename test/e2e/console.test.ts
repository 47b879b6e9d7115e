/** The console in a real browser, on a real gateway; the accelerators are emulated. */
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { buildConsole } from '../../scripts/build-console.ts';
import { browserPath } from '../support/browser.ts';
import { type CaseBench, createCaseBench, nodeAt, open } from '../support/case-bench.ts';
import {
  type ConsolePage,
  expectNoComplaints,
  graveFaults,
  launchBrowser,
  openConsole,
} from './console-bench.ts';

describe.skipIf(browserPath() === undefined)('the console', () => {
  let browser: Browser;
  let bench: CaseBench;

  beforeAll(async () => {
    await buildConsole();
    browser = await launchBrowser();
  });

  afterAll(() => browser?.close());

  beforeEach(() => {
    bench = createCaseBench();
  });

  afterEach(() => bench.end());

  async function enter(
    ...[started, options]: [Parameters<typeof openConsole>[1], Parameters<typeof openConsole>[2]?]
  ): Promise<ConsolePage> {
    const opened = await openConsole(browser, started, options);
    bench.onEnd(() => opened.close());
    return opened;
  }

  test('refuses a wrong token with the words of the gateway, and lets the right one in', async () => {
    const started = await bench.gateway({});
    const opened = await enter(started);
    const { page } = opened;
    await page.getByLabel('Admin token').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').filter({ hasText: 'Expected Authorization' }).waitFor();
    await opened.logIn();
    await page.getByText('No node is registered.').waitFor();
    expect(await opened.context.cookies()).toEqual([]);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Admin token').waitFor();
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  });

  test('shows what waits and how the fleet is, as it changes', async () => {
    const held: (() => void)[] = [];
    const node = await bench.node((res) => void held.push(() => res.writeHead(500).end()));
    const started = await bench.gateway({ nodes: [nodeAt('one', node)] });
    const opened = await enter(started);
    const { page } = opened;
    await opened.logIn();
    const sockets = await Promise.all([1, 2, 3].map(() => open(started.dataUrl, { className: 'low' })));
    bench.onEnd(() => sockets.forEach((socket) => void socket.destroy()));
    const waiting = page.getByRole('row', { name: /^low/ }).getByRole('cell').nth(1);
    await expect.poll(() => waiting.textContent(), { timeout: 10_000 }).toBe('2');
    await page.getByLabel('Fleet map').focus();
    await page.keyboard.press('ArrowRight');
    await page.getByText(/one: .*1 of 1 slots/).waitFor();
    await expectNoComplaints(opened);
  });

  test.each(['light', 'dark'] as const)('has no serious fault of access in the %s theme', async (theme) => {
    const started = await bench.gateway({ nodes: [nodeAt('one', { url: 'http://127.0.0.1:9' })] });
    const opened = await enter(started, { theme });
    expect(await graveFaults(opened)).toEqual([]);
    await opened.logIn();
    expect(await graveFaults(opened)).toEqual([]);
    await expectNoComplaints(opened);
  });
});
