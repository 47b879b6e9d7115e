/**
 * Writes the pictures of the console that the guide shows into `docs/images`: a real gateway, overloaded by real clients
 * over an emulated fleet, in a real browser. `node scripts/console-images.ts`, about half a minute.
 */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import { type StartedGateway, startGateway } from '../src/apps/gateway/start-gateway.ts';
import { resolveConfig } from '../src/core/config/index.ts';
import type { WorkProfile } from '../src/core/config/types.ts';
import {
  IMAGE_MODELS,
  PIXELS_REFERENCE,
  STEPS_REFERENCE,
  startEmulatedFleet,
} from '../src/emulator/index.ts';
import { browserPath } from '../test/support/browser.ts';
import { buildConsole } from './build-console.ts';

const FOLDER: string = fileURLToPath(new URL('../docs/images/', import.meta.url));
const IMAGE_BYTES_MAX = 200 * 1024;
const MODEL = 'emulated-image';
const NODES = 60;
const SPEEDUP = 2;
const CLIENTS = 300;
const LOAD_MS = 20_000;
const VIEW = { width: 1160, height: 820 };
const HARDWARE = ['T4', 'T4', 'A100', 'V100', 'H100'] as const;
const CLASSES = ['critical', 'normal', 'low', 'low'] as const;

/** Steps of an image, so that nodes are not all done at once. */
const STEPS = [10, 20, 30, 50, 80] as const;

const PROFILE: WorkProfile = {
  kind: 'image',
  fixedMs: IMAGE_MODELS.A100.fixedMs / SPEEDUP,
  msPerMegapixelStep: IMAGE_MODELS.A100.perImageMs / STEPS_REFERENCE / (PIXELS_REFERENCE / 1e6) / SPEEDUP,
  stepsDefault: STEPS_REFERENCE,
  pixelsDefault: PIXELS_REFERENCE,
};

const executablePath = browserPath();
if (executablePath === undefined) throw new Error('No browser is installed: node scripts/install-browser.ts');
mkdirSync(FOLDER, { recursive: true });
await buildConsole();
const fleet = await startEmulatedFleet({
  speedup: SPEEDUP,
  nodes: Array.from({ length: NODES }, (_, i) => {
    const hardware = HARDWARE[(i * 7) % HARDWARE.length] ?? 'T4';
    const id = `gpu-${String(i).padStart(2, '0')}`;
    return { id, kind: 'image' as const, model: MODEL, statedHardware: hardware, trueHardware: hardware };
  }),
});
const resolved = resolveConfig({
  server: { port: 0 },
  models: [{ id: MODEL, profile: PROFILE }],
  nodes: fleet.nodes.map(({ id, url, spec }) => ({
    id,
    url,
    slots: 1,
    hardware: spec.statedHardware,
    models: [{ model: MODEL }],
  })),
});
if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
const started = await startGateway(resolved.config);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const ending = new AbortController();
try {
  await started.gateway.setCordoned('gpu-07', true);
  await started.gateway.setDraining('gpu-23', true);
  await fleet.setFaults('gpu-31', { dead: true });
  const page = await browser.newPage({ viewport: VIEW, colorScheme: 'light' });
  await page.goto(`${started.adminUrl}/console`);
  await page.getByLabel('Admin token').fill(started.adminToken);
  await page.keyboard.press('Enter');
  await page.getByText('Live', { exact: true }).waitFor();
  const load = Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(started, i)));
  await new Promise((resolve) => setTimeout(resolve, LOAD_MS));
  await page.getByLabel('Fleet map').focus();
  for (let i = 0; i < 20; i++) await page.keyboard.press('ArrowRight');
  await shoot(page, 'console-overview.png');
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(`${started.adminUrl}/console#/requests`);
  await page.getByRole('row', { name: /low/ }).last().getByRole('link').click();
  await page.getByRole('heading', { name: 'queued' }).waitFor();
  await page.getByText('What would help:').waitFor();
  await shoot(page, 'console-request.png');
  ending.abort();
  await load;
} finally {
  await browser.close();
  await started.stop();
  await fleet.close();
}

/** Asks again and again, and waits before it does when it was refused. */
async function client({ dataUrl }: StartedGateway, index: number): Promise<void> {
  const headers = {
    'content-type': 'application/json',
    'x-spillway-class': CLASSES[index % CLASSES.length] ?? 'low',
    'x-spillway-deadline-ms': '60000',
  };
  const steps = STEPS[index % STEPS.length] ?? STEPS_REFERENCE;
  const body = JSON.stringify({ model: MODEL, prompt: 'a lighthouse', steps });
  while (!ending.signal.aborted) {
    const answer = await fetch(`${dataUrl}/v1/images/generations`, {
      method: 'POST',
      headers,
      body,
      signal: ending.signal,
    }).catch(() => undefined);
    await answer?.arrayBuffer().catch(() => undefined);
    if (answer?.status !== 200) await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
}

async function shoot(page: Page, name: string): Promise<void> {
  const path = join(FOLDER, name);
  await page.screenshot({ path });
  const { size } = statSync(path);
  if (size > IMAGE_BYTES_MAX)
    throw new Error(`${name} has ${size} bytes, expected at most ${IMAGE_BYTES_MAX}`);
  process.stdout.write(`${path} (${Math.round(size / 1024)} KiB)\n`);
}
