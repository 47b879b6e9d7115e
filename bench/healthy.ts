/**
 * A usual day over real sockets: ten emulated accelerators of four kinds that do nothing wrong, noise, bursts, clients
 * that leave; whoever is ejected here, or shut by a breaker, is accused falsely. Exit code 1 if anybody was.
 *
 *   node bench/healthy.ts [--json] [--seconds N] [--seed N]
 */
import { parseArgs } from 'node:util';
import { createHttpClient } from '../src/apps/demo/http-client.ts';
import { startGateway } from '../src/apps/gateway/start-gateway.ts';
import { createPrng } from '../src/base/prng.ts';
import { resolveConfig } from '../src/core/config/index.ts';
import {
  type Hardware,
  IMAGE_MODELS,
  imageServiceMs,
  PIXELS_REFERENCE,
  STEPS_REFERENCE,
  startEmulatedFleet,
} from '../src/emulator/index.ts';

const MODEL = 'emulated-image';
const CARDS: readonly Hardware[] = [
  'T4',
  'T4',
  'V100',
  'V100',
  'V100',
  'A100',
  'A100',
  'A100',
  'H100',
  'H100',
];
/** Emulated seconds per second: an A100 takes about 0.3 s for an image, long enough for its speed to be judged. */
const SPEEDUP = 4;
const NOISE_SIGMA = 0.3;
const LOAD = 0.65;
const BURST_LOAD = 1.3;
const BURST_EVERY_MS = 30_000;
const BURST_MS = 5_000;
const STEPS = [10, 20, 30, 50] as const;
const MEAN_STEPS = 27.5;
const LEAVES_RATIO = 0.01;
const TIMEOUT_MS = 60_000;

function profile(): object {
  const { fixedMs, perImageMs } = IMAGE_MODELS.A100;
  const perStep = perImageMs / STEPS_REFERENCE / (PIXELS_REFERENCE / 1e6);
  return {
    kind: 'image',
    fixedMs: fixedMs / SPEEDUP,
    msPerMegapixelStep: perStep / SPEEDUP,
    stepsDefault: STEPS_REFERENCE,
    pixelsDefault: PIXELS_REFERENCE,
  };
}

function requestText(port: number, steps: number): string {
  const body = JSON.stringify({ model: MODEL, prompt: 'a lighthouse', steps });
  return `POST /v1/images/generations HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** Mean arrivals per millisecond that keep the whole fleet busy. */
function capacityPerMs(): number {
  const size = { images: 1, steps: MEAN_STEPS, pixels: PIXELS_REFERENCE };
  return CARDS.reduce((sum, card) => sum + SPEEDUP / imageServiceMs(IMAGE_MODELS[card], size), 0);
}

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '180' },
    seed: { type: 'string', default: '1' },
  },
});
const seconds = Number(values.seconds);
const prng = createPrng(Number(values.seed));
const fleet = await startEmulatedFleet({
  speedup: SPEEDUP,
  noiseSigma: NOISE_SIGMA,
  seed: Number(values.seed),
  nodes: CARDS.map((card, i) => ({
    id: `${card.toLowerCase()}-${i}`,
    kind: 'image',
    model: MODEL,
    statedHardware: card,
    trueHardware: card,
  })),
});
const resolved = resolveConfig({
  server: { port: 0 },
  models: [{ id: MODEL, profile: profile() as never }],
  nodes: fleet.nodes.map((node) => ({
    id: node.id,
    url: node.url,
    slots: 1,
    hardware: node.spec.statedHardware,
    models: [{ model: MODEL }],
  })),
});
if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
const started = await startGateway(resolved.config);
const port = Number(new URL(started.dataUrl).port);
const client = createHttpClient({ host: '127.0.0.1', port, connectionsMax: 2_000 });

const counts = { sent: 0, served: 0, refused: 0, failed: 0, left: 0 };
const accused = new Set<string>();
const perMs = capacityPerMs();
const startedAt = performance.now();

function send(): void {
  const steps = STEPS[prng.nextBelow(STEPS.length)] as number;
  const isLeaving = prng.nextRatio() < LEAVES_RATIO;
  counts.sent += 1;
  const call = client.send(requestText(port, steps), TIMEOUT_MS, (result) => {
    if (result.kind !== 'answer') counts[isLeaving ? 'left' : 'failed'] += 1;
    else if (result.answer.status === 200) counts.served += 1;
    else if (result.answer.status === 429) counts.refused += 1;
    else counts.failed += 1;
  });
  if (isLeaving) setTimeout(() => call.hangUp(), prng.nextBelow(500));
}

function look(): void {
  for (const node of started.gateway.nodes()) {
    if (node.ejections > 0 || node.state === 'ejected') accused.add(`${node.id}: ejected`);
    for (const row of node.breakers) {
      if (row.opens > 0) accused.add(`${node.id}: breaker of ${row.model}, ${row.scope}`);
    }
  }
}

await new Promise<void>((resolve) => {
  let nextAt = 0;
  const timer = setInterval(() => {
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs >= seconds * 1_000) {
      clearInterval(timer);
      resolve();
      return;
    }
    for (; nextAt <= elapsedMs; ) {
      send();
      const load = nextAt % BURST_EVERY_MS < BURST_MS ? BURST_LOAD : LOAD;
      nextAt += -Math.log(1 - prng.nextRatio()) / (perMs * load);
    }
    look();
  }, 5);
});
const drainUntil = performance.now() + TIMEOUT_MS;
while (started.gateway.queue().depth + started.gateway.queue().running > 0 && performance.now() < drainUntil)
  await new Promise((resolve) => setTimeout(resolve, 100));
look();
const report = { seconds, seed: Number(values.seed), nodes: CARDS.length, ...counts, accused: [...accused] };
client.close();
await started.stop();
await fleet.close();
if (values.json) process.stdout.write(`${JSON.stringify(report)}\n`);
else {
  process.stdout.write(
    `${report.sent} requests in ${seconds} s to ${report.nodes} emulated accelerators: ${report.served} served, ` +
      `${report.refused} refused in bursts, ${report.failed} failed, ${report.left} left. ` +
      `Accused falsely: ${report.accused.length === 0 ? 'nobody' : report.accused.join('; ')}\n`,
  );
}
process.exitCode = report.accused.length === 0 ? 0 : 1;
