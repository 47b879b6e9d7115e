/** What tests of the console stand on: the built console, a real gateway, and a real browser that fails on any error. */
import AxeBuilder from '@axe-core/playwright';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { browserPath } from '../support/browser.ts';

const VIEW = { width: 1280, height: 900 };

export async function launchBrowser(): Promise<Browser> {
  const executablePath = browserPath();
  if (executablePath === undefined) throw new Error('No browser is installed');
  // The sandbox needs rights that containers and root do not have; only our own page is loaded.
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
}

export interface ConsolePage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page or the browser complained about: errors, refused scripts and styles. */
  readonly complaints: readonly string[];
  logIn(): Promise<void>;
  close(): Promise<void>;
}

export interface ConsoleOptions {
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
  readonly everyMs?: number;
}

export async function openConsole(
  browser: Browser,
  started: StartedGateway,
  options: ConsoleOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({
    viewport: { ...VIEW, width: options.width ?? VIEW.width },
    colorScheme: options.theme ?? 'light',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    const isComplaint = message.type() === 'error' || message.type() === 'warning';
    // An answer of the gateway that is no success is shown by the page, and is no fault of it.
    if (isComplaint && !message.text().startsWith('Failed to load')) complaints.push(message.text());
  });
  await page.goto(`${started.adminUrl}/console?everyMs=${options.everyMs ?? 250}`);
  return {
    page,
    context,
    complaints,
    async logIn() {
      await page.getByLabel('Admin token').fill(started.adminToken);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
    },
    close: () => context.close(),
  };
}

const GRAVE = new Set(['serious', 'critical']);

/** Serious and critical faults of what is on the screen, as axe finds them. */
export async function graveFaults({ page }: ConsolePage): Promise<readonly string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations
    .filter(({ impact }) => GRAVE.has(impact ?? ''))
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`));
}

export async function expectNoComplaints({ complaints }: ConsolePage): Promise<void> {
  expect(complaints).toEqual([]);
}
