import { describe, expect, test } from 'vitest';
import { nodeGroup, TEXT_ENGINE } from '../../test/support/scenarios.ts';
import { nodeSpec, S, taskSpec } from '../../test/support/specs.ts';
import type { MonoUs } from '../base/units.ts';
import { defaultSchedulerConfig } from '../core/config/defaults.ts';
import { createScheduler } from '../core/scheduler/index.ts';
import type { Clients } from './clients/clients.ts';
import { buildFleet } from './fleets/build-fleet.ts';
import { SlotMachine } from './machines/slot-machine.ts';
import type { JobEnd } from './observer.ts';
import { SimNode } from './sim-node.ts';
import { Simulation } from './simulation.ts';

/** One request every 100 ms, each of one second of work. */
function steadyClients(count: number, ends: Map<number, JobEnd['kind']>): Clients {
  let next = 1;
  const at = (): MonoUs => (next > count ? Number.POSITIVE_INFINITY : (next * S) / 10);
  return {
    nextAt: at,
    advance(now, sink) {
      const task = taskSpec(next++, { deadlineAt: now + 30 * S, workUs: S });
      sink.submit({ task, demand: { kind: 'work', workUs: S }, noise: 1 });
    },
    outcome: (taskId, end) => void ends.set(taskId, end.kind),
  };
}

function fleet(speeds: readonly number[]): SimNode[] {
  return speeds.map((speed, index) => {
    const machine = new SlotMachine({
      slots: 1,
      serviceUs: (demand) => (demand.kind === 'work' ? demand.workUs / speed : S),
    });
    const spec = nodeSpec(`n${index}`);
    return new SimNode({ spec, machine, rttUs: 0, beatUs: 30 * S }, index);
  });
}

function simulate(
  policy: 'spillway' | 'round-robin',
  script?: (simulation: Simulation) => void,
): { readonly simulation: Simulation; readonly ends: Map<number, JobEnd['kind']> } {
  const ends = new Map<number, JobEnd['kind']>();
  const simulation = new Simulation({
    createPolicy: () => createScheduler(defaultSchedulerConfig({ policy })),
    nodes: fleet([1, 4, 8, 8]),
    clients: steadyClients(600, ends),
  });
  script?.(simulation);
  simulation.runUntil(120 * S);
  return { simulation, ends };
}

describe('Simulation', () => {
  test('brings every request to one outcome, and empties its tables', () => {
    const { simulation, ends } = simulate('spillway');
    expect(ends.size).toBe(600);
    expect([...ends.values()].every((kind) => kind === 'served')).toBe(true);
    expect(simulation.openJobs).toBe(0);
    expect(simulation.policy?.accounts()).toMatchObject({ arrived: 600, served: 600, queued: 0, running: 0 });
  });

  test('gives the same decisions for the same events, and other ones under another policy', () => {
    const digests = [simulate('spillway'), simulate('spillway'), simulate('round-robin')].map(
      ({ simulation }) => simulation.hash.digest(),
    );
    expect(digests[0]).toBe(digests[1]);
    expect(digests[2]).not.toBe(digests[0]);
  });

  test('reads the load of an engine that batches each second, as the gateway does, and probes it as seldom as others', () => {
    const told: string[] = [];
    const simulation = new Simulation({
      createPolicy: () => {
        const policy = createScheduler(defaultSchedulerConfig());
        const apply: typeof policy.apply = (event, now, out) => {
          if ('nodeId' in event) told.push(`${event.kind} ${event.nodeId}`);
          policy.apply(event, now, out);
        };
        return { ...policy, apply };
      },
      nodes: buildFleet(
        [nodeGroup({ name: 'slot', count: 1 }), nodeGroup({ name: 'text', count: 1, engine: TEXT_ENGINE })],
        { seed: 1, mix: [] },
      ),
      clients: steadyClients(0, new Map()),
    });
    simulation.runUntil(60 * S);
    const countOf = (news: string): number => told.filter((one) => one === news).length;
    for (const id of ['slot-1', 'text-1']) {
      expect(countOf(`node-probed ${id}`)).toBe(12);
      expect(countOf(`node-heartbeat ${id}`)).toBe(12);
    }
    expect(countOf('node-reading text-1')).toBeGreaterThan(55);
  });

  test('a node that dies gives its requests back, and they are served elsewhere', () => {
    const { simulation, ends } = simulate('spillway', (run) =>
      run.at(10 * S, () => {
        const node = run.nodes.get('n3') as SimNode;
        node.faults.dead = true;
        run.die(node);
      }),
    );
    expect([...ends.values()].filter((kind) => kind !== 'served')).toEqual([]);
    expect(simulation.nodes.get('n3')?.machine.inflight).toBe(0);
  });

  test('a crash loses what was under way, and nodes come back with their next beat', () => {
    const { simulation, ends } = simulate('spillway', (run) => run.at(10 * S, () => run.crash(S)));
    const kinds = [...ends.values()];
    expect(ends.size).toBe(600);
    expect(kinds.filter((kind) => kind === 'lost').length).toBeGreaterThan(0);
    expect(ends.get(600)).toBe('served');
    expect(simulation.openJobs).toBe(0);
  });
});
