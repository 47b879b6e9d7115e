/** Fleets of every engine behind the scheduler: what machines, driver and policy make of each other. */
import { describe, expect, test } from 'vitest';
import { S, taskSpec } from '../../../test/support/specs.ts';
import type { MonoUs } from '../../base/units.ts';
import { defaultSchedulerConfig } from '../../core/config/defaults.ts';
import { createScheduler } from '../../core/scheduler/index.ts';
import { referenceWorkUs } from '../../hardware/reference-work.ts';
import type { Clients } from '../clients/clients.ts';
import type { Demand } from '../machines/machine.ts';
import type { JobEnd } from '../observer.ts';
import type { EngineSpec, NodeGroup } from '../scenario/types.ts';
import { Simulation } from '../simulation.ts';
import { buildFleet } from './build-fleet.ts';
import { fleetCapacity } from './capacity.ts';
import type { Mix } from './mix.ts';

/** A node takes one request, then one more with each that it served: the first requests may be refused. */
const KNOWN_AFTER = 40;
const PICTURE: Demand = { kind: 'image', units: 1 };
const TEXT: Demand = { kind: 'text', promptTokens: 300, outputTokens: 100 };

const ENGINES: readonly { readonly engine: EngineSpec; readonly demand: Demand }[] = [
  { engine: { kind: 'slots', slots: 1 }, demand: PICTURE },
  { engine: { kind: 'image-batch', batchMax: 4 }, demand: PICTURE },
  {
    engine: {
      kind: 'text-batch',
      sequencesMax: 16,
      cacheTokensMax: 20_000,
      prefixBlocksMax: 0,
      tokensPerBlock: 16,
    },
    demand: TEXT,
  },
];

function group(engine: EngineSpec, canAbort: boolean): NodeGroup {
  return {
    name: 'g',
    count: 4,
    hardware: 'A100-80',
    statedHardware: 'A100',
    speed: 1,
    speedSigma: 0.2,
    engine,
    models: ['m', 'n'],
    residentMax: 1,
    swapUs: S / 2,
    zone: '',
    rttUs: 2_000,
    beatUs: 5 * S,
    heartbeats: true,
    canAbort,
    ratesKnown: true,
  };
}

/** Evenly spaced, of two models in turns of ten. */
function steadyClients(
  demand: Demand,
  {
    perSecond,
    count,
    ends,
  }: { readonly perSecond: number; readonly count: number; readonly ends: Map<number, JobEnd['kind']> },
): Clients {
  let next = 1;
  const at = (): MonoUs => (next > count ? Number.POSITIVE_INFINITY : Math.round((next * S) / perSecond));
  return {
    nextAt: at,
    advance(now, sink) {
      const workUs = referenceWorkUs(demand);
      const model = next % 20 < 10 ? 'm' : 'n';
      sink.submit({ task: taskSpec(next++, { model, workUs, deadlineAt: now + 60 * S }), demand, noise: 1 });
    },
    outcome: (taskId, end) => void ends.set(taskId, end.kind),
  };
}

describe.each(ENGINES)('a fleet of $engine.kind behind the scheduler', ({ engine, demand }) => {
  test.each([true, false])(
    'serves everybody at half of its capacity once its nodes are known, can abort: %s',
    (canAbort) => {
      const mix: Mix = ['m', 'n'].map((model) => ({ model, share: 1, demands: [demand] }));
      const nodes = buildFleet([group(engine, canAbort)], { seed: 3, mix });
      const perSecond = fleetCapacity(nodes, mix).requestsPerSecond / 2;
      const ends = new Map<number, JobEnd['kind']>();
      const count = 400;
      const simulation = new Simulation({
        createPolicy: () => createScheduler(defaultSchedulerConfig()),
        nodes,
        clients: steadyClients(demand, { perSecond, count, ends }),
      });
      simulation.runUntil(Math.ceil((count * S) / perSecond) + 100 * S);
      expect(ends.size).toBe(count);
      const late = [...ends].filter(([id, kind]) => id > KNOWN_AFTER && kind !== 'served');
      expect(late).toEqual([]);
      expect(simulation.openJobs).toBe(0);
      for (const { machine } of nodes) expect(machine.inflight).toBe(0);
    },
  );
});
