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
import { ADMIN_TOKEN_FILE, METRICS_TOKEN_FILE, type Tokens, writeTokens } from '../gateway/state-folder.ts';
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
  /** Of the gateways, which listen one after the other. 0: each takes a free one. */
  readonly port: number;
  /** What opens either gateway for who looks on. Absent: each gateway makes its own. */
  readonly tokens?: SharedTokens;
  /** The load waits for it. */
  readonly onListening?: (gateway: ListeningGateway) => Promise<void> | void;
}

export interface SharedTokens extends Tokens {
  readonly folder: string;
}

/** A gateway of the demo, before its first user comes. */
export interface ListeningGateway {
  readonly policy: DemoPolicy;
  readonly url: string;
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
  if (stage.tokens !== undefined) stage.view.say(lookOnLine(policy, dataUrl, stage.tokens));
  await stage.onListening?.({ policy, url: dataUrl });
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
  if (stage.tokens !== undefined) writeTokens(stateFolder, stage.tokens);
  const configFile = join(stage.folder, `${policy}.yaml`);
  const journalFolder = policy === 'spillway' ? stage.journalFolder : '';
  writeFileSync(configFile, gatewayConfigText({ ...stage, policy, stateFolder, journalFolder }));
  const gateway = stage.processes.start('apps/cli/main', ['serve', '--json', '--config', configFile]);
  const { dataUrl } = await readyLine<{ dataUrl: string }>(gateway, 'the gateway', GATEWAY_START_MS);
  const watch = createGatewayWatch(dataUrl, stateFolder);
  await waitFor(() => watch.isReady(), { one: gateway, name: 'the gateway', timeoutMs: GATEWAY_START_MS });
  return { gateway, watch, dataUrl };
}

function lookOnLine(policy: DemoPolicy, url: string, { folder }: SharedTokens): string {
  return `${policy}: console on ${url}/console (token in ${join(folder, ADMIN_TOKEN_FILE)}), metrics on ${url}/metrics (token in ${join(folder, METRICS_TOKEN_FILE)})`;
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
