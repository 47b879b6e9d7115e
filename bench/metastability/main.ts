/**
 * Metastability: whether an overload ends with its cause. A gateway process of its own gets 0.8 of what its emulated fleet
 * can do, then 2.5 times the capacity for a minute, then 0.8 again, by users who try three times more at once, whatever they
 * were told. The same users meet the gateway as it is, with its gates off, and with round robin and no refusals in place of
 * its scheduler.
 *
 *   node bench/metastability/main.ts [--json] [--spike-seconds N]
 *
 * Goodput is the share of users who got their answer in time, by when they came. Exit code 1 unless it is back to 98 % of what
 * it was ten seconds after the end with the protections, and is not without them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { createHttpClient, type HttpClient, type HttpResult } from '../../src/apps/demo/http-client.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import {
  IMAGE_MODELS,
  imageServiceMs,
  PIXELS_REFERENCE,
  STEPS_REFERENCE,
  startEmulatedFleet,
} from '../../src/emulator/index.ts';
import { end, path, serveDocument } from '../gateway/children.ts';

const MODEL = 'emulated-image';
const SPEEDUP = 8;
const NODES = 12;
const SERVICE_MS: number =
  imageServiceMs(IMAGE_MODELS.A100, { images: 1, steps: STEPS_REFERENCE, pixels: PIXELS_REFERENCE }) /
  SPEEDUP;
const CAPACITY_PER_S: number = (NODES * 1_000) / SERVICE_MS;
const CALM = 0.8;
const SPIKE = 2.5;
/** Rates are learned before anything is measured. */
const WARM_S = 15;
const BEFORE_S = 20;
const RECOVERY_S = 10;
const AFTER_S = 20;
const DEADLINE_MS: number = Math.ceil(8 * SERVICE_MS);
const TRIES_MAX = 4;
const BACK = 0.98;
const READY_MS = 30_000;

type Protection = 'on' | 'gates off' | 'round robin';

const CONFIGS: Readonly<Record<Protection, Partial<ConfigInput>>> = {
  on: {},
  'gates off': {
    gates: {
      'flow-wait': 'off',
      limits: 'off',
      'retry-shed': 'off',
      breaker: 'off',
      bulkhead: 'off',
      concurrency: 'off',
      timeouts: 'off',
      ladder: 'off',
      preemption: 'off',
    },
  },
  'round robin': { policy: 'round-robin' },
};

interface User {
  readonly atMs: number;
  isServed: boolean;
}

interface Result {
  readonly protection: Protection;
  readonly before: number;
  readonly spike: number;
  readonly recovering: number;
  readonly after: number;
  /** `after` over `before`. */
  readonly ratio: number;
  readonly tries: number;
  readonly spikeRatePerS: number;
}

/** Users come at their rate whatever becomes of them. */
class Crowd {
  readonly users: User[] = [];
  tries = 0;
  readonly #client: HttpClient;
  readonly #underway: Set<Promise<void>> = new Set();

  constructor(client: HttpClient) {
    this.#client = client;
  }

  async arrive(perS: number, seconds: number): Promise<void> {
    const startedAt = performance.now();
    for (let come = 0; come < perS * seconds; ) {
      const due = Math.min(perS * seconds, ((performance.now() - startedAt) / 1_000) * perS);
      for (; come < due; come++) this.#enter();
      await pause(2);
    }
  }

  async settle(): Promise<void> {
    await Promise.all(this.#underway);
  }

  #enter(): void {
    const visit = this.#visit();
    this.#underway.add(visit);
    void visit.then(() => this.#underway.delete(visit));
  }

  async #visit(): Promise<void> {
    const number = this.users.length;
    const user: User = { atMs: performance.now(), isServed: false };
    this.users.push(user);
    for (let tries = 0; tries < TRIES_MAX && !user.isServed; tries++) {
      const result = await this.#try(number, tries);
      user.isServed = result.kind === 'answer' && result.answer.status === 200;
    }
  }

  /** Every other client says how often it has tried, as official ones do; all send the same body again. */
  #try(number: number, tries: number): Promise<HttpResult> {
    this.tries += 1;
    const body = JSON.stringify({ model: MODEL, prompt: `a lighthouse, user ${number}` });
    const count = number % 2 === 0 ? `x-stainless-retry-count: ${tries}\r\n` : '';
    const head = `POST /v1/images/generations HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
    const own = `x-spillway-deadline-ms: ${DEADLINE_MS}\r\n${count}content-length: ${body.length}\r\n\r\n`;
    return new Promise((resolve) => void this.#client.send(head + own + body, DEADLINE_MS, resolve));
  }
}

async function measure(protection: Protection, spikeS: number): Promise<Result> {
  const nodes = Array.from({ length: NODES }, (_, i) => {
    const hardware = { statedHardware: 'A100', trueHardware: 'A100' } as const;
    return { id: `node-${i}`, kind: 'image' as const, model: MODEL, ...hardware };
  });
  const fleet = await startEmulatedFleet({ speedup: SPEEDUP, nodes });
  const folder = mkdtempSync(join(tmpdir(), 'spillway-metastability-'));
  const urls = fleet.nodes.map((node) => node.url);
  const gateway = serve({ folder, urls, protection });
  try {
    const { dataUrl } = await serveDocument(gateway);
    return await runAt(dataUrl, protection, spikeS);
  } finally {
    await end(gateway);
    await fleet.close();
    rmSync(folder, { recursive: true });
  }
}

async function runAt(dataUrl: string, protection: Protection, spikeS: number): Promise<Result> {
  const port = Number(new URL(dataUrl).port);
  const client = createHttpClient({ host: '127.0.0.1', port, connectionsMax: 8_000 });
  try {
    await isReady(dataUrl);
    return await run(new Crowd(client), protection, spikeS);
  } finally {
    client.close();
  }
}

interface Site {
  readonly folder: string;
  readonly urls: readonly string[];
  readonly protection: Protection;
}

function serve({ folder, urls, protection }: Site): ChildProcess {
  const model = IMAGE_MODELS.A100;
  const profile = {
    kind: 'image',
    fixedMs: model.fixedMs / SPEEDUP,
    msPerMegapixelStep: model.perImageMs / STEPS_REFERENCE / (PIXELS_REFERENCE / 1e6) / SPEEDUP,
    stepsDefault: STEPS_REFERENCE,
    pixelsDefault: PIXELS_REFERENCE,
  };
  const nodes = urls.map((url, i) => ({
    id: `node-${i}`,
    url,
    slots: 1,
    hardware: 'A100',
    models: [{ model: MODEL }],
  }));
  const file = join(folder, 'gateway.yaml');
  const config = { nodes, models: [{ id: MODEL, profile }], server: { port: 0 }, ...CONFIGS[protection] };
  writeFileSync(file, stringify(config));
  const args = [path('../../src/apps/cli/main.ts'), 'serve', '--json', '--config', file, '--state', folder];
  return spawn(process.execPath, [...args, '--log-level', 'error'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function isReady(dataUrl: string): Promise<void> {
  for (const until = performance.now() + READY_MS; performance.now() < until; ) {
    const answer = await fetch(`${dataUrl}/v1/models`).catch(() => undefined);
    const list = answer?.ok === true ? ((await answer.json()) as { data: unknown[] }) : undefined;
    if (list !== undefined && list.data.length > 0) return;
    await pause(50);
  }
  throw new Error(`The gateway knew no model after ${READY_MS} ms`);
}

async function run(crowd: Crowd, protection: Protection, spikeS: number): Promise<Result> {
  const calm = CALM * CAPACITY_PER_S;
  const mark = (): number => crowd.users.length;
  await crowd.arrive(calm, WARM_S);
  const before = mark();
  await crowd.arrive(calm, BEFORE_S);
  const spike = mark();
  const spikeAt = performance.now();
  await crowd.arrive(SPIKE * CAPACITY_PER_S, spikeS);
  const recovering = mark();
  const spikeRatePerS = ((recovering - spike) * 1_000) / (performance.now() - spikeAt);
  await crowd.arrive(calm, RECOVERY_S);
  const after = mark();
  await crowd.arrive(calm, AFTER_S);
  await crowd.settle();
  const share = (from: number, until: number): number => {
    const come = crowd.users.slice(from, until);
    return come.filter(({ isServed }) => isServed).length / come.length;
  };
  const goodBefore = share(before, spike);
  const goodAfter = share(after, mark());
  return {
    protection,
    before: goodBefore,
    spike: share(spike, recovering),
    recovering: share(recovering, after),
    after: goodAfter,
    ratio: goodAfter / goodBefore,
    tries: crowd.tries / crowd.users.length,
    spikeRatePerS,
  };
}

function isAsPromised(results: readonly Result[]): boolean {
  const ratioOf = (protection: Protection): number =>
    results.find((result) => result.protection === protection)?.ratio ?? Number.NaN;
  return ratioOf('on') >= BACK && ratioOf('round robin') < BACK;
}

function print(results: readonly Result[]): void {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`.padStart(9);
  console.log(
    `${NODES} emulated nodes, ${CAPACITY_PER_S.toFixed(0)} requests/s; ${CALM} of it, ${SPIKE} of it, ${CALM} of it again.`,
  );
  console.log('Users who got their answer in time, by when they came:');
  console.log('protections     before    spike   0-10 s   10-30 s   after/before   tries per user');
  for (const { protection, before, spike, recovering, after, ratio, tries } of results) {
    const shares = [before, spike, recovering, after].map(percent).join('');
    console.log(`${protection.padEnd(12)} ${shares} ${percent(ratio)}       ${tries.toFixed(2)}`);
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { json: { type: 'boolean' }, 'spike-seconds': { type: 'string', default: '60' } },
  });
  const spikeS = Number(values['spike-seconds']);
  if (!(spikeS > 0)) {
    console.error(`Expected --spike-seconds above 0, received ${values['spike-seconds']}`);
    return 2;
  }
  const results: Result[] = [];
  for (const protection of Object.keys(CONFIGS) as Protection[])
    results.push(await measure(protection, spikeS));
  const asPromised = isAsPromised(results);
  if (values.json === true)
    console.log(JSON.stringify({ capacityPerS: CAPACITY_PER_S, asPromised, results }));
  else print(results);
  return asPromised ? 0 : 1;
}

process.exitCode = await main();
