/** Runs the cases of the detectors in virtual time, and healthy traffic in which every finding is a false alarm. */
import type { SignalsReport } from '../../src/simulator/measure/signal-log.ts';
import { createPolicy } from '../../src/simulator/policies/registry.ts';
import { runPolicy } from '../../src/simulator/run-scenario.ts';
import type { Simulation } from '../../src/simulator/simulation.ts';
import { policySpec } from './scenarios.ts';
import { scene, type SignalCase, traffic, WORKFLOW } from './signal-cases.ts';
import { S } from './specs.ts';

const MIN = 60 * S;

/** No fault: every node is busy, and its memory goes up and down. */
export function busyMemory(load: number): SignalCase {
  return {
    fault: 'memory goes up and down',
    raises: [],
    mayRaise: [],
    at: 0,
    withinUs: 0,
    scenario: scene({ spanUs: 20 * MIN, streams: [traffic({ stages: WORKFLOW }, load)] }),
    prepare: breathe,
  };
}

/** The memory of each node goes up and down between 70 and 90 %, each in its own time. */
function breathe(simulation: Simulation): void {
  const nodes = [...simulation.nodes.keys()];
  const tell = (): void => {
    for (const [at, nodeId] of nodes.entries()) {
      const memoryUse = 0.8 + 0.1 * Math.sin(simulation.now / (7 * S) + at);
      simulation.apply({ kind: 'node-memory', nodeId, memory: { memoryUse, reservedUse: 0 } });
    }
    simulation.at(simulation.now + 10 * S, tell);
  };
  simulation.at(S, tell);
}

/** A day and a night without any fault: a quarter of the capacity at four, 85 % of it at sixteen o'clock. */
export function healthyDay(hours: number): SignalCase {
  const course = Array.from({ length: hours * 12 }, (_, nth) => ({
    from: nth * 5 * MIN,
    times: 0.55 - 0.3 * Math.cos((2 * Math.PI * (nth / 12 - 4)) / 24),
  }));
  return {
    fault: 'none',
    raises: [],
    mayRaise: [],
    at: 0,
    withinUs: 0,
    scenario: scene({
      name: 'healthy',
      spanUs: hours * 60 * MIN,
      streams: [traffic({ course, stages: WORKFLOW }, 1)],
    }),
    prepare: breathe,
  };
}

export interface CaseRun {
  readonly requests: number;
  readonly signals: SignalsReport;
}

export function runCase(one: SignalCase, seed: number): CaseRun {
  const { scenario, policy = 'spillway', prepare } = one;
  const spec = policySpec({ policy, config: scenario.config });
  const { report, signals } = runPolicy(
    { ...scenario, drainUs: 0 },
    {
      createPolicy: () => createPolicy(spec, seed),
      seed,
      signals: one.signals ?? {},
      ...(prepare === undefined ? {} : { prepare }),
    },
  );
  return { requests: report.requests, signals: signals as SignalsReport };
}
