/**
 * `npm run demo`: the outage, twice over the same sockets. First the old design (round robin, an unbounded queue per
 * node), then Spillway, against one emulated fleet and the same users. See `docs/guides/demo.md`.
 *
 * Processes: this one (view and report), the emulated fleet, two real embedding nodes, the gateway (a new one per
 * policy), the load clients. Exit code 0 only if Spillway's side meets its bounds.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepareFolder, readOrCreateTokens } from '../gateway/state-folder.ts';
import type { DemoPolicy } from './gateway-config.ts';
import { createPlan, type DemoPlan } from './plan.ts';
import { createProcesses, type Processes, readyLine } from './processes.ts';
import { boundsOf, type DemoDocument, type PolicyReport } from './report.ts';
import {
  type ListeningGateway,
  type PolicyRun,
  runPolicy,
  type SharedTokens,
  type Stage,
} from './run-policy.ts';
import { comparison, learnedLine, missedLines, moral, type Outcome, stallLine, verdict } from './table.ts';
import { createView, type Screen, type View } from './view.ts';

export interface DemoOptions {
  /** One JSON document on standard output and nothing else there. */
  readonly json?: boolean;
  /** A few seconds and a few nodes: shows that everything is connected; no verdict on overload. */
  readonly quick?: boolean;
  /** In order; both by default. */
  readonly policies?: readonly DemoPolicy[];
  readonly seed?: number;
  /** The scenario. Absent: the outage, full or quick. */
  readonly plan?: DemoPlan;
  /** File that gets the journal of Spillway's side. */
  readonly journal?: string;
  /** Port of 127.0.0.1 for the gateways, one after the other; 0 takes free ones. Absent: nobody is to look on. */
  readonly port?: number;
  /** Folder of the tokens for who looks on. Absent: a temporary one. */
  readonly tokens?: string;
  /** A gateway listens; its load waits for the promise. */
  readonly onListening?: (gateway: ListeningGateway) => Promise<void> | void;
  readonly write?: (text: string) => void;
}

const POLICIES: readonly DemoPolicy[] = ['round-robin', 'spillway'];
export const DEMO_SEED = 20_240_607;
const EMBEDDING_NODES = 2;
const EMBEDDING_START_MS = 60_000;
const EMULATOR_START_MS = 20_000;
const EMBEDDING_SCRIPT = fileURLToPath(new URL('../../../engines/embedding/server.ts', import.meta.url));

export async function runDemo(options: DemoOptions = {}): Promise<number> {
  const json = options.json === true;
  const write = options.write ?? ((text: string) => void process.stdout.write(text));
  const view = createView(screenFor(json, write));
  const processes = createProcesses();
  const folder = mkdtempSync(join(tmpdir(), 'spillway-demo-'));
  const interrupt = onInterrupt(processes);
  try {
    const stage = await setStage({ options, processes, folder, view });
    const outcomes: Outcome[] = [];
    let learned: PolicyRun['learned'] | undefined;
    for (const policy of options.policies ?? POLICIES) {
      const run = await runPolicy(stage, policy);
      outcomes.push({ name: policy, report: run.report, hasRecovered: run.hasRecovered });
      if (policy === 'spillway') learned = run.learned;
    }
    if (options.journal !== undefined) keepJournal(stage.journalFolder, options.journal);
    if (json) write(`${JSON.stringify(documentOf(stage.plan.speedup, outcomes))}\n`);
    else tell(view, { stage, outcomes, learned });
    return exitCode(outcomes);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    interrupt.remove();
    await processes.closeAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The gateway has ended, and with it its journal. */
function keepJournal(folder: string, file: string): void {
  const [segment] = readdirSync(folder);
  if (segment !== undefined) copyFileSync(join(folder, segment), file);
}

function screenFor(json: boolean, write: (text: string) => void): Screen {
  if (json) return { isTerminal: false, columns: 80, write: () => undefined };
  return { isTerminal: process.stdout.isTTY === true, columns: process.stdout.columns ?? 100, write };
}

/** Ctrl-C must not leave a fleet behind. */
function onInterrupt(processes: Processes): { remove(): void } {
  const stop = (): void => void processes.closeAll().then(() => process.exit(1));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  return {
    remove: () => {
      process.removeListener('SIGINT', stop);
      process.removeListener('SIGTERM', stop);
    },
  };
}

interface Setting {
  readonly options: DemoOptions;
  readonly processes: Processes;
  readonly folder: string;
  readonly view: View;
}

interface EmulatorReady {
  readonly controlUrl: string;
  readonly nodes: readonly { readonly id: string; readonly url: string; readonly statedHardware: string }[];
}

async function setStage(setting: Setting): Promise<Stage> {
  const { options, processes, folder, view } = setting;
  const plan = options.plan ?? createPlan({ quick: options.quick === true, seed: options.seed ?? DEMO_SEED });
  view.say(
    `Starting ${plan.nodes.length} EMULATED accelerators (sped up ${plan.speedup}x), real embedding nodes, and a real gateway.`,
  );
  const specFile = join(folder, 'fleet.json');
  writeFileSync(specFile, JSON.stringify({ speedup: plan.speedup, seed: plan.seed, nodes: plan.nodes }));
  const emulator = processes.start('apps/emulator/main', ['--spec', specFile]);
  const [fleet, embeddingUrls] = await Promise.all([
    readyLine<EmulatorReady>(emulator, 'the emulated fleet', EMULATOR_START_MS),
    startEmbeddings(processes),
  ]);
  mkdirSync(join(folder, 'state'), { recursive: true });
  return {
    plan,
    processes,
    view,
    folder,
    controlUrl: fleet.controlUrl,
    imageNodes: fleet.nodes.map((node) => ({ id: node.id, url: node.url, hardware: node.statedHardware })),
    embeddingUrls,
    journalFolder: options.journal === undefined ? '' : join(folder, 'journal'),
    port: options.port ?? 0,
    ...lookingOn(options, folder),
  };
}

function lookingOn(
  { port, tokens, onListening }: DemoOptions,
  folder: string,
): Pick<Stage, 'tokens' | 'onListening'> {
  return {
    ...(port === undefined && tokens === undefined
      ? {}
      : { tokens: sharedTokens(tokens ?? join(folder, 'tokens')) }),
    ...(onListening === undefined ? {} : { onListening }),
  };
}

function sharedTokens(folder: string): SharedTokens {
  prepareFolder(folder);
  return { ...readOrCreateTokens(folder), folder };
}

/** Real ones; the demo goes on without them, and says so. */
async function startEmbeddings(processes: Processes): Promise<string[]> {
  if (!existsSync(EMBEDDING_SCRIPT)) {
    process.stderr.write(
      'LEFT OUT: the real embedding nodes, because engines/embedding is not installed here.\n',
    );
    return [];
  }
  try {
    const ready = Array.from({ length: EMBEDDING_NODES }, () => {
      const one = processes.startScript(EMBEDDING_SCRIPT, ['--port', '0']);
      return readyLine<{ url: string }>(one, 'an embedding node', EMBEDDING_START_MS);
    });
    return (await Promise.all(ready)).map((line) => line.url);
  } catch (error) {
    process.stderr.write(
      `LEFT OUT: the real embedding nodes. ${error instanceof Error ? error.message : ''}\n`,
    );
    return [];
  }
}

function documentOf(speedup: number, outcomes: readonly Outcome[]): DemoDocument {
  const policies: Record<string, PolicyReport> = {};
  for (const one of outcomes) policies[one.name] = one.report;
  return { emulatedSpeedup: speedup, policies };
}

function tell(
  view: View,
  told: { stage: Stage; outcomes: readonly Outcome[]; learned: PolicyRun['learned'] | undefined },
): void {
  const { stage, outcomes, learned } = told;
  view.say('');
  view.say(comparison(outcomes, `${stage.plan.nodes.length} EMULATED accelerators, ${stage.plan.speedup}x`));
  if (learned !== undefined) view.say(learnedLine(learned));
  const ours = outcomes.find((one) => one.name === 'spillway');
  for (const line of ours === undefined
    ? []
    : [...verdict(ours.report), stallLine(ours.report), ...missedLines(ours.report)])
    view.say(line);
  view.say('');
  view.say(moral(outcomes));
}

function exitCode(outcomes: readonly Outcome[]): number {
  const ours = outcomes.find((one) => one.name === 'spillway');
  if (ours === undefined) return 0;
  return boundsOf(ours.report).every((one) => one.holds) ? 0 : 1;
}
