/** `spillway serve`: reads the configuration, starts the gateway, keeps it running until a signal. */
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { detectEngines } from '../../adapters/engines/index.ts';
import type { ConfigInput } from '../../core/config/index.ts';
import { createLiveConfig, type LiveConfig } from '../gateway/live-config.ts';
import { readMemoryLimit } from '../gateway/memory-limit.ts';
import { type StartedGateway, startGateway } from '../gateway/start-gateway.ts';
import { ADMIN_TOKEN_FILE, StartError } from '../gateway/state-folder.ts';
import { keepYoungGenerationSmall } from '../gateway/young-generation.ts';
import { CliError, DONE, FAILED } from './exit.ts';
import { type CliLog, createLog } from './log.ts';
import { say, sayJson } from './output.ts';
import { readOrRefuse, reading, withStoredOverlay } from './read-or-refuse.ts';
import { defaultStateFolder, type Environment } from './state.ts';
import { welcome } from './welcome.ts';

export interface ServeOptions {
  readonly config?: string;
  readonly node: readonly string[];
  readonly port?: number;
  readonly host?: string;
  readonly state?: string;
  readonly json?: boolean;
  readonly logLevel: string;
}

export async function serve(options: ServeOptions, environment: Environment): Promise<number> {
  const memoryLimitBytes = readMemoryLimit();
  const source = {
    ...(options.config === undefined ? {} : { file: options.config }),
    commandLine: commandLineOf(options),
    environment,
    memoryLimitBytes,
    fallbackFolder: defaultStateFolder(environment),
  };
  const initial = await readOrRefuse(source, { json: options.json === true });
  const { overlays, config, dormant } = await withStoredOverlay(initial, { json: options.json === true });
  const read = await reading(source);
  const log = createLog(options.logLevel);
  if (dormant.length > 0) log.warn({ dormant }, 'The overlay has values for entries that there are not');
  const own: { live?: LiveConfig } = {};
  const started = await startGateway(config, {
    givenNodes: initial.commandLineNodes.map((node) => ({ node, source: 'command-line' })),
    log,
    memoryLimitBytes,
    configControl: (gateway) =>
      (own.live = createLiveConfig({ gateway, log, read, initial, overlays, wallMs: Date.now })),
    ...(environment['SPILLWAY_TOKEN'] ? { adminToken: environment['SPILLWAY_TOKEN'] } : {}),
    ...(environment['SPILLWAY_JOIN_TOKEN'] ? { joinToken: environment['SPILLWAY_JOIN_TOKEN'] } : {}),
  }).catch((error: unknown) => {
    throw new CliError(startProblem(error));
  });
  keepYoungGenerationSmall();
  const signals = untilSignal(log);
  const isPlain = options.config === undefined && options.node.length === 0;
  const found = isPlain && started.gateway.nodes().length === 0 ? await useLocalEngines(started) : undefined;
  const { folder } = initial.config.state;
  announce(started, {
    found,
    adminTokenFile: folder === '' ? '' : join(folder, ADMIN_TOKEN_FILE),
    json: options.json === true,
  });
  signals.onHangUp(() => own.live?.reload());
  if (initial.files.length > 0) await own.live?.watch();
  // Written now and not at exit: a process that is killed would leave its successor to compile everything again.
  flushCompileCache();
  await signals.ended;
  await Promise.all([own.live?.close(), started.stop()]);
  log.flush();
  return DONE;
}

function commandLineOf(options: ServeOptions): ConfigInput {
  const { port, host, state, node } = options;
  return {
    server: { ...(port === undefined ? {} : { port }), ...(host === undefined ? {} : { host }) },
    state: state === undefined ? {} : { folder: state },
    nodes: node.map((url) => ({ url })),
  };
}

function startProblem(error: unknown): string {
  if (error instanceof StartError) return error.message;
  return `Cannot start the gateway: ${error instanceof Error ? error.message : String(error)}`;
}

/** Registers what answers on this machine; one line for each. */
async function useLocalEngines({ gateway }: StartedGateway): Promise<readonly string[]> {
  const engines = await detectEngines();
  for (const { node } of engines) if (node !== undefined) await gateway.register(node, 'discovered', '');
  return engines.map((engine) => engine.summary);
}

interface Announcement {
  readonly found: readonly string[] | undefined;
  readonly adminTokenFile: string;
  readonly json: boolean;
}

function announce(started: StartedGateway, { found, adminTokenFile, json }: Announcement): void {
  if (!json) return say(welcome({ started, adminTokenFile, found }));
  const { gateway, dataUrl, adminUrl } = started;
  const nodes = gateway.nodes().map((node) => ({ id: node.id, url: node.url, state: node.state }));
  sayJson({
    ready: true,
    pid: process.pid,
    dataUrl,
    adminUrl,
    adminTokenFile,
    found: found ?? [],
    nodes,
    models: gateway.models(),
  });
}

interface Signals {
  /** Resolves at the first SIGTERM or SIGINT. A second one ends the process at once. */
  readonly ended: Promise<void>;
  onHangUp(reload: () => unknown): void;
}

function untilSignal(log: CliLog): Signals {
  let count = 0;
  const ended = new Promise<void>((resolve) => {
    const end = (signal: NodeJS.Signals): void => {
      count += 1;
      log.info(
        { signal },
        count === 1 ? 'Stopping: queued requests are refused, running ones go on' : 'Stopping at once',
      );
      if (count > 1) {
        log.flush();
        process.exit(FAILED);
      }
      resolve();
    };
    process.on('SIGTERM', end);
    process.on('SIGINT', end);
  });
  return { ended, onHangUp: (reload) => void process.on('SIGHUP', () => void reload()) };
}
