/** Adversaries are streams like others: what they are is in their spec, and what they do to the rest is in the run. */
import { describe, expect, test } from 'vitest';
import { nodeSpec, S } from '../../../test/support/specs.ts';
import { streamSpec } from '../../../test/support/stream-spec.ts';
import { defaultSchedulerConfig } from '../../core/config/defaults.ts';
import { createScheduler } from '../../core/scheduler/index.ts';
import { SlotMachine } from '../machines/slot-machine.ts';
import type { StreamSpec } from '../scenario/types.ts';
import { SimNode } from '../sim-node.ts';
import { Simulation } from '../simulation.ts';
import { createClients } from './create-clients.ts';

/** Of four nodes twice as fast as the reference, for requests of half a second of work. */
const PER_SECOND = 16;
const SPAN_US = 60 * S;

function stream(name: string, load: number, change: Partial<StreamSpec>): StreamSpec {
  return streamSpec({
    name,
    arrivals: { kind: 'poisson', rate: { kind: 'load', load } },
    classes: [{ name: 'normal', share: 1, deadlineUs: 20 * S }],
    sizes: { kind: 'work', meanUs: S / 2, sigma: 0 },
    users: { triesMax: 3, patientShare: 0.5, thinkUs: [S, 5 * S], hangsUp: true, tellsCount: true },
    ...change,
  });
}

/** Share of users of each stream who were served. */
function servedShares(policy: 'spillway' | 'round-robin', streams: readonly StreamSpec[]): readonly number[] {
  const arrived = streams.map(() => 0);
  const served = streams.map(() => 0);
  const clients = createClients({
    streams,
    spanUs: SPAN_US,
    seed: 4,
    mixPerSecond: () => PER_SECOND,
    bestServiceUs: () => S / 4,
    observer: {
      userArrived: (user) => void (arrived[user.stream] = (arrived[user.stream] ?? 0) + 1),
      userEnded(user, { kind }) {
        if (kind === 'served') served[user.stream] = (served[user.stream] ?? 0) + 1;
      },
    },
  });
  const nodes = Array.from({ length: 4 }, (_, index) => {
    const machine = new SlotMachine({ slots: 1, serviceUs: () => S / 4 });
    return new SimNode({ spec: nodeSpec(`n${index}`), machine, rttUs: 0, beatUs: 30 * S }, index);
  });
  const config = defaultSchedulerConfig({ policy });
  const simulation = new Simulation({ createPolicy: () => createScheduler(config), nodes, clients });
  simulation.runUntil(2 * SPAN_US);
  clients.finish(2 * SPAN_US);
  return arrived.map((count, index) => (served[index] ?? 0) / count);
}

const FLOOD = stream('flood', 10, { tenants: { kind: 'one', id: 'flooder' } });
const MICE = stream('mice', 0.4, { tenants: { kind: 'many', prefix: 'mouse', count: 1_000, zipf: 0 } });

/** Everything that a batch job sends is said to be critical. */
const LIAR = stream('liar', 3, {
  classes: [{ name: 'critical', share: 1, deadlineUs: 20 * S }],
  tenants: { kind: 'one', id: 'liar' },
});
const HONEST = stream('honest', 0.3, {
  classes: [{ name: 'critical', share: 1, deadlineUs: 20 * S }],
  tenants: { kind: 'one', id: 'honest' },
});
/** Quiet for most of the time, then more than the fleet can do. */
const BURSTS = stream('bursts', 30, {
  arrivals: { kind: 'on-off', rate: { kind: 'load', load: 30 }, onUs: 2 * S, offUs: 10 * S },
  tenants: { kind: 'one', id: 'bursts' },
});

describe('an adversary as a stream', () => {
  test.each([
    { name: 'an elephant that floods a thousand mice', streams: [MICE, FLOOD] },
    { name: 'a tenant that lies about its class', streams: [HONEST, LIAR] },
    { name: 'a tenant that comes in bursts', streams: [MICE, BURSTS] },
  ])('$name takes the fleet from a naive policy, and not from a fair one', ({ streams }) => {
    const [victims = 0, adversary = 0] = servedShares('spillway', streams);
    expect(victims).toBeGreaterThan(0.97);
    expect(adversary).toBeLessThan(0.8);
    expect(servedShares('round-robin', streams)[0]).toBeLessThan(0.8);
  });
});
