/**
 * A fleet in virtual time with the noise of a usual day, to see whom the scheduler blames.
 *
 * Noise: service times lognormal (sigma 0.3), task sizes log-uniform over a factor of 40, arrivals Poisson at 0.6 of the
 * capacity with a burst of ten seconds at 1.5 of it each minute, nodes of speed 0.5 to 2, of every thousand requests
 * five failures by chance (5xx or reset), ten wrong ones (4xx) and ten whose client leaves.
 */
import { createPrng, type Prng } from '../../src/base/prng.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../../src/core/config/defaults.ts';
import type { AttemptResult } from '../../src/core/request/outcome.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import { type VirtualNode, VirtualRun } from './virtual-run.ts';
import { nodeSpec, S, taskSpec } from './specs.ts';

const LEAST_WORK_US = S / 5;
const SIZE_SPAN = 40;
const MEAN_WORK_US = (LEAST_WORK_US * (SIZE_SPAN - 1)) / Math.log(SIZE_SPAN);
const LOAD = 0.6;
const BURST_LOAD = 1.5;
const BURST_EVERY_US = 60 * S;
const BURST_US = 10 * S;
const DEADLINE_US = 120 * S;
const SIGMA = 0.3;
const SPEEDS = [0.5, 0.75, 1, 1.5, 2] as const;

export type Chance = 'failure' | 'declined' | 'leaves' | 'none';

export interface NoisyFleetOptions {
  readonly nodes: number;
  readonly slots: number;
  readonly seed: number;
  /** Load of a burst; 1.5 of the capacity when absent. */
  readonly burstLoad?: number;
  /** Of the nodes in turn. */
  readonly speeds?: readonly number[];
  readonly overrides?: SchedulerOverrides;
}

export interface Sent {
  readonly at: number;
  readonly nodeId: string;
}

export class NoisyFleet {
  readonly run: VirtualRun;
  readonly sent: Sent[] = [];
  /** Instants at which requests ended that a client wanted and did not get. */
  readonly harmedAt: number[] = [];
  /** Instants of arrival. */
  readonly arrivedAt: number[] = [];
  readonly #prng: Prng;
  readonly #perUs: number;
  readonly #burstLoad: number;
  readonly #chances: Map<number, Chance> = new Map();
  #nextId = 1;
  #nextAt = 0;

  constructor({
    nodes,
    slots,
    seed,
    burstLoad = BURST_LOAD,
    speeds = SPEEDS,
    overrides = {},
  }: NoisyFleetOptions) {
    this.#prng = createPrng(seed);
    this.#burstLoad = burstLoad;
    this.run = new VirtualRun(defaultSchedulerConfig({ ...overrides, seed }), {
      assigned: (_task, nodeId, at) => this.sent.push({ at, nodeId }),
      outcome: (task, outcome, at) => {
        const isFailure = outcome.kind === 'failed' && outcome.reason !== 'declined';
        if (isFailure || outcome.kind === 'evicted' || outcome.kind === 'rejected') this.harmedAt.push(at);
        this.#chances.delete(task.id);
      },
    });
    this.run.keepsLog = true;
    let capacity = 0;
    for (let i = 0; i < nodes; i++) {
      const speed = speeds[i % speeds.length] as number;
      capacity += speed * slots;
      this.run.addNode({
        spec: nodeSpec(`n${i}`, { slots }),
        speed,
        sigma: SIGMA,
        fault: (task) => this.chanceResult(task),
      });
    }
    this.#perUs = capacity / MEAN_WORK_US;
  }

  /** How chance ends the task's attempt, on a healthy node. A failure by chance does not follow the task elsewhere. */
  chanceResult(task: TaskSpec): AttemptResult | undefined {
    const chance = this.#chances.get(task.id);
    if (chance === 'failure') {
      this.#chances.set(task.id, 'none');
      return { kind: 'failed', failure: task.id % 2 === 0 ? 'server-error' : 'reset', retryable: true };
    }
    return chance === 'declined' ? { kind: 'declined' } : undefined;
  }

  get ids(): readonly string[] {
    return [...this.run.nodes.keys()];
  }

  node(id: string): VirtualNode {
    return this.run.nodes.get(id) as VirtualNode;
  }

  state(id: string): string | undefined {
    return this.run.scheduler.node(id, this.run.now)?.state;
  }

  runFor(durationUs: number): void {
    const until = this.run.now + durationUs;
    while (this.#nextAt <= until) {
      this.run.runUntil(this.#nextAt);
      this.#arrive();
      const isBurst = this.#nextAt % BURST_EVERY_US < BURST_US;
      const rate = this.#perUs * (isBurst ? this.#burstLoad : LOAD);
      this.#nextAt += Math.max(1, Math.round(-Math.log(1 - this.#prng.nextRatio()) / rate));
    }
    this.run.runUntil(until);
  }

  /** Instants at which a node was ejected. */
  ejectedAt(id: string): number[] {
    return this.run.log
      .filter((line) => line.endsWith(` node ${id} ejected`))
      .map((line) => Number(line.split(' ')[0]));
  }

  #arrive(): void {
    const { now } = this.run;
    const id = this.#nextId++;
    const draw = this.#prng.nextBelow(1_000);
    const chance: Chance = draw < 5 ? 'failure' : draw < 15 ? 'declined' : draw < 25 ? 'leaves' : 'none';
    this.#chances.set(id, chance);
    this.arrivedAt.push(now);
    const workUs = Math.round(LEAST_WORK_US * SIZE_SPAN ** this.#prng.nextRatio());
    this.run.submit(
      taskSpec(id, {
        workUs,
        tenant: `t${id % 7}`,
        deadlineAt: now + DEADLINE_US,
        fingerprint: `body ${id}`,
      }),
    );
    if (chance === 'leaves')
      this.run.at(now + this.#prng.nextBelow(5 * S), () => this.run.apply({ kind: 'cancel', taskId: id }));
  }
}
