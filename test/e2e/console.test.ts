/** The console in a real browser, on a real gateway; the accelerators are emulated. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createFixture } from '../integration/cli-fixture.ts';
import { completion, sendJson } from '../integration/edge-fixture.ts';
import { browserPath } from '../support/browser.ts';
import { ask, IMAGE_MODEL, imageNodes, imageProfile, nodeAt, open, sendMany } from '../support/case-bench.ts';
import { consoleSuite, expectNoComplaints, STEP_MS_MAX } from './console-bench.ts';

/** An emulated T4 takes about a quarter of a second for an image. */
const SPEEDUP = 60;

describe.skipIf(browserPath() === undefined)('the console', () => {
  const suite = consoleSuite();

  test('refuses a wrong token with the words of the gateway, and lets the right one in', async () => {
    const started = await suite.bench.gateway({});
    const opened = await suite.open(started);
    const { page } = opened;
    await page.getByLabel('Admin token').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').filter({ hasText: 'Expected Authorization' }).waitFor();
    await opened.logIn();
    await page.getByText('No node is registered.').waitFor();
    expect(await opened.context.cookies()).toEqual([]);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Admin token').waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    expectNoComplaints(opened);
  });

  test('shows a spike over emulated nodes as it comes and goes, without loading anything again', async () => {
    const nodes = ['a', 'b', 'c', 'd'].map((id) => ({
      id,
      kind: 'image' as const,
      model: IMAGE_MODEL,
      statedHardware: 'T4' as const,
      trueHardware: 'T4' as const,
    }));
    const fleet = await suite.bench.fleet({ speedup: SPEEDUP, nodes });
    const started = await suite.bench.gateway({
      nodes: imageNodes(fleet),
      models: [{ id: IMAGE_MODEL, profile: imageProfile(SPEEDUP) }],
    });
    const opened = await suite.open(started);
    const { page } = opened;
    await opened.logIn();
    const waiting = page.getByRole('row', { name: /^low/ }).getByRole('cell').nth(1);
    await expect.poll(() => waiting.textContent(), { timeout: STEP_MS_MAX }).toBe('0');
    const client = suite.bench.client(started.dataUrl);
    const spike = sendMany(client, {
      count: 40,
      concurrency: 40,
      wish: () => ({ model: IMAGE_MODEL, className: 'low', deadlineMs: 60_000 }),
    });
    await expect
      .poll(async () => Number(await waiting.textContent()), { timeout: STEP_MS_MAX })
      .toBeGreaterThan(5);
    await page.getByLabel('Fleet map').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.getByText(/b: .* of 1 slots/).waitFor();
    await expect.poll(() => waiting.textContent(), { timeout: STEP_MS_MAX }).toBe('0');
    expect((await spike).filter(({ answer }) => answer?.status === 200)).toHaveLength(40);
    expectNoComplaints(opened);
  });

  test('shows what a detector found, on what evidence, and what to do', async () => {
    const node = await suite.bench.vllm((res) => sendJson(res, 200, completion('hello')));
    const started = await suite.bench.gateway({
      nodes: [nodeAt('one', node, { protocol: 'vllm' })],
      health: { reconcileMs: 500, suspectLeaseMs: 1_000 },
    });
    const opened = await suite.open(started);
    const { page } = opened;
    await opened.logIn();
    await page.getByText(/^Nothing found; \d+ detectors look/).waitFor();
    await expect.poll(() => node.reads, { timeout: STEP_MS_MAX }).toBeGreaterThan(1);
    node.page = 'missing';
    const finding = page.getByRole('listitem').filter({ hasText: 'stale-readings' });
    await finding.getByText('What to do:').waitFor({ timeout: 2 * STEP_MS_MAX });
    await finding.getByText('node one').waitFor();
    await finding.getByText('Evidence').click();
    await finding.getByText('docs/signals/stale-readings.md').waitFor();
    expectNoComplaints(opened);
  });

  test('opens a waiting request and tells what holds it, which nodes may not take it, and what would help', async () => {
    const node = await suite.bench.node(() => undefined);
    const started = await suite.bench.gateway({ nodes: [nodeAt('one', node)] });
    for (const className of ['critical', 'low']) {
      const socket = await open(started.dataUrl, { className, deadlineMs: 60_000 });
      suite.bench.onEnd(() => void socket.destroy());
    }
    const opened = await suite.open(started);
    const { page } = opened;
    await opened.logIn();
    await opened.goTo('Requests');
    await page.getByRole('row', { name: /low/ }).getByRole('link').click();
    await page.getByRole('heading', { name: 'queued' }).waitFor();
    await page.getByText('What would help:').waitFor();
    await page.getByRole('link', { name: 'See one' }).waitFor();
    await page.getByRole('heading', { name: 'What holds it' }).waitFor();
    const row = page.getByRole('row', { name: /^one/ });
    expect(await row.getByRole('cell').first().textContent()).toBe('no');
    expect(await row.getByRole('cell').nth(1).textContent()).toContain('no-room');
    const queued = page.getByRole('row', { name: /queued/ });
    expect(await queued.getByRole('cell').last().textContent()).toBe('1 no-room');
    await opened.goTo('Requests');
    await page.getByLabel('Decisions').check();
    await page
      .getByRole('row', { name: /placed/ })
      .getByRole('link')
      .click();
    await page.getByRole('heading', { name: 'running' }).waitFor();
    expectNoComplaints(opened);
  });

  test('cordons a node by keyboard alone, after it was asked whether it is meant', async () => {
    const engine = await suite.bench.node(() => undefined);
    const started = await suite.bench.gateway({ nodes: [nodeAt('one', engine)] });
    const opened = await suite.open(started);
    const { page } = opened;
    await opened.logIn();
    await opened.goTo('Nodes');
    const opener = page.getByRole('button', { name: 'Open one' });
    await opener.focus();
    await page.keyboard.press('Enter');
    const node = page.getByRole('dialog', { name: 'one' });
    const cordon = node.getByRole('button', { name: 'Cordon', exact: true });
    await cordon.waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await node.getByRole('group', { name: 'Cordon one?' }).waitFor();
    await page.keyboard.press('Escape');
    // A closed dialog has no role any more, and is taken away a moment later: only then can it be opened anew.
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(started.gateway.node('one')?.cordoned).toBe(false);
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Open one');
    await page.keyboard.press('Enter');
    await cordon.focus();
    await page.keyboard.press('Enter');
    await node.getByRole('button', { name: 'Yes, cordon one' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('one is cordoned.').waitFor();
    expect(started.gateway.node('one')?.cordoned).toBe(true);
    await page.getByRole('row', { name: /^one cordoned/ }).waitFor();
    await page.keyboard.press('Enter');
    await node.getByRole('button', { name: 'Uncordon' }).waitFor();
    expectNoComplaints(opened);
  });

  test('shows what clients sent as text, whatever it looks like', async () => {
    const started = await suite.bench.gateway({});
    const model = '<img src=x onerror="document.title=1">';
    await ask(started.dataUrl, { model });
    const opened = await suite.open(started);
    const { page } = opened;
    await opened.logIn();
    await opened.goTo('Requests');
    await page.getByLabel('Ended').check();
    await page.getByRole('cell', { name: model }).waitFor();
    await page
      .getByRole('row', { name: /unknown-model/ })
      .getByRole('link')
      .click();
    await page.getByRole('definition').filter({ hasText: model }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expectNoComplaints(opened);
  });

  test('changes a class weight, shows it in force, and rolls it back', async () => {
    const fixture = createFixture();
    suite.bench.onEnd(() => fixture.end());
    const file = join(fixture.folder, 'spillway.yaml');
    writeFileSync(
      file,
      'classes:\n  - name: critical\n    weight: 8\n  - name: normal\n  - name: low\n    weight: 1\n',
    );
    const { document } = await fixture.serve(['--config', file, '--port', '0']);
    const adminToken = readFileSync(document.adminTokenFile, 'utf8').trim();
    const opened = await suite.open({ adminUrl: document.adminUrl, adminToken });
    const { page } = opened;
    await opened.logIn();
    await opened.goTo('Configuration');
    await page.getByLabel('low').fill('3');
    await page.getByRole('button', { name: 'Try' }).click();
    await page.getByText('It would change classes.low.weight from 1 to 3.').waitFor();
    await page.getByLabel('Why').fill('the batch window is short today');
    await page.getByRole('button', { name: 'Put in force' }).click();
    await page.getByText('Version 1 is in force').waitFor();
    await page.getByLabel('Find by path').fill('classes.low.weight');
    const value = page.getByRole('row', { name: /^classes\.low\.weight/ });
    await expect.poll(() => value.textContent(), { timeout: STEP_MS_MAX }).toContain('overlay (version 1)');
    expect(await value.getByRole('cell').first().textContent()).toBe('3');
    await page.getByRole('button', { name: 'Roll back to version 0' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
    await page.getByText('Rolled back: classes.low.weight from 3 to 1.').waitFor();
    await expect
      .poll(() => value.getByRole('cell').first().textContent(), { timeout: STEP_MS_MAX })
      .toBe('1');
    expect(await value.textContent()).toContain('spillway.yaml:');
    expectNoComplaints(opened);
  });

  test('says when the gateway hangs or is gone, and goes on by itself when it is back', async () => {
    const fixture = createFixture();
    suite.bench.onEnd(() => fixture.end());
    const first = await fixture.serve(['--port', '0', '--node', 'http://127.0.0.1:9']);
    const { adminUrl, adminTokenFile } = first.document;
    const opened = await suite.open({ adminUrl, adminToken: readFileSync(adminTokenFile, 'utf8').trim() });
    const { page } = opened;
    await opened.logIn();
    // Stopped, not ended: its connections stay open, and nothing comes.
    first.child.kill('SIGSTOP');
    const gone = page.getByRole('status').filter({ hasText: /^Not connected: .*; what is shown is of \d/ });
    await gone.filter({ hasText: 'no picture comes' }).waitFor();
    first.child.kill('SIGCONT');
    await page.getByText('Live', { exact: true }).waitFor();
    first.child.kill('SIGKILL');
    await first.ended();
    await gone.waitFor();
    await fixture.serve(['--port', new URL(adminUrl).port, '--node', 'http://127.0.0.1:9']);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText(/^1 node: /).waitFor();
    expectNoComplaints(opened);
  });
});
