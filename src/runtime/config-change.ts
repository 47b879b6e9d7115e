/**
 * What a new configuration may change while the gateway runs. Values that are bound to an open socket, a file or a
 * seed keep what they were, are named, and take effect at the next start; everything else is taken.
 */
import type { GatewayConfig, ServerConfig } from '../core/config/types.ts';

/** Settings of the listening sockets and of the clients to the nodes. */
const SERVER_AT_START: readonly (keyof ServerConfig)[] = [
  'host',
  'port',
  'adminPort',
  'tls',
  'headerBytesMax',
  'connectionsMax',
  'headersMs',
  'requestMs',
  'connectMs',
];

export interface ConfigChange {
  /** What is in force from now on. */
  readonly config: GatewayConfig;
  /** Paths of the values that differ and wait for a restart. */
  readonly needsRestart: readonly string[];
}

export function mergeConfig(current: GatewayConfig, next: GatewayConfig): ConfigChange {
  const needsRestart: string[] = [];
  for (const key of SERVER_AT_START) {
    if (differs(current.server[key], next.server[key])) needsRestart.push(`server.${key}`);
  }
  if (current.state.folder !== next.state.folder) needsRestart.push('state.folder');
  if (current.scheduler.seed !== next.scheduler.seed) needsRestart.push('seed');
  if (current.scheduler.policy !== next.scheduler.policy) needsRestart.push('policy');
  if (differs(current.tracing, next.tracing)) needsRestart.push('tracing');
  if (differs(current.journal, next.journal)) needsRestart.push('journal');
  if (differs(current.signals, next.signals)) needsRestart.push('signals');
  // Whether keys are asked for decides where the gateway may listen.
  const isOpen = (config: GatewayConfig): boolean => config.tenants.length === 0;
  if (isOpen(current) !== isOpen(next)) needsRestart.push('tenants');
  const config: GatewayConfig = {
    ...next,
    scheduler: { ...next.scheduler, seed: current.scheduler.seed, policy: current.scheduler.policy },
    server: serverInForce(current.server, next.server),
    state: current.state,
    tracing: current.tracing,
    journal: current.journal,
    signals: current.signals,
    tenants: isOpen(current) === isOpen(next) ? next.tenants : current.tenants,
  };
  return { config: Object.freeze(config), needsRestart };
}

function serverInForce(current: ServerConfig, next: ServerConfig): ServerConfig {
  const kept: Record<string, unknown> = { ...next };
  for (const key of SERVER_AT_START) {
    if (current[key] === undefined) delete kept[key];
    else kept[key] = current[key];
  }
  return Object.freeze(kept as unknown as ServerConfig);
}

function differs(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) !== JSON.stringify(b);
}
