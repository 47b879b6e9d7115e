/**
 * Does the simulator tell the truth? The demo's fleet (emulated accelerators) once over real sockets, with a real gateway
 * process and real clients, and once in virtual time with the same users at the same instants: waits by class and
 * goodput, side by side. Nobody takes a lesser answer in it: answers from memory are the gateway's edge, not the scheduler.
 *
 *   node bench/fidelity/main.ts [--json] [--policy spillway] [--seed N] [--rounds N] [--speedup 12]
 *
 * Two figures agree when they differ by at most 10 %, or by no more than a request's way through gateway and clients
 * takes on this machine (`ROAD_MS`), which the simulator leaves out. Ends with 1 when one does not agree.
 */
import { parseArgs } from 'node:util';
import { DEMO_SEED, runDemo } from '../../src/apps/demo/demo.ts';
import type { DemoPolicy } from '../../src/apps/demo/gateway-config.ts';
import { createPlan, type DemoPlan } from '../../src/apps/demo/plan.ts';
import { type DemoDocument, type PolicyReport, reportOf } from '../../src/apps/demo/report.ts';
import { NO_STALL } from '../../src/apps/demo/stall-watch.ts';
import { simulateDemo } from './simulated-demo.ts';

const AGREEMENT = 0.1;
const ROAD_MS = 5;

interface Figure {
  readonly policy: string;
  readonly name: string;
  readonly real: number;
  readonly simulated: number;
  /** Simulated over real, less one. */
  readonly error: number;
  readonly agrees: boolean;
}

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    policy: { type: 'string', default: 'round-robin,spillway' },
    seed: { type: 'string', default: String(DEMO_SEED) },
    rounds: { type: 'string', default: '1' },
    speedup: { type: 'string', default: '12' },
  },
});

const plan: DemoPlan = {
  ...createPlan({ quick: values.quick, seed: Number(values.seed), speedup: Number(values.speedup) }),
  consentShare: 0,
  embeddingPerS: 0,
};
const figures: Figure[] = [];
for (const policy of values.policy.split(',') as DemoPolicy[]) {
  const simulated = simulatedReport(plan, policy);
  const rounds: PolicyReport[] = [];
  for (let round = 0; round < Number(values.rounds); round++) rounds.push(await realReport(plan, policy));
  figures.push(...compare(policy, rounds, simulated));
}
if (values.json) process.stdout.write(`${JSON.stringify({ emulated: true, figures }, undefined, 2)}\n`);
else for (const figure of figures) process.stdout.write(`${lineOf(figure)}\n`);
process.exitCode = figures.every((figure) => figure.agrees) ? 0 : 1;

async function realReport(of: DemoPlan, policy: DemoPolicy): Promise<PolicyReport> {
  process.stderr.write(`${policy}: over real sockets (EMULATED accelerators) …\n`);
  let text = '';
  await runDemo({
    json: true,
    plan: of,
    policies: [policy],
    write: (part) => {
      text += part;
    },
  });
  const report = (JSON.parse(text) as DemoDocument).policies[policy];
  if (report === undefined) throw new Error(`The demo has no report of ${policy}`);
  return report;
}

function simulatedReport(of: DemoPlan, policy: DemoPolicy): PolicyReport {
  const measures = simulateDemo(of, policy);
  return reportOf(of, {
    ...measures,
    untypedErrors: 0,
    peakRssBytes: 0,
    embedding: { served: 0, failed: 0 },
    stalls: { clients: NO_STALL, gateway: NO_STALL, view: NO_STALL },
  });
}

function compare(policy: string, real: readonly PolicyReport[], simulated: PolicyReport): Figure[] {
  const figure = (name: string, of: (report: PolicyReport) => number, slack: number): Figure => {
    const measured = median(real.map(of));
    const told = of(simulated);
    const error = measured === 0 ? 0 : told / measured - 1;
    const agrees = Math.abs(error) <= AGREEMENT || Math.abs(told - measured) <= slack;
    return { policy, name, real: measured, simulated: told, error, agrees };
  };
  const rows = [figure('goodput', (report) => report.goodputRatio, 0)];
  for (const name of Object.keys(simulated.byClass)) {
    rows.push(figure(`${name}: attained`, (report) => report.byClass[name]?.attained ?? 0, 0.005));
    for (const quantile of ['p50', 'p95', 'p99'] as const) {
      rows.push(
        figure(
          `${name}: wait ${quantile}, ms`,
          (report) => report.byClass[name]?.waitMs[quantile] ?? 0,
          ROAD_MS,
        ),
      );
    }
  }
  return rows;
}

function median(values_: readonly number[]): number {
  const sorted = [...values_].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}

function lineOf({ policy, name, real, simulated, error, agrees }: Figure): string {
  const cells = [
    policy.padEnd(12),
    name.padEnd(24),
    real.toFixed(3).padStart(12),
    simulated.toFixed(3).padStart(12),
  ];
  return `${cells.join(' ')} ${(100 * error).toFixed(1).padStart(8)} %  ${agrees ? 'agrees' : 'DIFFERS'}`;
}
