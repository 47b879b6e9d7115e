/** The exporter that hosts really run, read as the gateway reads it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { createHostTelemetry } from '../../src/adapters/engines/index.ts';
import { nodeExporterPath } from '../support/promtool.ts';

const path = nodeExporterPath();
let exporter: ChildProcess | undefined;

afterEach(async () => {
  if (exporter?.kill() === true) await once(exporter, 'close');
});

/** Starts it on a free port; answers where its page is. */
async function startExporter(): Promise<string> {
  const child = spawn(
    path as string,
    ['--web.listen-address=127.0.0.1:0', '--collector.disable-defaults', '--collector.pressure'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  exporter = child;
  let text = '';
  for await (const chunk of child.stderr) {
    text += String(chunk);
    const found = /msg="Listening on" address=(\S+)/.exec(text);
    if (found !== null) return `http://${found[1]}/metrics`;
  }
  throw new Error(`The exporter ended: ${text}`);
}

describe.skipIf(path === undefined)('a node exporter', () => {
  test('tells what this machine waits for, and nothing of accelerators', async () => {
    const url = await startExporter();
    const reading = await createHostTelemetry().read({ url, gpus: [] }, 5_000);
    expect(reading).toEqual({
      accelerators: [],
      pressure: {
        cpuWaitingS: expect.any(Number),
        memoryStalledS: expect.any(Number),
        ioStalledS: expect.any(Number),
      },
    });
    const elsewhere = { url: url.replace('/metrics', '/nothing'), pressureUrl: url, gpus: [] };
    expect((await createHostTelemetry().read(elsewhere, 5_000))?.pressure).toBeDefined();
    expect(await createHostTelemetry().read({ url: elsewhere.url, gpus: [] }, 5_000)).toBeUndefined();
  });
});
