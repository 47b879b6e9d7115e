/**
 * Scenarios: stories of the scheduler as text, played in virtual time. One command a line, `#` starts a comment.
 *
 *   config tasks 3                      before the first node: tasks, flow-wait 2s, held, retries, reserve, swap 5s,
 *                                       eject 5s, refused 1s, slow-start 0
 *   node a A100 x2                      hardware and slots; then any of: speed 0.5, model m, zone eu, context 4000,
 *                                       heartbeats, batching, keeps 8 (blocks of prompts), remembered ejected 3s,
 *                                       remembered cordoned
 *   submit 1 critical 2s                class and work; then any of: deadline 5s, first-byte 1s (a stream), tenant t,
 *                                       model m, body b, zone eu, context 9000, prompt a/b/c (its blocks, each of which saves
 *                                       a fifth of the work where it is kept)
 *   at 1.5s                             lets time pass up to this instant; work ends by itself at the node's speed
 *   fail 1 reset                        ends an attempt: connect reset timeout refused server-error protocol, or
 *                                       declined, aborted; `final` when the answer had begun; `retry-after 3s`
 *   finish 1 · cancel 1 · hang 1 · first-byte 1
 *   cordon a · uncordon a · drain a · undrain a · remove a · probe a dead|alive · heartbeat a
 *   reading a waiting 2 cache 0.95 · shed 1 · shutdown
 *   expect 1 on a                       or: waits, served, cancelled, rejected too-slow, evicted wait-expired, failed poison
 *   expect queue 3 · expect running 2 · expect node a ejected · expect aborted 1 · expect drained a
 *   expect order 3 1 2                  in which these tasks were sent to nodes
 */
import type { SchedulerOverrides } from '../../src/core/config/defaults.ts';
import { defaultSchedulerConfig } from '../../src/core/config/defaults.ts';
import type { AttemptResult, FailureKind } from '../../src/core/request/outcome.ts';
import { NO_NEEDS } from '../../src/core/request/needs.ts';
import type { NodeMemory } from '../../src/core/scheduler/events.ts';
import { CheckedScheduler } from '../support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../support/specs.ts';

const FAILURES: readonly string[] = ['connect', 'reset', 'timeout', 'refused', 'server-error', 'protocol'];

/** Thrown with the line that was not met and what was found instead. */
export class ScenarioError extends Error {
  override readonly name = 'ScenarioError';
}

export function playScenario(text: string, file: string): void {
  const story = new Story();
  text.split('\n').forEach((line, index) => {
    const command = line.replace(/#.*/, '').trim();
    if (command === '') return;
    try {
      story.play(command.split(/\s+/));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ScenarioError(`${file}:${index + 1}: ${command}\n  ${reason}\n${story.context()}`, {
        cause: error,
      });
    }
  });
  if (story.expectations === 0)
    throw new ScenarioError(`${file}: a scenario without an expect shows nothing`);
}

class Story {
  expectations = 0;
  #overrides: SchedulerOverrides = {};
  #world: CheckedScheduler | null = null;
  readonly #speeds: Map<string, number> = new Map();
  readonly #order: number[] = [];
  readonly #hanging: Set<number> = new Set();
  readonly #blockIds: Map<string, number> = new Map();
  readonly #kept: Map<string, Set<number>> = new Map();
  /** When each running attempt ends by itself. */
  readonly #ends: Map<number, { readonly attempt: number; readonly at: number }> = new Map();

  play([verb = '', ...words]: readonly string[]): void {
    const rest = new Words(words);
    if (verb === 'config') this.#configure(rest);
    else if (verb === 'node') this.#register(rest);
    else if (verb === 'submit') this.#submit(rest);
    else if (verb === 'at') this.#advanceTo(durationUs(rest.next('an instant')));
    else if (verb === 'expect') this.#expect(rest);
    else if (!this.#playTask(verb, rest) && !this.#playNode(verb, rest))
      throw new Error(`Unknown command ${verb}`);
    rest.end();
    if (this.#world !== null) this.#plan();
  }

  /** The last effects, for whoever reads a failure. */
  context(): string {
    const log = this.#world?.log.slice(-12) ?? [];
    return ['  The last effects (microseconds):', ...log.map((line) => `    ${line}`)].join('\n');
  }

  get #checked(): CheckedScheduler {
    this.#world ??= new CheckedScheduler(defaultSchedulerConfig(this.#overrides));
    return this.#world;
  }

  #configure(rest: Words): void {
    if (this.#world !== null) throw new Error('config comes before the first node');
    const name = rest.next('a setting');
    const value = rest.next('a value');
    const count = Number(value);
    const changes: Readonly<Record<string, () => SchedulerOverrides>> = {
      tasks: () => ({
        bounds: { ...this.#overrides.bounds, tasksMax: count, classShareMax: 1, tenantShareMax: 1 },
      }),
      'flow-wait': () => ({
        admission: {
          ...this.#overrides.admission,
          flowWaitMsMax: durationUs(value) / 1_000,
          flowWaitDeadlineShare: 1,
        },
      }),
      held: () => ({ placement: { ...this.#overrides.placement, heldMax: count } }),
      swap: () => ({ placement: { ...this.#overrides.placement, swapMs: durationUs(value) / 1_000 } }),
      retries: () => ({ retry: { ...this.#overrides.retry, attemptsMax: count } }),
      reserve: () => ({ retry: { ...this.#overrides.retry, budgetReserve: count } }),
      eject: () => ({ health: { ...this.#overrides.health, ejectMs: durationUs(value) / 1_000 } }),
      refused: () => ({ health: { ...this.#overrides.health, refusedMs: durationUs(value) / 1_000 } }),
      'slow-start': () => ({ health: { ...this.#overrides.health, slowStartTasks: count } }),
    };
    const change = changes[name];
    if (change === undefined) throw new Error(`Unknown setting ${name}`);
    this.#overrides = { ...this.#overrides, ...change() };
  }

  #register(rest: Words): void {
    const id = rest.next('a node');
    const hardware = rest.next('a hardware class');
    const slots = Number(rest.next('slots such as x2').slice(1));
    let speed = 1;
    let offer: { model: string; contextTokensMax?: number } = { model: 'm' };
    let spec = nodeSpec(id, { hardware: hardware === '-' ? '' : hardware, slots });
    let memory: NodeMemory | undefined;
    while (rest.hasMore) {
      const option = rest.next('an option');
      if (option === 'speed') speed = Number(rest.next('a speed'));
      else if (option === 'model') offer = { ...offer, model: rest.next('a model') };
      else if (option === 'context') offer = { ...offer, contextTokensMax: Number(rest.next('tokens')) };
      else if (option === 'zone') spec = { ...spec, labels: { zone: rest.next('a zone') } };
      else if (option === 'heartbeats') spec = { ...spec, heartbeats: true };
      else if (option === 'batching') spec = { ...spec, batching: true };
      else if (option === 'keeps') spec = { ...spec, prefixBlocks: Number(rest.next('blocks')) };
      else if (option === 'remembered') memory = remembered(rest);
      else throw new Error(`Unknown option ${option}`);
    }
    this.#speeds.set(id, speed);
    const node = { ...spec, models: [offer] };
    this.#checked.apply({ kind: 'node-registered', node, ...(memory === undefined ? {} : { memory }) });
  }

  #submit(rest: Words): void {
    const id = Number(rest.next('a task number'));
    const className = rest.next('a class');
    const workUs = durationUs(rest.next('work'));
    const { now } = this.#checked;
    let spec = taskSpec(id, { className, workUs, deadlineAt: now + 3_600 * S });
    while (rest.hasMore) {
      const option = rest.next('an option');
      const value = rest.next(`a value of ${option}`);
      if (option === 'deadline') spec = { ...spec, deadlineAt: now + durationUs(value) };
      else if (option === 'first-byte')
        spec = { ...spec, stream: true, firstByteWorkUs: workUs / 10, deadlineAt: now + durationUs(value) };
      else if (option === 'tenant') spec = { ...spec, tenant: value };
      else if (option === 'model') spec = { ...spec, model: value };
      else if (option === 'body') spec = { ...spec, fingerprint: value };
      else if (option === 'prompt')
        spec = { ...spec, prefix: { blocks: this.#blocksOf(value), workUsPerBlock: workUs / 5 } };
      else if (option === 'zone') spec = { ...spec, needs: { ...NO_NEEDS, ...spec.needs, zone: value } };
      else if (option === 'context')
        spec = { ...spec, needs: { ...NO_NEEDS, ...spec.needs, contextTokens: Number(value) } };
      else throw new Error(`Unknown option ${option}`);
    }
    this.#checked.submit(spec);
  }

  /** A block stands for everything up to it. */
  #blocksOf(prompt: string): readonly number[] {
    const words = prompt.split('/');
    return words.map((_, at) => {
      const beginning = words.slice(0, at + 1).join('/');
      const id = this.#blockIds.get(beginning) ?? this.#blockIds.size;
      this.#blockIds.set(beginning, id);
      return id;
    });
  }

  /** What the node really keeps: every block that it ever computed. */
  #workOn(nodeId: string, taskId: number): number {
    const spec = this.#checked.specs.get(taskId);
    if (spec === undefined) return 1;
    const { blocks, workUsPerBlock } = spec.prefix ?? { blocks: [], workUsPerBlock: 0 };
    const kept = this.#kept.get(nodeId) ?? new Set();
    const missing = blocks.findIndex((block) => !kept.has(block));
    this.#kept.set(nodeId, new Set([...kept, ...blocks]));
    return spec.workUs - (missing < 0 ? blocks.length : missing) * workUsPerBlock;
  }

  #playTask(verb: string, rest: Words): boolean {
    if (!['fail', 'finish', 'cancel', 'hang', 'first-byte'].includes(verb)) return false;
    const taskId = Number(rest.next('a task number'));
    const world = this.#checked;
    if (verb === 'cancel') world.apply({ kind: 'cancel', taskId });
    else if (verb === 'hang') this.#hanging.add(taskId);
    else if (verb === 'first-byte') world.apply({ kind: 'attempt-first-byte', taskId });
    else if (!world.permits.has(taskId))
      throw new Error(`Task ${taskId} runs nowhere: ${this.#standing(taskId)}`);
    else world.end(taskId, verb === 'finish' ? { kind: 'ok' } : failedResult(rest));
    return true;
  }

  #playNode(verb: string, rest: Words): boolean {
    const world = this.#checked;
    if (verb === 'shutdown') world.apply({ kind: 'shutdown' });
    else if (verb === 'shed') world.apply({ kind: 'survival', shedClasses: Number(rest.next('a number')) });
    else {
      const nodeId = rest.next('a node');
      if (verb === 'cordon' || verb === 'uncordon')
        world.apply({ kind: 'node-cordoned', nodeId, cordoned: verb === 'cordon' });
      else if (verb === 'drain' || verb === 'undrain')
        world.apply({ kind: 'node-draining', nodeId, draining: verb === 'drain' });
      else if (verb === 'remove') world.apply({ kind: 'node-removed', nodeId });
      else if (verb === 'heartbeat') world.apply({ kind: 'node-heartbeat', nodeId });
      else if (verb === 'probe')
        world.apply({ kind: 'node-probed', nodeId, alive: rest.next('alive or dead') === 'alive' });
      else if (verb === 'reading') {
        const reading: { waiting?: number; cacheUse?: number } = {};
        while (rest.hasMore) {
          const field = rest.next('waiting or cache');
          reading[field === 'waiting' ? 'waiting' : 'cacheUse'] = Number(rest.next('a number'));
        }
        world.apply({ kind: 'node-reading', nodeId, reading });
      } else return false;
    }
    return true;
  }

  /** Every attempt that has just begun gets the instant at which it ends by itself; aborted ones end at once. */
  #plan(): void {
    const world = this.#checked;
    for (const [taskId, { nodeId, attempt, takenAt, isAborted }] of world.permits) {
      const known = this.#ends.get(taskId);
      if (known?.attempt !== attempt) {
        const workUs = this.#workOn(nodeId, taskId);
        this.#ends.set(taskId, { attempt, at: takenAt + workUs / (this.#speeds.get(nodeId) ?? 1) });
        this.#order.push(taskId);
      }
      if (isAborted) world.end(taskId, { kind: 'aborted' });
    }
  }

  #advanceTo(instant: number): void {
    const world = this.#checked;
    if (instant < world.now) throw new Error(`Time does not go back: it is ${world.now / S} s`);
    for (;;) {
      this.#plan();
      const [next] = [...world.permits.keys()]
        .filter((id) => !this.#hanging.has(id))
        .map((id) => ({ id, at: Math.max(world.now, Math.round(this.#ends.get(id)?.at ?? 0)) }))
        .sort((a, b) => a.at - b.at || a.id - b.id);
      const until = Math.min(instant, next?.at ?? instant, world.scheduler.nextWakeAt());
      world.advance(Math.max(0, until - world.now));
      this.#plan();
      if (next !== undefined && next.at <= world.now && world.permits.has(next.id)) world.end(next.id);
      else if (world.now >= instant) return;
    }
  }

  #expect(rest: Words): void {
    this.expectations += 1;
    const world = this.#checked;
    const subject = rest.next('a subject');
    if (subject === 'queue') return same(rest.next('a number'), String(world.accounts.queued), 'tasks wait');
    if (subject === 'running')
      return same(rest.next('a number'), String(world.accounts.running), 'tasks run');
    if (subject === 'node') {
      const nodeId = rest.next('a node');
      const state = world.scheduler.node(nodeId, world.now)?.state ?? 'gone';
      return same(rest.next('a state'), state, `is the state of ${nodeId}`);
    }
    if (subject === 'aborted') {
      const id = rest.next('a task number');
      if (world.log.some((line) => line.includes(` abort ${id} `))) return;
      throw new Error(`Task ${id} was not aborted`);
    }
    if (subject === 'drained') {
      const id = rest.next('a node');
      if (world.log.some((line) => line.endsWith(` drained ${id}`))) return;
      throw new Error(`Node ${id} was not drained`);
    }
    if (subject === 'order') {
      const ids = rest.all().map(Number);
      return same(ids.join(' '), this.#order.filter((id) => ids.includes(id)).join(' '), 'is the order');
    }
    return same(rest.all().join(' '), this.#standing(Number(subject)), `is where task ${subject} stands`);
  }

  #standing(taskId: number): string {
    const world = this.#checked;
    const outcome = world.outcomes.get(taskId);
    if (outcome !== undefined)
      return 'reason' in outcome ? `${outcome.kind} ${outcome.reason}` : outcome.kind;
    const permit = world.permits.get(taskId);
    if (permit !== undefined) return `on ${permit.nodeId}`;
    return world.specs.has(taskId) ? 'waits' : 'was never submitted';
  }
}

class Words {
  readonly #words: string[];

  constructor(words: readonly string[]) {
    this.#words = [...words];
  }

  get hasMore(): boolean {
    return this.#words.length > 0;
  }

  next(what: string): string {
    const word = this.#words.shift();
    if (word === undefined) throw new Error(`Expected ${what}`);
    return word;
  }

  all(): string[] {
    return this.#words.splice(0);
  }

  end(): void {
    if (this.hasMore) throw new Error(`Unexpected ${this.#words.join(' ')}`);
  }
}

function failedResult(rest: Words): AttemptResult {
  const kind = rest.next('a kind of failure');
  if (kind === 'declined' || kind === 'aborted') return { kind };
  if (!FAILURES.includes(kind)) throw new Error(`Unknown failure ${kind}`);
  let retryable = true;
  let nodeRetryAfterUs = 0;
  while (rest.hasMore) {
    if (rest.next('an option') === 'final') retryable = false;
    else nodeRetryAfterUs = durationUs(rest.next('a duration'));
  }
  return { kind: 'failed', failure: kind as FailureKind, retryable, nodeRetryAfterUs };
}

function remembered(rest: Words): NodeMemory {
  const none: NodeMemory = { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0, rates: [] };
  return rest.next('cordoned or ejected') === 'cordoned'
    ? { ...none, cordoned: true }
    : { ...none, ejectedForUs: durationUs(rest.next('a duration')), ejections: 1 };
}

function same(expected: string, found: string, what: string): void {
  if (expected !== found) throw new Error(`Expected ${expected}, found ${found}: that ${what}`);
}

function durationUs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text);
  if (match === null) throw new Error(`${text} is no duration such as 1.5s or 200ms`);
  return Math.round(Number(match[1]) * { ms: 1_000, s: S, m: 60 * S }[match[2] as 'ms' | 's' | 'm']);
}
