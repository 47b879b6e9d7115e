/** What the live view and the check of learned rates read of the gateway: its public admin plane, nothing else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DurationMs, Rate } from '../../base/units.ts';

const TIMEOUT_MS = 2_000;
const TOKEN_FILE = 'admin-token';

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
}

export function createGatewayWatch(baseUrl: string, stateFolder: string): GatewayWatch {
  async function read<T>(path: string): Promise<T | undefined> {
    try {
      const answer = await fetch(`${baseUrl}${path}`, {
        headers: { authorization: `Bearer ${adminToken(stateFolder)}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      return answer.ok ? ((await answer.json()) as T) : undefined;
    } catch {
      return undefined;
    }
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
