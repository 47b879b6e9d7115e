/**
 * Explain tells the truth: whatever state a fuzzed scheduler is in, the cause that it names for a waiting task is one. Its
 * cure is applied to the same state, made again from the same events, and the task must run, or one that waits in its
 * lane with it; where it says that nothing helps, a free fleet must not help.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf, seedsOf } from '../../../test/support/depth.ts';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { type FuzzOptions, FuzzPlayer, sequenceArbitrary, type Step } from '../../../test/support/fuzz.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { Cure, IneligibleReason, TaskView } from './views.ts';

const OPTIONS: FuzzOptions = { absurd: false, shutdown: false, maxLength: 90 };

/** Tasks may be handed out for lesser answers and limits may refuse; neither is about who waits. */
const PLAIN = defaultSchedulerConfig({ seed: 3 });
const SHARED = defaultSchedulerConfig({
  seed: 3,
  groups: [
    {
      name: 'g',
      nodes: { ids: ['n0', 'n2', 'n4'], labels: {} },
      reservedFor: { models: [], tenants: [] },
      shares: [
        { holder: 'tenant', name: 'a', min: 0.4, max: 0.6 },
        { holder: 'tenant', name: 'b', min: 0, max: 0.4 },
        { holder: 'model', name: 'other', min: 0.3, max: 1 },
      ],
    },
  ],
});

/** Checks and recounts are the business of other tests. */
class World extends CheckedScheduler {
  override check(): void {}
  override recountQueue(): void {}
}

function played(steps: readonly Step[], config: SchedulerConfig): CheckedScheduler {
  const world = new World(config);
  new FuzzPlayer(world).play(steps);
  return world;
}

const NEW_NODE = nodeSpec('n9', { slots: 8, models: [{ model: 'm' }, { model: 'other' }] });
const FAST = {
  cordoned: false,
  draining: false,
  ejectedForUs: 0,
  ejections: 0,
  rates: ['', 'm', 'other'].map((model) => ({ model, rate: 50, observations: 50 })),
};

/** What ends with what runs on a node. */
const OF_WHAT_RUNS: ReadonlySet<IneligibleReason> = new Set([
  'no-room',
  'drain-too-long',
  'half-open-busy',
  'slow-start',
  'reading-full',
  'refused-recently',
  'too-slow',
]);

/** What the state says of everybody who waits. */
function waitingViews(world: CheckedScheduler): readonly TaskView[] {
  return world.scheduler
    .waiting(1_000)
    .map(({ id }) => world.scheduler.explain(id, world.now))
    .filter((view) => view !== undefined);
}

/**
 * Lets time pass, and nothing else: clients leave whose answers would come too late, so that no node is blamed meanwhile. What
 * they asked for goes on running.
 */
function pass(world: CheckedScheduler, durationUs: number): void {
  for (const taskId of world.permits.keys()) {
    const deadlineAt = world.specs.get(taskId)?.deadlineAt ?? 0;
    if (!world.outcomes.has(taskId) && deadlineAt <= world.now + durationUs)
      world.apply({ kind: 'cancel', taskId });
  }
  world.advance(durationUs);
}

/** Does what the cure says, and no more. */
function apply(world: CheckedScheduler, cure: Cure): void {
  switch (cure.kind) {
    case 'node-gets-room':
      return giveRoom(world, cure);
    case 'marks-end':
      return endMarks(world, cure);
    case 'share-lifted':
      liftShares(world);
      if (cure.room !== undefined) giveRoom(world, cure.room);
      return;
    case 'next-look':
      return pass(world, (cure.inMs ?? 0) * 1_000 + 2_000);
    case 'node-joins':
      world.apply({ kind: 'node-registered', node: NEW_NODE, memory: FAST });
      return layAnew(world, world.config);
    case 'none':
      return;
  }
}

function giveRoom(world: CheckedScheduler, cure: Extract<Cure, { kind: 'node-gets-room' }>): void {
  const { nodeId, reasons } = cure;
  endWhatRuns(world, nodeId, reasons);
  if (reasons.includes('refused-recently') || reasons.includes('drain-too-long'))
    pass(world, (cure.inMs ?? 0) * 1_000 + 2_000);
}

/** Room by news of the node, and by the ends of what runs there. */
function endWhatRuns(world: CheckedScheduler, nodeId: string, reasons: readonly IneligibleReason[]): void {
  if (reasons.includes('reading-full') || reasons.includes('drain-too-long')) tellEmpty(world, nodeId);
  // A success ends a refusal before its time.
  if (reasons.includes('refused-recently'))
    for (const id of world.runningOn(nodeId).slice(0, 1)) world.end(id);
  for (const taskId of world.runningOn(nodeId)) take(world, taskId);
}

function tellEmpty(world: CheckedScheduler, nodeId: string): void {
  world.apply({ kind: 'node-reading', nodeId, reading: { running: 0, waiting: 0, cacheUse: 0 } });
}

function take(world: CheckedScheduler, taskId: number): void {
  world.apply({ kind: 'cancel', taskId });
  world.end(taskId, { kind: 'aborted' });
}

function endMarks(
  world: CheckedScheduler,
  { nodeId, reasons, inMs }: Extract<Cure, { kind: 'marks-end' }>,
): void {
  if (inMs > 0) pass(world, inMs * 1_000 + 2_000);
  if (reasons.includes('cordoned')) world.apply({ kind: 'node-cordoned', nodeId, cordoned: false });
  if (reasons.includes('draining')) world.apply({ kind: 'node-draining', nodeId, draining: false });
  if (reasons.includes('suspect')) tellAlive(world, nodeId);
  if (reasons.includes('bulkhead')) liftShares(world);
  if (reasons.some((reason) => OF_WHAT_RUNS.has(reason))) endWhatRuns(world, nodeId, reasons);
}

function tellAlive(world: CheckedScheduler, nodeId: string): void {
  world.apply({ kind: 'node-probed', nodeId, alive: true });
  world.apply({ kind: 'node-heartbeat', nodeId });
}

function liftShares(world: CheckedScheduler): void {
  const config = { ...world.config, groups: [] };
  world.apply({ kind: 'config', config });
  layAnew(world, config);
}

/** Who waits is told of new pools within a quarter of a second, which is no part of the cause; of a new class at once. */
function layAnew(world: CheckedScheduler, config: SchedulerConfig): void {
  const last = config.classes.at(-1) as SchedulerConfig['classes'][number];
  const classes = [...config.classes, { ...last, name: 'another' }];
  world.apply({ kind: 'config', config: { ...config, classes } });
}

/** Tasks that were assigned since the log had this length. */
function assignedSince(world: CheckedScheduler, length: number): readonly number[] {
  return world.log.slice(length).flatMap((line) => {
    const match = /^\S+ assign (\d+) /.exec(line);
    return match === null ? [] : [Number(match[1])];
  });
}

/**
 * Whether the task ran, or one of its model, which waits with it. What is of another model shares the node and may be ahead of
 * it in order: it is taken away again, until nothing follows.
 */
function hasRun(world: CheckedScheduler, { id }: TaskView, before: number): boolean {
  const modelOf = (taskId: number): string | undefined => world.specs.get(taskId)?.model;
  for (let from = before; ; ) {
    const assigned = assignedSince(world, from);
    if (assigned.some((taskId) => taskId === id || modelOf(taskId) === modelOf(id))) return true;
    if (assigned.length === 0) return false;
    from = world.log.length;
    for (const taskId of assigned) if (world.permits.has(taskId)) take(world, taskId);
  }
}

/**
 * What it named is over, and now the task could run and waits for something better, or behind others of its model that do: a node
 * that came up while a lease ran out, or that the share had kept from it. That is a cause as well, and its cure has to help.
 */
function helpsByChoice(world: CheckedScheduler, { id, gates, cure }: TaskView, before: number): boolean {
  const gateOf = (view: TaskView | undefined): string | undefined => view?.gates[0]?.gate;
  const takesTime = cure !== null && 'inMs' in cure && (cure.inMs ?? 0) > 250;
  if (gates[0]?.gate === 'held-for-faster-node' && !takesTime) return false;
  const now = (): TaskView | undefined => world.scheduler.explain(id, world.now);
  if (gateOf(now()) === 'not-looked-at') pass(world, 1_100_000);
  const own = now();
  if (own === undefined) return false;
  if (hasRun(world, own, before)) return true;
  if (!own.nodes.some(({ eligible }) => eligible)) return false;
  const modelOf = (taskId: number): string | undefined => world.specs.get(taskId)?.model;
  const ahead =
    gateOf(own) === 'not-looked-at' && takesTime
      ? waitingViews(world).filter((view) => modelOf(view.id) === modelOf(id))
      : [own];
  const choosing = ahead.find((view) => gateOf(view) === 'held-for-faster-node');
  if (choosing === undefined) return false;
  apply(world, choosing.cure as Cure);
  if (hasRun(world, own, before)) return true;
  pass(world, 260_000);
  return hasRun(world, own, before);
}

/** Everything that hands can do, and everything that ends with what runs. */
function openAll(world: CheckedScheduler): void {
  for (const { id: nodeId } of world.scheduler.nodes(world.now)) {
    endWhatRuns(world, nodeId, ['reading-full']);
    tellAlive(world, nodeId);
    world.apply({ kind: 'node-cordoned', nodeId, cordoned: false });
    world.apply({ kind: 'node-draining', nodeId, draining: false });
  }
  liftShares(world);
}

/** What is wrong with the view; '' when its cure helped. */
function lieOf(steps: readonly Step[], config: SchedulerConfig, view: TaskView): string {
  const world = played(steps, config);
  const before = world.log.length;
  const { cure } = view;
  if (cure === null) return 'it waits and has no cure';
  const told = `${view.gates.map(({ gate }) => gate).join(',')} of ${view.id}: ${view.unblock}`;
  if (cure.kind === 'none') {
    openAll(world);
    pass(world, 1_000_000);
    // A lesser answer may stand in for it once it is given up.
    const runs = assignedSince(world, before).includes(view.id) && !world.taken.has(view.id);
    return runs ? `${told}, and it ran` : '';
  }
  apply(world, cure);
  if (hasRun(world, view, before)) return '';
  // Whatever the scheduler left to its next look (it asks again within a tenth of a second, and lays lanes anew within
  // a quarter) has happened then; what runs meanwhile ends by events alone.
  pass(world, 260_000);
  if (hasRun(world, view, before) || helpsByChoice(world, view, before)) return '';
  const outcome = world.outcomes.get(view.id);
  return `${told}, and nothing ran${outcome === undefined ? '' : `: ${JSON.stringify(outcome)}`}`;
}

/** Lies in so many states of the fuzz, each state with every task that waits in it. */
function liesIn(config: SchedulerConfig, states: number, seed: number): readonly string[] {
  const lies: string[] = [];
  let found = 0;
  const sequences = fc.sample(sequenceArbitrary(OPTIONS), { numRuns: 4 * states, seed });
  for (const [index, steps] of sequences.entries()) {
    const views = waitingViews(played(steps, config));
    if (views.length === 0) continue;
    for (const view of views) {
      for (const { gate } of view.gates) seen.set(gate, (seen.get(gate) ?? 0) + 1);
      const lie = lieOf(steps, config, view);
      if (lie !== '') lies.push(`seed ${seed}, sequence ${index}: ${lie}`);
    }
    found += 1;
    if (found === states) break;
  }
  expect(found, 'states with somebody who waits').toBe(states);
  return lies;
}

function expectTruth(config: SchedulerConfig): void {
  expect(SEEDS.flatMap((seed) => liesIn(config, drawsOf(200), seed))).toEqual([]);
}

const SEEDS = seedsOf(Number(process.env['FC_SEED'] ?? 1));
const TIMEOUT_MS = 120_000 * SEEDS.length;
const seen = new Map<string, number>();

describe('a task that has failed on every open node', () => {
  test('does not hold up the others of its tenant and size while a node idles', () => {
    const world = new CheckedScheduler(PLAIN);
    for (const id of ['n0', 'n1']) world.apply({ kind: 'node-registered', node: nodeSpec(id) });
    world.submit(taskSpec(1, { deadlineAt: 30 * S }));
    world.submit(taskSpec(9, { deadlineAt: 60 * S }));
    const [first, other] = world.permits.get(1)?.nodeId === 'n0' ? ['n0', 'n1'] : ['n1', 'n0'];
    world.end(1, { kind: 'failed', failure: 'server-error', retryable: true });
    world.apply({ kind: 'node-cordoned', nodeId: other as string, cordoned: true });
    for (const id of [2, 3]) world.submit(taskSpec(id, { deadlineAt: (40 + id) * S }));
    expect(world.scheduler.explain(1, world.now)).toMatchObject({
      gates: [{ gate: 'tried-before' }],
      cure: { kind: 'marks-end', nodeId: other, byHand: true },
    });
    for (const id of [2, 3]) {
      world.advance(S);
      expect(world.permits.get(id)?.nodeId, `task ${id}`).toBe(first);
      world.end(id);
    }
    world.end(9);
    world.apply({ kind: 'node-cordoned', nodeId: other as string, cordoned: false });
    world.advance(S);
    expect(world.permits.get(1)?.nodeId).toBe(other);
  });
});

describe('a task that has failed on one node', () => {
  test('does not wait behind one of its tenant and size that has failed on the other, which idles', () => {
    const world = new CheckedScheduler(PLAIN);
    const failure = { kind: 'failed', failure: 'server-error', retryable: true } as const;
    for (const id of ['n0', 'n1']) world.apply({ kind: 'node-registered', node: nodeSpec(id) });
    world.submit(taskSpec(1, { deadlineAt: 50 * S }));
    world.submit(taskSpec(2, { deadlineAt: 40 * S }));
    const nodeOf = (id: number): string | undefined => world.permits.get(id)?.nodeId;
    const [other, own] = [nodeOf(1), nodeOf(2)];
    world.end(1, failure);
    world.submit(taskSpec(3, { deadlineAt: 600 * S, tenant: 'another' }));
    expect(nodeOf(3)).toBe(other);
    world.end(2, failure);
    expect([nodeOf(1), nodeOf(2)]).toEqual([own, undefined]);
  });
});

const OTHER_POOL = [{ model: 'm', contextTokensMax: 1_000 }];

describe('explain of a waiting task', () => {
  test('does not give up one that is not looked at next, since others take the room of a new node', () => {
    const world = new CheckedScheduler(PLAIN);
    world.apply({ kind: 'node-registered', node: nodeSpec('fast') });
    world.submit(taskSpec(1, { deadlineAt: 60 * S }));
    world.submit(taskSpec(2, { workUs: 4 * S, deadlineAt: 90 * S }));
    world.submit(taskSpec(3, { workUs: 4 * S, deadlineAt: 10 * S, className: 'low' }));
    world.apply({ kind: 'node-draining', nodeId: 'fast', draining: true });
    world.end(1);
    world.advance(S);
    // Who waits is told of it with the next event.
    world.apply({ kind: 'node-registered', node: nodeSpec('slow', { hardware: 'T4', models: OTHER_POOL }) });
    expect(world.scheduler.explain(3, world.now)?.cure).toMatchObject({ kind: 'marks-end', nodeId: 'fast' });
    world.apply({ kind: 'node-draining', nodeId: 'fast', draining: false });
    expect([world.permits.get(2)?.nodeId, world.permits.get(3)?.nodeId]).toEqual(['slow', 'fast']);
  });

  test(
    'names a true cause in every state of a fuzzed scheduler',
    () => {
      expectTruth(PLAIN);
    },
    TIMEOUT_MS,
  );

  test(
    'names a true cause where groups share nodes out',
    () => {
      expectTruth(SHARED);
    },
    TIMEOUT_MS,
  );

  test('has met the usual causes by then', () => {
    for (const gate of ['no-room', 'no-open-node', 'held-for-faster-node', 'too-late', 'bulkhead'])
      expect([gate, seen.get(gate) ?? 0]).not.toEqual([gate, 0]);
  });
});
