/** Memory of waiting requests: one node that holds what it gets, and ten thousand clients, each waiting on its own connection. */
import { type LoadClient, startNode } from './children.ts';
import { rssBytes } from './process-cost.ts';
import { startSpillway } from './targets.ts';
import { body, request } from './wire.ts';

const WAITING = 10_000;
const MB = 1_000_000;
/** The queue is looked at until all wait; then once more after garbage has had a chance to go. */
const LOOK_EVERY_MS = 250;
const LOOKS_MAX = 120;
const SETTLE_MS = 2_000;

export interface MemoryFigures {
  readonly waiting: number;
  readonly rssMb: number;
  /** Highest of the readings while they came. */
  readonly peakMb: number;
  readonly idleMb: number;
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function measureMemory(load: LoadClient, bodyBytes: number): Promise<MemoryFigures> {
  const node = await startNode('holds');
  const gateway = await startSpillway(node.port, { slots: 1, tasksMax: 20_000 });
  const { pid } = gateway;
  try {
    const idleMb = rssBytes(pid) / MB;
    const text = request(gateway, body(bodyBytes));
    await load.run({ port: gateway.port, request: text, count: WAITING, connections: WAITING, mode: 'hold' });
    let peakMb = 0;
    let waiting = 0;
    for (let look = 0; look < LOOKS_MAX && waiting < WAITING - 2; look++) {
      await wait(LOOK_EVERY_MS);
      peakMb = Math.max(peakMb, rssBytes(pid) / MB);
      waiting = await gateway.queued();
    }
    await wait(SETTLE_MS);
    const rssMb = rssBytes(pid) / MB;
    return { waiting, rssMb, peakMb: Math.max(peakMb, rssMb), idleMb };
  } finally {
    await Promise.all([gateway.stop(), node.stop()]);
  }
}
