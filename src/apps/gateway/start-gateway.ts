/**
 * The composition root: builds every part of a gateway and ties them together. The command line, the tests and the
 * demo start gateways through this one function.
 *
 * Start: state folder, registry, scheduler and runtime (known nodes are there), then listeners: the first connection
 * finds the fleet. Stop: the gateway refuses what waits and drains what runs while the listeners still answer, so that
 * late clients get a typed refusal instead of a closed port; then the listeners close.
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { sha256Hex, tlsPairIssue } from '../../adapters/config-file/index.ts';
import { createEngineDrivers, createHostTelemetry } from '../../adapters/engines/index.ts';
import { createMemoryRegistry } from '../../adapters/registry-memory/registry-memory.ts';
import { createSqliteRegistry } from '../../adapters/registry-sqlite/registry-sqlite.ts';
import type { StartedTracing } from '../../adapters/tracing-otlp/index.ts';
import { createHttpTransport } from '../../adapters/transport-http/index.ts';
import type { Bytes } from '../../base/units.ts';
import type { GatewayConfig } from '../../core/config/index.ts';
import { createScheduler } from '../../core/scheduler/index.ts';
import { type AdminPlane, createAdminPlane } from '../../edge/admin/admin-plane.ts';
import type { ConfigControl } from '../../edge/admin/config.ts';
import { createDataPlane, type DataPlane } from '../../edge/data-plane.ts';
import { startSurvival, type Survival } from '../../edge/survival/survival.ts';
import { BeaconDesk } from '../../edge/user-side/beacon-desk.ts';
import { UserSide } from '../../edge/user-side/user-side.ts';
import type { RegistryStore } from '../../ports/registry-store.ts';
import type { Gateway } from '../../runtime/contract.ts';
import type { GivenNode } from '../../runtime/fleet/membership.ts';
import { createGateway } from '../../runtime/gateway.ts';
import { type RuntimeLog, SILENT_LOG } from '../../runtime/log.ts';
import { createConsoleFiles } from './console-files.ts';
import { createGatewayMetrics, type GatewayMetrics } from './gateway-metrics.ts';
import { openJournal } from './open-journal.ts';
import { listenOn, urlOf } from './listen.ts';
import { startTracingOf } from './tracing.ts';
import { readMemoryLimit } from './memory-limit.ts';
import {
  announce,
  lockFolder,
  prepareFolder,
  randomToken,
  readOrCreateTokens,
  StartError,
  type Tokens,
  unlockFolder,
} from './state-folder.ts';

export interface StartOptions {
  /** Nodes of the command line, or found on this machine. */
  readonly givenNodes?: readonly GivenNode[];
  readonly log?: RuntimeLog;
  /** What may change the configuration over the admin plane; absent: nothing. */
  readonly configControl?: (gateway: Gateway) => ConfigControl;
  /** Used when there is no state folder; made at random otherwise. */
  readonly adminToken?: string;
  /** Token with which nodes may register themselves; absent: the admin token alone. */
  readonly joinToken?: string;
  readonly memoryLimitBytes?: Bytes;
  /** Makes the scheduler; a test of what finds faults makes one with a fault. */
  readonly createScheduler?: typeof createScheduler;
}

export interface StartedGateway {
  readonly gateway: Gateway;
  readonly dataUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly metricsToken: string;
  /** Ends everything in order. Calling it again waits for the same end. */
  stop(): Promise<void>;
}

/** Time for the last answers to leave after the drain. */
const CLOSE_MS = 1_000;

/** Rejects with a `StartError`, or with the error of a part that cannot start; nothing is left running then. */
export async function startGateway(
  config: GatewayConfig,
  options: StartOptions = {},
): Promise<StartedGateway> {
  const { folder } = config.state;
  checkTls(config.server.tls);
  if (folder !== '') {
    prepareFolder(folder);
    lockFolder(folder);
  }
  try {
    return await startLocked(config, options, folder);
  } catch (error) {
    if (folder !== '') unlockFolder(folder);
    throw error;
  }
}

/** Before anything starts: a file may have changed since the configuration was read. */
function checkTls(tls: GatewayConfig['server']['tls']): void {
  const issue = tls === undefined ? undefined : tlsPairIssue(tls);
  if (tls === undefined || issue === undefined) return;
  throw new StartError(`Cannot use server.tls.${issue.part} ${tls[issue.part]}: ${issue.rule}`);
}

async function startLocked(
  config: GatewayConfig,
  options: StartOptions,
  folder: string,
): Promise<StartedGateway> {
  const tokens = tokensFor(folder, options.adminToken);
  const store: RegistryStore = folder === '' ? createMemoryRegistry() : createSqliteRegistry(folder);
  const transport = createHttpTransport({ connectMs: config.server.connectMs });
  // The gateway looks at it once a second, and its edge is made after it.
  const edge: { userSide?: UserSide } = {};
  const gateway = await createGateway({
    config,
    userSide: (now) => edge.userSide?.sample(now),
    scheduler: (options.createScheduler ?? createScheduler)(config.scheduler),
    store,
    transport,
    drivers: createEngineDrivers(),
    telemetry: createHostTelemetry(),
    givenNodes: options.givenNodes ?? [],
    log: options.log ?? SILENT_LOG,
    journal: openJournal(config, options.log ?? SILENT_LOG),
  }).catch(async (error: unknown) => {
    await Promise.allSettled([transport.shutdown(), store.close()]);
    throw error;
  });
  const tracing = await startTracingOf(config.tracing, () => gateway.now()).catch(async (error: unknown) => {
    await gateway.shutdown();
    throw error;
  });
  const parts = assemble({ gateway, transport, tracing }, tokens, options);
  edge.userSide = parts.userSide;
  try {
    const dataAddress = await listenOn(
      () => parts.dataPlane.listen(),
      config.server.host,
      config.server.port,
    );
    const adminAddress = await listenAdmin(parts.adminServer, config, dataAddress);
    const dataUrl = urlOf(dataAddress, config.server);
    const adminUrl = adminAddress === undefined ? dataUrl : urlOf(adminAddress, config.server);
    if (folder !== '') announce(folder, { dataUrl, adminUrl });
    return {
      gateway,
      dataUrl,
      adminUrl,
      adminToken: tokens.admin,
      metricsToken: tokens.metrics,
      stop: stopper(parts, folder),
    };
  } catch (error) {
    await stopper(parts, folder)();
    throw error;
  }
}

function tokensFor(folder: string, adminToken: string | undefined): Tokens {
  if (folder !== '') return readOrCreateTokens(folder);
  return { admin: adminToken ?? randomToken(), metrics: randomToken() };
}

interface Parts {
  readonly gateway: Gateway;
  readonly dataPlane: DataPlane;
  readonly admin: AdminPlane;
  readonly adminServer: Server | undefined;
  readonly survival: Survival;
  readonly tracing: StartedTracing | undefined;
  readonly userSide: UserSide;
}

interface Started {
  readonly gateway: Gateway;
  readonly transport: ReturnType<typeof createHttpTransport>;
  readonly tracing: StartedTracing | undefined;
}

function assemble({ gateway, transport, tracing }: Started, tokens: Tokens, options: StartOptions): Parts {
  const { config } = gateway;
  const log = options.log ?? SILENT_LOG;
  const metrics: GatewayMetrics = createGatewayMetrics(gateway, tracing);
  const survival = startSurvival({
    gateway,
    memoryLimitBytes: options.memoryLimitBytes ?? readMemoryLimit(),
    spoolBytes: metrics.spoolBytes,
    onChange: ({ shedClasses, cause, pressure }) =>
      log.warn(
        { shedClasses, cause, pressure },
        'The gateway protects itself: the lowest classes are refused',
      ),
  });
  metrics.watch(survival);
  const userSide = new UserSide(metrics.sink);
  const beacons = new BeaconDesk({
    config: () => gateway.config.rum,
    now: () => gateway.now(),
    userSide,
    metrics: metrics.sink,
  });
  const admin = createAdminPlane({
    gateway,
    digests: {
      admin: sha256Hex(tokens.admin),
      metrics: sha256Hex(tokens.metrics),
      ...(options.joinToken === undefined ? {} : { join: sha256Hex(options.joinToken) }),
    },
    renderMetrics: metrics.render,
    metricsContentType: metrics.contentType,
    ...(options.configControl === undefined ? {} : { configControl: options.configControl(gateway) }),
    wallMs: Date.now,
    consoleFiles: createConsoleFiles(),
    beacons,
    onError: (error) =>
      log.error(
        { reason: error instanceof Error ? error.message : String(error) },
        'An admin request failed',
      ),
  });
  const hasOwnPort = config.server.adminPort !== undefined;
  const dataPlane = createDataPlane({
    gateway,
    transport,
    metrics: metrics.sink,
    wallMs: Date.now,
    tracing: tracing?.tracing,
    log,
    beacons,
    fallback: (req, res) => !hasOwnPort && handOver(admin, req, res),
  });
  return {
    gateway,
    dataPlane,
    admin,
    adminServer: hasOwnPort ? adminServer(admin, config) : undefined,
    survival,
    tracing,
    userSide,
  };
}

function handOver(admin: AdminPlane, ...[req, res]: Parameters<AdminPlane['handle']>): boolean {
  if (!admin.owns(req.url ?? '')) return false;
  admin.handle(req, res);
  return true;
}

/** With the limits and the certificate of the data port; its own connections, so that a full data port cannot shut it out. */
function adminServer(admin: AdminPlane, { server }: GatewayConfig): Server {
  const { headerBytesMax, headersMs, requestMs } = server;
  const limits = {
    maxHeaderSize: headerBytesMax,
    headersTimeout: headersMs,
    requestTimeout: Math.max(headersMs, requestMs),
  };
  const listener = (req: IncomingMessage, res: ServerResponse): void => admin.handle(req, res);
  if (server.tls === undefined) return createServer(limits, listener);
  const { cert, key } = server.tls;
  return createTlsServer(
    { ...limits, handshakeTimeout: headersMs, cert: readFileSync(cert), key: readFileSync(key) },
    listener,
  );
}

async function listenAdmin(
  server: Server | undefined,
  config: GatewayConfig,
  data: AddressInfo,
): Promise<AddressInfo | undefined> {
  if (server === undefined) return undefined;
  const port = config.server.adminPort ?? 0;
  return listenOn(
    () =>
      new Promise<AddressInfo>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, data.address, () => resolve(server.address() as AddressInfo));
      }),
    data.address,
    port,
  );
}

function stopper(parts: Parts, folder: string): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  return () => {
    stopping ??= stop(parts, folder);
    return stopping;
  };
}

async function stop(
  { gateway, dataPlane, admin, adminServer: ownServer, survival, tracing }: Parts,
  folder: string,
): Promise<void> {
  await gateway.shutdown();
  survival.stop();
  admin.close();
  const closed = Promise.all([dataPlane.close(), closeServer(ownServer)]);
  const cut = setTimeout(() => {
    dataPlane.destroy();
    ownServer?.closeAllConnections();
  }, CLOSE_MS);
  await closed;
  clearTimeout(cut);
  dataPlane.destroy();
  await tracing?.stop();
  if (folder !== '') unlockFolder(folder);
}

function closeServer(server: Server | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (server === undefined || !server.listening) resolve();
    else {
      server.close(() => resolve());
      server.closeIdleConnections();
    }
  });
}
