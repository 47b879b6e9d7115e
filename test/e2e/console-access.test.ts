/** Nobody is kept out of the console: by contrast, by names that a screen reader lacks, by the width of a phone. */
import { describe, expect, test } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { browserPath } from '../support/browser.ts';
import { nodeAt, open } from '../support/case-bench.ts';
import { consoleSuite, expectNoComplaints, graveFaults } from './console-bench.ts';

const SCREENS = ['Overview', 'Requests', 'Nodes', 'Configuration'] as const;
const PHONE_PX = 360;
/** Looking at seven screens is work for the browser: seconds on a quiet machine. */
const LOOK_MS_MAX = 150_000;

describe.skipIf(browserPath() === undefined)('the console', () => {
  const suite = consoleSuite();

  async function startWithWaiting(): Promise<StartedGateway> {
    const node = await suite.bench.node(() => undefined);
    const started = await suite.bench.gateway({ nodes: [nodeAt('one', node)] });
    for (const className of ['critical', 'low']) {
      const socket = await open(started.dataUrl, { className, deadlineMs: 60_000 });
      suite.bench.onEnd(() => void socket.destroy());
    }
    return started;
  }

  test.each(['light', 'dark'] as const)(
    'has no serious fault of access in the %s theme',
    { timeout: LOOK_MS_MAX },
    async (theme) => {
      const opened = await suite.open(await startWithWaiting(), { theme });
      const { page } = opened;
      expect(await graveFaults(opened)).toEqual([]);
      await opened.logIn();
      for (const screen of SCREENS) {
        await opened.goTo(screen);
        await page.getByRole('table').first().waitFor();
        expect([screen, await graveFaults(opened)]).toEqual([screen, []]);
      }
      await opened.goTo('Requests');
      await page.getByRole('row', { name: /low/ }).getByRole('link').click();
      await page.getByRole('heading', { name: 'What holds it' }).waitFor();
      expect(await graveFaults(opened)).toEqual([]);
      await opened.goTo('Nodes');
      await page.getByRole('button', { name: 'Open one' }).click();
      await page.getByRole('button', { name: 'Drain' }).click();
      await page.getByRole('group', { name: 'Drain one?' }).waitFor();
      expect(await graveFaults(opened)).toEqual([]);
      expectNoComplaints(opened);
    },
  );

  test('fits the width of a phone on every screen, and its theme can be chosen', async () => {
    const opened = await suite.open(await startWithWaiting(), { width: PHONE_PX });
    const { page } = opened;
    await opened.logIn();
    for (const screen of SCREENS) {
      await opened.goTo(screen);
      await page.getByRole('table').first().waitFor();
      const width = await page.evaluate<number>('document.documentElement.scrollWidth');
      expect([screen, width]).toEqual([screen, PHONE_PX]);
    }
    const ground = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await ground();
    const theme = page.getByRole('button', { name: /^Theme/ });
    await theme.click();
    expect([await theme.textContent(), await ground()]).toEqual(['Theme: light', light]);
    await theme.click();
    expect(await theme.textContent()).toBe('Theme: dark');
    expect(await ground()).not.toBe(light);
    expectNoComplaints(opened);
  });

  test('is reached by keyboard alone, from the first key on', async () => {
    const started = await startWithWaiting();
    const opened = await suite.open(started);
    const { page } = opened;
    await page.keyboard.press('Tab');
    await page.keyboard.type(started.adminToken);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Fleet map');
    await page.keyboard.press('End');
    await page.getByText(/one: .*1 of 1 slots/).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Open one' }).waitFor();
    expectNoComplaints(opened);
  });
});
