/** One of the two runs: a fresh gateway with one policy, the plan's load, and what was measured of it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bytes, DurationMs } from '../../base/units.ts';
import type { FaultChange, NodeTruth } from '../../emulator/index.ts';
import { capacityWorkMs } from './capacity.ts';
import { type DemoPolicy, gatewayConfigText } from './gateway-config.ts';
import {
  createGatewayWatch,
  type GatewayWatch,
  type NodeReading,
  type QueueReading,
} from './gateway-watch.ts';
import { compareRates, type LearnedRates } from './learned.ts';
import type { LoadOptions, LoadResult, LoadTick } from './load.ts';
import type { LoadMessage } from './load-worker.ts';
import { type DemoPlan, lastArrivalMs, spikeEndMs, spikeStartMs } from './plan.ts';
import { type DemoProcess, memoryOf, type Processes, waitFor } from './processes.ts';
import { type PolicyReport, recoveryOf, reportOf } from './report.ts';
import type { View } from './view.ts';

const GATEWAY_START_MS = 30_000;
const FRAME_MS = 500;
const HOST = '127.0.0.1';

/** What both runs share: the same fleet, the same port, the same users. */
export interface Stage {
  readonly plan: DemoPlan;
  readonly processes: Processes;
  readonly view: View;
  readonly folder: string;
  readonly port: number;
  readonly controlUrl: string;
  readonly imageNodes: readonly { readonly id: string; readonly url: string; readonly hardware: string }[];
  readonly embeddingUrls: readonly string[];
}

export interface PolicyRun {
  readonly report: PolicyReport;
  readonly hasRecovered: boolean;
  readonly learned: LearnedRates;
}

export async function runPolicy(stage: Stage, policy: DemoPolicy): Promise<PolicyRun> {
  const { plan } = stage;
  await setFaults(stage, plan.throttle.nodeId, { slowFactor: 1 });
  const { gateway, watch } = await startGateway(stage, policy);
  const worker = stage.processes.startWorker('apps/demo/load-worker');
  try {
    const seen = observe({ stage, policy, gateway, watch });
    const result = await playLoad(stage, worker, seen);
    const learned = compareRates((await watch.nodes()) ?? [], await truthOf(stage));
    const spans = seen.spans();
    const report = reportOf(plan, {
      users: result.users,
      untypedErrors: result.untypedErrors,
      peakOutstanding: result.peakOutstanding,
      peakRssBytes: seen.peakRssBytes(),
      capacityWorkMs: capacityWorkMs(plan, spans),
      embedding: result.embedding,
    });
    for (const detail of result.untypedDetails) process.stderr.write(`${policy}: untyped error: ${detail}\n`);
    return { report, hasRecovered: recoveryOf(plan, result.users).kind === 'recovered', learned };
  } finally {
    await Promise.all([worker.stop(), gateway.stop()]);
  }
}

async function startGateway(
  stage: Stage,
  policy: DemoPolicy,
): Promise<{ readonly gateway: DemoProcess; readonly watch: GatewayWatch }> {
  const stateFolder = join(stage.folder, `state-${policy}`);
  mkdirSync(stateFolder, { recursive: true });
  const configFile = join(stage.folder, `${policy}.yaml`);
  writeFileSync(configFile, gatewayConfigText({ ...stage, policy, stateFolder }));
  const gateway = stage.processes.start('apps/cli/main', ['serve', '--config', configFile]);
  const watch = createGatewayWatch(`http://${HOST}:${stage.port}`, stateFolder);
  await waitFor(() => watch.isReady(), { one: gateway, name: 'the gateway', timeoutMs: GATEWAY_START_MS });
  return { gateway, watch };
}

interface Observation {
  start(): void;
  tick(tick: LoadTick): void;
  stop(): Promise<void>;
  peakRssBytes(): Bytes;
  /** The spike as spans of constant true speed: before and after the throttle. */
  spans(): { durationMs: DurationMs; nodes: readonly NodeTruth[] }[];
}

interface Observed {
  readonly stage: Stage;
  readonly policy: DemoPolicy;
  readonly gateway: DemoProcess;
  readonly watch: GatewayWatch;
}

const NO_TICK: LoadTick = {
  users: 0,
  ended: { served: 0, refused: 0, failed: 0, cancelled: 0 },
  attempts: 0,
  refusedAttempts: 0,
  outstanding: 0,
  untypedErrors: 0,
  embeddingServed: 0,
};

function observe(observed: Observed): Observation {
  const { plan } = observed.stage;
  const throttleAtMs = (spikeStartMs(plan) + spikeEndMs(plan)) / 2;
  let startedAt = 0;
  let lastFrameAt = 0;
  let timer: NodeJS.Timeout | undefined;
  let throttle: Promise<void> | undefined;
  let throttledAtMs = throttleAtMs;
  let truthBefore: readonly NodeTruth[] = [];
  let truthAfter: readonly NodeTruth[] = [];
  let latest = NO_TICK;
  let shown = NO_TICK;
  let queue: QueueReading | undefined;
  let nodes: readonly NodeReading[] = [];
  let peak = 0;
  let reading = false;

  async function turnSlow(): Promise<void> {
    truthBefore = await truthOf(observed.stage);
    await setFaults(observed.stage, plan.throttle.nodeId, { slowFactor: plan.throttle.factor });
    throttledAtMs = performance.now() - startedAt;
    truthAfter = await truthOf(observed.stage);
  }

  async function frame(): Promise<void> {
    const now = performance.now();
    const elapsedMs = now - startedAt;
    if (elapsedMs >= throttleAtMs) throttle ??= turnSlow();
    const memory = memoryOf(observed.gateway.pid);
    peak = Math.max(peak, memory.rssBytes, memory.peakRssBytes);
    if (reading) return;
    reading = true;
    [queue, nodes] = await Promise.all([
      observed.watch.queue().then((got) => got ?? queue),
      observed.watch.nodes().then((got) => got ?? nodes),
    ]);
    reading = false;
    observed.stage.view.show({
      title: observed.policy,
      phase: phaseAt(plan, elapsedMs),
      elapsedMs,
      totalMs: lastArrivalMs(plan),
      tick: latest,
      before: shown,
      betweenMs: now - lastFrameAt,
      queue,
      nodes,
      rssBytes: memory.rssBytes,
    });
    shown = latest;
    lastFrameAt = now;
  }

  return {
    start() {
      startedAt = performance.now();
      lastFrameAt = startedAt;
      timer = setInterval(() => void frame(), FRAME_MS);
    },
    tick(tick) {
      latest = tick;
    },
    async stop() {
      clearInterval(timer);
      await throttle;
    },
    peakRssBytes: () => peak,
    spans: () => [
      { durationMs: throttledAtMs - spikeStartMs(plan), nodes: truthBefore },
      { durationMs: spikeEndMs(plan) - throttledAtMs, nodes: truthAfter },
    ],
  };
}

function phaseAt(plan: DemoPlan, elapsedMs: DurationMs): string {
  if (elapsedMs < spikeStartMs(plan)) return 'calm: 35 % of capacity';
  if (elapsedMs < spikeEndMs(plan)) return 'SPIKE: twelve times that';
  return 'after the spike';
}

function playLoad(stage: Stage, worker: DemoProcess, seen: Observation): Promise<LoadResult> {
  const options: LoadOptions = {
    plan: stage.plan,
    host: HOST,
    port: stage.port,
    embedding: stage.embeddingUrls.length > 0,
  };
  const result = new Promise<LoadResult>((resolve, reject) => {
    worker.child.on('message', (message: LoadMessage) => {
      if (message.kind === 'started') seen.start();
      else if (message.kind === 'tick') seen.tick(message.tick);
      else resolve(message.result);
    });
    worker.child.once('exit', () => reject(new Error(`The load clients ended early\n${worker.output()}`)));
  });
  worker.child.send(options);
  return result.finally(() => seen.stop());
}

async function truthOf(stage: Stage): Promise<readonly NodeTruth[]> {
  return (await (await fetch(`${stage.controlUrl}/truth`)).json()) as readonly NodeTruth[];
}

async function setFaults(stage: Stage, nodeId: string, change: FaultChange): Promise<void> {
  const answer = await fetch(`${stage.controlUrl}/nodes/${nodeId}/faults`, {
    method: 'POST',
    body: JSON.stringify(change),
  });
  if (!answer.ok) throw new Error(`Cannot switch the emulated node ${nodeId}: ${await answer.text()}`);
}
