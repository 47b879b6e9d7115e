/**
 * Prequal (Wydrowski et al., NSDI 2024): each request sends a few probes to nodes drawn evenly, and goes to the best node of a
 * pool of recent answers. An answer tells the requests in flight there (rif) and how long requests took lately that met
 * about as many: the median.
 *
 * Hot-cold rule: an answer is hot if its rif is above a quantile of the rifs seen lately. Among the cold ones the one with
 * the least latency is taken; if all are hot, the one with the least rif. The answer that was used counts one more in
 * flight from then on, and may be used again for as often as
 * `max(1, (1 + delta) / ((1 - pool / nodes) * probes - removed))` says; each request also removes the oldest and the worst
 * answer in turn. With fewer than two fresh answers the request waits for probes of its own (the paper's synchronous mode),
 * which takes no time here.
 *
 * Where we differ: one gateway is the only client, so rif is its own count; nodes are not asked over a network.
 * Bounds: `POOL_MAX` answers, `LATENCIES_MAX` latencies per node, `RIFS_MAX` rifs.
 */
import { msToUs, type DurationUs, type MonoUs } from '../../base/units.ts';
import type { BaselineNode } from './frame/baseline-node.ts';
import type { BaselineTask } from './frame/baseline-task.ts';
import type { Desk } from './frame/discipline.ts';
import { type ChoiceRule, earlyBinding } from './frame/early-binding.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';
import { numberOption, type OptionsOf, type OptionTable } from './frame/options.ts';

const POOL_MAX = 16;
const LATENCIES_MAX = 64;
const RIFS_MAX = 128;
const DELTA = 1;
/** Answers removed per request. */
const REMOVED = 1;

const OPTIONS = {
  probes: numberOption(3, [1, 16], 'probes per request'),
  hotQuantile: numberOption(0.84, [0, 1], 'quantile of requests in flight above which a node is hot'),
  ageMs: numberOption(1_000, [1, 3_600_000], 'age at which an answer is dropped'),
} as const satisfies OptionTable;

interface Answer {
  readonly node: BaselineNode;
  readonly latencyUs: DurationUs;
  readonly at: MonoUs;
  rif: number;
  usesLeft: number;
}

interface Latency {
  readonly rif: number;
  readonly us: DurationUs;
}

class Prequal implements ChoiceRule {
  readonly #options: OptionsOf<typeof OPTIONS>;
  #pool: Answer[] = [];
  readonly #rifs: number[] = [];
  readonly #latencies: WeakMap<BaselineNode, Latency[]> = new WeakMap();
  /** Of tasks under way: how many were in flight when they came. */
  readonly #metRif: WeakMap<BaselineTask, { readonly rif: number; readonly at: MonoUs }> = new WeakMap();
  #removesOldest = true;

  constructor(options: OptionsOf<typeof OPTIONS>) {
    this.#options = options;
  }

  choose(task: BaselineTask, nodes: readonly BaselineNode[], desk: Desk): BaselineNode {
    const oldestAt = desk.now - msToUs(this.#options.ageMs);
    this.#pool = this.#pool.filter(
      ({ at, node, usesLeft }) => at >= oldestAt && !node.isGone && usesLeft > 0,
    );
    const fresh = this.#pool.filter(({ node }) => nodes.includes(node));
    const answers = fresh.length >= 2 ? fresh : this.#probe(nodes, desk);
    const answer = this.#hotCold(answers, 1);
    answer.rif += 1;
    answer.usesLeft -= 1;
    this.#metRif.set(task, { rif: answer.node.bound, at: desk.now });
    this.#removeOne();
    this.#pool.push(...this.#probe(nodes, desk));
    this.#pool.splice(0, this.#pool.length - POOL_MAX);
    return answer.node;
  }

  ended(task: BaselineTask, node: BaselineNode, result: { readonly kind: string }, now: MonoUs): void {
    const met = this.#metRif.get(task);
    if (met === undefined || result.kind !== 'ok') return;
    const latencies = this.#latencies.get(node) ?? [];
    latencies.push({ rif: met.rif, us: now - met.at });
    if (latencies.length > LATENCIES_MAX) latencies.shift();
    this.#latencies.set(node, latencies);
  }

  #probe(nodes: readonly BaselineNode[], desk: Desk): Answer[] {
    const rest = [...nodes];
    const answers: Answer[] = [];
    const { probes } = this.#options;
    const gain = (1 - POOL_MAX / nodes.length) * probes - REMOVED;
    const usesLeft = gain > 0 ? Math.max(1, (1 + DELTA) / gain) : Number.POSITIVE_INFINITY;
    while (answers.length < probes && rest.length > 0) {
      const [node] = rest.splice(desk.prng.nextBelow(rest.length), 1) as [BaselineNode];
      const rif = node.bound;
      answers.push({ node, rif, latencyUs: this.#latencyOf(node, rif), at: desk.now, usesLeft });
      this.#rifs.push(rif);
    }
    this.#rifs.splice(0, this.#rifs.length - RIFS_MAX);
    return answers;
  }

  /** Median of what took place at this rif, or else at the nearest one; 0 where nothing is known, so that it is tried. */
  #latencyOf(node: BaselineNode, rif: number): DurationUs {
    const latencies = this.#latencies.get(node) ?? [];
    let nearest = Number.POSITIVE_INFINITY;
    for (const latency of latencies) nearest = Math.min(nearest, Math.abs(latency.rif - rif));
    const near = latencies.filter((latency) => Math.abs(latency.rif - rif) === nearest).map(({ us }) => us);
    near.sort((one, other) => one - other);
    return near[near.length >> 1] ?? 0;
  }

  /** The best answer by the rule; with `sign` -1 the worst: the hottest, or else the slowest. */
  #hotCold(answers: readonly Answer[], sign: 1 | -1): Answer {
    const sorted = [...this.#rifs].sort((one, other) => one - other);
    const limit = sorted[Math.floor(this.#options.hotQuantile * (sorted.length - 1))] ?? 0;
    const isHot = ({ rif }: Answer): boolean => rif > limit;
    const cold = answers.filter((answer) => !isHot(answer));
    const hot = answers.filter(isHot);
    const isByLatency = sign === 1 ? cold.length > 0 : hot.length === 0;
    const among = isByLatency ? cold : hot;
    const value = (answer: Answer): number => sign * (isByLatency ? answer.latencyUs : answer.rif);
    return among.reduce((best, answer) => (value(answer) < value(best) ? answer : best));
  }

  #removeOne(): void {
    if (this.#pool.length === 0) return;
    const removed = this.#removesOldest ? this.#pool[0] : this.#hotCold(this.#pool, -1);
    this.#removesOldest = !this.#removesOldest;
    this.#pool.splice(this.#pool.indexOf(removed as Answer), 1);
  }
}

export const PREQUAL: PolicyEntry = baseline({
  name: 'prequal',
  about:
    'probes of a few nodes; the fastest of those that are not hot by requests in flight; queues without a bound',
  source: 'Wydrowski et al., Load is not what you should balance: Introducing Prequal, NSDI 2024',
  options: OPTIONS,
  discipline: (options) => earlyBinding(() => new Prequal(options)),
});
