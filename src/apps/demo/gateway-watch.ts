/** What the live view and the check of learned rates read of the gateway: its public admin plane, nothing else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DurationMs, Rate } from '../../base/units.ts';

const TIMEOUT_MS = 2_000;
const TOKEN_FILE = 'admin-token';
const LAG_LINE = /^spillway_event_loop_lag_max_seconds (\S+)$/m;

export interface QueueGroup {
  readonly depth: number;
  readonly workMs: DurationMs;
}

export interface QueueReading extends QueueGroup {
  readonly running: number;
  readonly byClass: Readonly<Record<string, QueueGroup>>;
}

export interface NodeReading {
  readonly id: string;
  readonly state: string;
  readonly hardware: string;
  readonly inflight: number;
  readonly drainMs: DurationMs;
  readonly rates: readonly { readonly model: string; readonly rate: Rate; readonly observations: number }[];
}

export interface GatewayWatch {
  isReady(): Promise<boolean>;
  /** Undefined when the gateway did not answer in time: the view keeps what it had. */
  queue(): Promise<QueueReading | undefined>;
  nodes(): Promise<readonly NodeReading[] | undefined>;
  /** The longest that its event loop was late in the last second. */
  loopLagMaxMs(): Promise<DurationMs | undefined>;
}

export function createGatewayWatch(baseUrl: string, stateFolder: string): GatewayWatch {
  async function readText(path: string): Promise<string | undefined> {
    try {
      const answer = await fetch(`${baseUrl}${path}`, {
        headers: { authorization: `Bearer ${adminToken(stateFolder)}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      return answer.ok ? await answer.text() : undefined;
    } catch {
      return undefined;
    }
  }
  async function read<T>(path: string): Promise<T | undefined> {
    const text = await readText(path);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }
  return {
    async isReady() {
      try {
        return (await fetch(`${baseUrl}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS) })).ok;
      } catch {
        return false;
      }
    },
    queue: () => read<QueueReading>('/spillway/v1/queue'),
    async nodes() {
      const rows = await read<readonly NodeReading[] | { nodes: readonly NodeReading[] }>(
        '/spillway/v1/nodes',
      );
      return rows === undefined || 'map' in rows ? rows : rows.nodes;
    },
    async loopLagMaxMs() {
      const lag = LAG_LINE.exec((await readText('/metrics')) ?? '')?.[1];
      return lag === undefined ? undefined : Number(lag) * 1_000;
    },
  };
}

/** The gateway wrote it at its first start; '' until then. */
function adminToken(stateFolder: string): string {
  try {
    return readFileSync(join(stateFolder, TOKEN_FILE), 'utf8').trim();
  } catch {
    return '';
  }
}
