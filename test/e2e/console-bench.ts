/** What tests of the console stand on: the built console, a real gateway, and a real browser that fails on any error. */
import AxeBuilder from '@axe-core/playwright';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { buildConsole } from '../../scripts/build-console.ts';
import { browserPath } from '../support/browser.ts';
import { type CaseBench, createCaseBench } from '../support/case-bench.ts';

const VIEW = { width: 1280, height: 900 };
/** For steps that wait for the gateway: long, because the machine may be busy, and met at once where it is not. */
export const STEP_MS_MAX = 15_000;

/** Where a gateway is reached, and with which token. */
export interface Reached {
  readonly adminUrl: string;
  readonly adminToken: string;
}

export interface ConsolePage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page or the browser complained about: errors, refused scripts and styles. */
  readonly complaints: readonly string[];
  logIn(): Promise<void>;
  /** By the link in the header, as a person goes there. */
  goTo(screen: 'Overview' | 'Requests' | 'Nodes' | 'Configuration'): Promise<void>;
}

export interface ConsoleOptions {
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
}

export interface ConsoleSuite {
  readonly bench: CaseBench;
  open(reached: Reached, options?: ConsoleOptions): Promise<ConsolePage>;
}

/** One browser for the tests of a file, a bench and a context for each test. */
export function consoleSuite(): ConsoleSuite {
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
  return {
    get bench() {
      return bench;
    },
    async open(reached, options = {}) {
      const opened = await openConsole(browser, reached, options);
      bench.onEnd(() => opened.context.close());
      return opened;
    },
  };
}

export async function launchBrowser(): Promise<Browser> {
  const executablePath = browserPath();
  if (executablePath === undefined) throw new Error('No browser is installed');
  // The sandbox needs rights that containers and root do not have; only our own page is loaded.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
  return chromium.launch({ executablePath, args });
}

async function openConsole(
  browser: Browser,
  { adminUrl, adminToken }: Reached,
  { theme = 'light', width = VIEW.width }: ConsoleOptions,
): Promise<ConsolePage> {
  const context = await browser.newContext({
    viewport: { ...VIEW, width },
    colorScheme: theme,
    reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(STEP_MS_MAX);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    const isComplaint = message.type() === 'error' || message.type() === 'warning';
    // An answer of the gateway that is no success is shown by the page, and is no fault of it.
    if (isComplaint && !message.text().startsWith('Failed to load')) complaints.push(message.text());
  });
  await page.goto(`${adminUrl}/console?everyMs=250`);
  return {
    page,
    context,
    complaints,
    async logIn() {
      await page.getByLabel('Admin token').fill(adminToken);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
    },
    async goTo(screen) {
      await page.getByRole('navigation').getByRole('link', { name: screen }).click();
      await page.getByRole('heading', { name: screen, level: 1 }).waitFor();
    },
  };
}

const GRAVE: ReadonlySet<string> = new Set(['serious', 'critical']);

/** Further rows of a table are like its first ones, and looking at all of them takes most of the time. */
const FURTHER_ROWS = 'tbody tr:nth-child(n + 4)';

/** Serious and critical faults of what is on the screen, as axe finds them. */
export async function graveFaults({ page }: ConsolePage): Promise<readonly string[]> {
  const { violations } = await new AxeBuilder({ page })
    .exclude(FURTHER_ROWS)
    // There are no frames, so the results need no page of their own to be put together.
    .setLegacyMode()
    .analyze();
  return violations
    .filter(({ impact }) => GRAVE.has(impact ?? ''))
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`));
}

export function expectNoComplaints({ complaints }: ConsolePage): void {
  expect(complaints).toEqual([]);
}
