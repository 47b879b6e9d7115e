/** One of the two runs: a fresh gateway with one policy, the plan's load, and what was measured of it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { capacityWorkMs } from './capacity.ts';
import { type DemoPolicy, gatewayConfigText } from './gateway-config.ts';
import { setFaults, truthOf } from './fleet-control.ts';
import { createGatewayWatch, type GatewayWatch } from './gateway-watch.ts';
import { compareRates, type LearnedRates } from './learned.ts';
import type { LoadOptions, LoadResult } from './load.ts';
import type { LoadMessage } from './load-worker.ts';
import { type Observation, observe } from './observation.ts';
import type { DemoPlan } from './plan.ts';
import { type DemoProcess, type Processes, readyLine, waitFor } from './processes.ts';
import { type PolicyReport, recoveryOf, reportOf, type UserRecord } from './report.ts';
import type { View } from './view.ts';

const GATEWAY_START_MS = 30_000;

/** What both runs share: the same fleet, the same users. */
export interface Stage {
  readonly plan: DemoPlan;
  readonly processes: Processes;
  readonly view: View;
  readonly folder: string;
  readonly controlUrl: string;
  readonly imageNodes: readonly { readonly id: string; readonly url: string; readonly hardware: string }[];
  readonly embeddingUrls: readonly string[];
  /** Folder for the journal of Spillway's side; '' for none. */
  readonly journalFolder: string;
}

export interface PolicyRun {
  /** Every user, for who wants to look closer than the report. */
  readonly users: readonly UserRecord[];
  readonly report: PolicyReport;
  readonly hasRecovered: boolean;
  readonly learned: LearnedRates;
}

export async function runPolicy(stage: Stage, policy: DemoPolicy): Promise<PolicyRun> {
  const { plan } = stage;
  await setFaults(stage.controlUrl, plan.throttle.nodeId, { slowFactor: 1 });
  const { gateway, watch, dataUrl } = await startGateway(stage, policy);
  const worker = stage.processes.startWorker('apps/demo/load-worker');
  try {
    const seen = observe({ ...stage, policy, gatewayPid: gateway.pid, watch });
    const result = await playLoad(loadOptions(stage, dataUrl), worker, seen);
    const learned = compareRates((await watch.nodes()) ?? [], await truthOf(stage.controlUrl));
    const report = reportOf(plan, {
      users: result.users,
      untypedErrors: result.untypedErrors,
      peakOutstanding: result.peakOutstanding,
      peakRssBytes: seen.peakRssBytes(),
      capacityWorkMs: capacityWorkMs(plan, seen.spans()),
      embedding: result.embedding,
      stalls: { clients: result.stall, ...seen.stalls() },
    });
    for (const detail of result.untypedDetails) process.stderr.write(`${policy}: untyped error: ${detail}\n`);
    const hasRecovered = recoveryOf(plan, result.users).kind === 'recovered';
    return { users: result.users, report, hasRecovered, learned };
  } finally {
    await Promise.all([worker.stop(), gateway.stop()]);
  }
}

interface RunningGateway {
  readonly gateway: DemoProcess;
  readonly watch: GatewayWatch;
  readonly dataUrl: string;
}

/** It takes a free port itself and says which: one that was free a moment ago may be a client's by now. */
async function startGateway(stage: Stage, policy: DemoPolicy): Promise<RunningGateway> {
  const stateFolder = join(stage.folder, `state-${policy}`);
  mkdirSync(stateFolder, { recursive: true });
  const configFile = join(stage.folder, `${policy}.yaml`);
  const journalFolder = policy === 'spillway' ? stage.journalFolder : '';
  writeFileSync(configFile, gatewayConfigText({ ...stage, policy, stateFolder, journalFolder }));
  const gateway = stage.processes.start('apps/cli/main', ['serve', '--json', '--config', configFile]);
  const { dataUrl } = await readyLine<{ dataUrl: string }>(gateway, 'the gateway', GATEWAY_START_MS);
  const watch = createGatewayWatch(dataUrl, stateFolder);
  await waitFor(() => watch.isReady(), { one: gateway, name: 'the gateway', timeoutMs: GATEWAY_START_MS });
  return { gateway, watch, dataUrl };
}

function loadOptions(stage: Stage, dataUrl: string): LoadOptions {
  const { hostname, port } = new URL(dataUrl);
  return { plan: stage.plan, host: hostname, port: Number(port), embedding: stage.embeddingUrls.length > 0 };
}

function playLoad(options: LoadOptions, worker: DemoProcess, seen: Observation): Promise<LoadResult> {
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
