/**
 * A model of LiteLLM's router: how it spreads requests for one model over deployments, retries, and cools deployments down.
 *
 * Source: github.com/BerriAI/litellm, `litellm/router.py`, `router_strategy/{simple_shuffle,least_busy,lowest_latency,
 * lowest_tpm_rpm_v2}.py`, `router_utils/cooldown_handlers.py`, and the router pages of docs.litellm.ai.
 *
 * Modelled: `simple-shuffle`, its default and what its documentation recommends for production: drawn in proportion to the
 * weights (or rpm, tpm) that operators state, here slots times stated speed, or evenly with `weights: none`. `least-busy`:
 * fewest requests in flight, the first of equals. `latency-based`: the lowest mean of the last ten latencies, per output
 * token where the answer has any; deployments that have not been measured come first; a time-out counts 1,000 s.
 * `usage-based`: fewest tokens answered in this minute, ties by chance. Two retries, on deployments that have not failed
 * the request. A deployment cools down for 5 s after a refusal (429), or when more than half of its answers of this minute
 * failed, of five or more; the only one of a model only when 1,000 failed and none else came. When all are cooling, requests
 * are refused for that long.
 *
 * Left out: rate limits, fallbacks to other models, waits between retries, Redis and what several proxies do not know of
 * each other. It has no queue: what a deployment cannot run waits inside of it, without a bound. The ten latencies are the
 * last ones, which is kinder than the code of the version that was read: that keeps the first nine.
 */
import { msToUs, type DurationUs, type MonoUs } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type { BaselineNode } from './frame/baseline-node.ts';
import type { BaselineTask } from './frame/baseline-task.ts';
import type { Desk } from './frame/discipline.ts';
import { anyOf, type ChoiceRule, earlyBinding, type FailedAttempt, leastOf } from './frame/early-binding.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';
import { wordOption, type OptionsOf, type OptionTable } from './frame/options.ts';
import { statedWeight, weightedPick } from './frame/weighted-pick.ts';

const COOLDOWN_MS = 5_000;
const MINUTE_US = 60_000_000;
const LATENCIES_MAX = 10;
const TIMEOUT_PENALTY_US = 1_000_000_000;
const FAIL_SHARE_MAX = 0.5;
/** Answers of a minute from which the share of failures says something. */
const ANSWERS_MIN = 5;
const ANSWERS_MIN_OF_ONE = 1_000;

const OPTIONS = {
  strategy: wordOption(
    'simple-shuffle',
    ['simple-shuffle', 'least-busy', 'latency-based', 'usage-based'],
    'routing_strategy',
  ),
  weights: wordOption('stated', ['stated', 'none'], 'whether deployments have weights, for simple-shuffle'),
} as const satisfies OptionTable;

/** What is known of one deployment. */
class Deployment {
  readonly #latencies: Map<string, number[]> = new Map();
  #minute = -1;
  #succeeded = 0;
  #failed = 0;
  #tokens = 0;

  note(task: BaselineTask, result: AttemptResult, now: MonoUs): void {
    this.#turn(now);
    const { model } = task.spec;
    if (result.kind === 'ok') {
      const { promptTokens = 0, outputTokens = 0 } = result.usage ?? {};
      this.#succeeded += 1;
      this.#tokens += promptTokens + outputTokens;
      this.#noteLatency(model, (now - task.startedAt) / Math.max(1, outputTokens));
    } else if (result.kind === 'failed') {
      this.#failed += 1;
      if (result.failure === 'timeout') this.#noteLatency(model, TIMEOUT_PENALTY_US);
    }
  }

  /** Whether it failed too often within this minute. */
  get isFailing(): boolean {
    const all = this.#succeeded + this.#failed;
    return all >= ANSWERS_MIN && this.#failed > FAIL_SHARE_MAX * all;
  }

  /** Whether nothing else came from it within this minute, often enough to close the only one of a model. */
  get isDead(): boolean {
    return this.#succeeded === 0 && this.#failed >= ANSWERS_MIN_OF_ONE;
  }

  tokens(now: MonoUs): number {
    this.#turn(now);
    return this.#tokens;
  }

  latency(model: string): DurationUs {
    const latencies = this.#latencies.get(model) ?? [];
    return latencies.reduce((sum, value) => sum + value, 0) / Math.max(1, latencies.length);
  }

  #noteLatency(model: string, value: number): void {
    const latencies = this.#latencies.get(model) ?? [];
    latencies.push(value);
    if (latencies.length > LATENCIES_MAX) latencies.shift();
    this.#latencies.set(model, latencies);
  }

  #turn(now: MonoUs): void {
    const minute = Math.floor(now / MINUTE_US);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#succeeded = 0;
    this.#failed = 0;
    this.#tokens = 0;
  }
}

class Router implements ChoiceRule {
  readonly refusedForUs: DurationUs = msToUs(COOLDOWN_MS);
  readonly #options: OptionsOf<typeof OPTIONS>;
  readonly #deployments: WeakMap<BaselineNode, Deployment> = new WeakMap();

  constructor(options: OptionsOf<typeof OPTIONS>) {
    this.#options = options;
  }

  choose(task: BaselineTask, nodes: readonly BaselineNode[], desk: Desk): BaselineNode | undefined {
    const healthy = nodes.filter((node) => node.isOpen(desk.now));
    if (healthy.length === 0) return undefined;
    const { model } = task.spec;
    const first = (equal: readonly BaselineNode[]): BaselineNode => equal[0] as BaselineNode;
    switch (this.#options.strategy) {
      case 'least-busy':
        return leastOf(healthy, (node) => node.bound, first);
      case 'latency-based':
        return leastOf(healthy, (node) => this.#of(node).latency(model), anyOf(desk));
      case 'usage-based':
        return leastOf(healthy, (node) => this.#of(node).tokens(desk.now), anyOf(desk));
      default: {
        const isStated = this.#options.weights === 'stated';
        return weightedPick(healthy, (node) => (isStated ? statedWeight(node, model) : 1), desk.prng);
      }
    }
  }

  ended(task: BaselineTask, node: BaselineNode, result: AttemptResult, now: MonoUs): void {
    this.#of(node).note(task, result, now);
  }

  closes({ task, node, result }: FailedAttempt, desk: Desk): boolean {
    const isOnlyOne = desk.nodes.filter((other) => other.fits(task.spec)).length === 1;
    if (isOnlyOne) return this.#of(node).isDead;
    return (result.kind === 'failed' && result.failure === 'refused') || this.#of(node).isFailing;
  }

  #of(node: BaselineNode): Deployment {
    const known = this.#deployments.get(node) ?? new Deployment();
    this.#deployments.set(node, known);
    return known;
  }
}

export const MODEL_OF_LITELLM: PolicyEntry = baseline({
  name: 'model-of-litellm',
  about:
    'LiteLLM’s router: a weighted draw by default, two retries, short cooldowns; nothing bounds what waits at nodes',
  source: 'github.com/BerriAI/litellm, docs.litellm.ai',
  options: OPTIONS,
  defaults: { attempts: 3, cooldownMs: COOLDOWN_MS, timeoutMs: 6_000_000 },
  discipline: (options) => earlyBinding(() => new Router(options)),
});
