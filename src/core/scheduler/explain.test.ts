/**
 * Explain tells the truth: whatever state a fuzzed scheduler is in, the cause that it names for a waiting task is one. Its
 * cure is applied to the same state, made again from the same events, and the task must run, or one that waits in its
 * lane with it; where it says that nothing helps, a free fleet must not help.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { type FuzzOptions, FuzzPlayer, sequenceArbitrary, type Step } from '../../../test/support/fuzz.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { Cure, TaskView } from './views.ts';

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

/** Recounts are the business of other tests. */
class World extends CheckedScheduler {
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

/** What the state says of everybody who waits. */
function waitingViews(world: CheckedScheduler): readonly TaskView[] {
  return world.scheduler
    .waiting(1_000)
    .map(({ id }) => world.scheduler.explain(id, world.now))
    .filter((view) => view !== undefined);
}

/** Does what the cure says. */
function apply(world: CheckedScheduler, { cure }: TaskView): void {
  if (cure === null) return;
  switch (cure.kind) {
    case 'node-gets-room':
      return giveRoom(world, cure);
    case 'marks-end':
      return endMarks(world, cure);
    case 'share-lifted':
      world.apply({ kind: 'config', config: { ...world.config, groups: [] } });
      if (cure.room !== undefined) giveRoom(world, cure.room);
      return;
    case 'next-look':
      return world.advance((cure.inMs ?? 0) * 1_000 + 2_000);
    case 'node-joins':
      return world.apply({ kind: 'node-registered', node: NEW_NODE, memory: FAST });
    case 'none':
      return;
  }
}

function giveRoom(world: CheckedScheduler, cure: Extract<Cure, { kind: 'node-gets-room' }>): void {
  const { nodeId, reasons } = cure;
  if (reasons.includes('reading-full') || reasons.includes('drain-too-long'))
    world.apply({ kind: 'node-reading', nodeId, reading: { running: 0, waiting: 0, cacheUse: 0 } });
  stopAll(world, nodeId);
  if (reasons.includes('refused-recently') || reasons.includes('drain-too-long'))
    world.advance((cure.inMs ?? 0) * 1_000 + 2_000);
}

/** Room without news of the node: what runs there is taken away. */
function stopAll(world: CheckedScheduler, nodeId: string): void {
  for (const taskId of world.runningOn(nodeId)) {
    world.apply({ kind: 'cancel', taskId });
    world.end(taskId, { kind: 'aborted' });
  }
}

function endMarks(
  world: CheckedScheduler,
  { nodeId, reasons, inMs }: Extract<Cure, { kind: 'marks-end' }>,
): void {
  if (reasons.includes('cordoned')) world.apply({ kind: 'node-cordoned', nodeId, cordoned: false });
  if (reasons.includes('draining')) world.apply({ kind: 'node-draining', nodeId, draining: false });
  if (reasons.includes('suspect')) {
    world.apply({ kind: 'node-probed', nodeId, alive: true });
    world.apply({ kind: 'node-heartbeat', nodeId });
  }
  if (reasons.includes('bulkhead')) world.apply({ kind: 'config', config: { ...world.config, groups: [] } });
  world.advance(inMs * 1_000 + 2_000);
  stopAll(world, nodeId);
}

/** Tasks that were assigned since the log had this length. */
function assignedSince(world: CheckedScheduler, length: number): readonly number[] {
  return world.log.slice(length).flatMap((line) => {
    const match = /^\S+ assign (\d+) /.exec(line);
    return match === null ? [] : [Number(match[1])];
  });
}

/**
 * What it named is over, and now the task could run and waits for something better: a node that came up while a lease ran out,
 * or that the share had kept from it. What is said of that is held to account by itself, in the states where it is what is said.
 */
function waitsByChoice(world: CheckedScheduler, { id, gates, cure }: TaskView, before: number): boolean {
  const isNews =
    gates[0]?.gate !== 'held-for-faster-node' || (cure !== null && 'inMs' in cure && (cure.inMs ?? 0) > 250);
  const now = (): TaskView | undefined => world.scheduler.explain(id, world.now);
  if (now()?.gates[0]?.gate === 'not-looked-at') world.advance(1_100_000);
  if (assignedSince(world, before).length > 0 || world.outcomes.has(id)) return true;
  const view = now();
  const couldRun = view?.nodes.some(({ eligible }) => eligible) === true;
  return isNews && couldRun && view?.gates[0]?.gate === 'held-for-faster-node';
}

/** What is wrong with the view; '' when its cure helped. */
function lieOf(steps: readonly Step[], config: SchedulerConfig, view: TaskView): string {
  const world = played(steps, config);
  const before = world.log.length;
  const { cure } = view;
  if (cure === null) return 'it waits and has no cure';
  apply(world, view);
  // Whatever the scheduler left to its next look (it asks again within a tenth of a second, and lays lanes anew within
  // a quarter) has happened then; what runs meanwhile ends by events alone.
  world.advance(260_000);
  const assigned = assignedSince(world, before);
  const told = `${view.gates.map(({ gate }) => gate).join(',')} of ${view.id}: ${view.unblock}`;
  // Given up by the scheduler itself, or as a whole answer.
  const hasEnded = world.outcomes.has(view.id) || world.taken.has(view.id);
  if (cure.kind === 'none') {
    for (const node of world.scheduler.nodes(world.now)) stopAll(world, node.id);
    world.advance(1_000_000);
    // A lesser answer may stand in for it once it is given up.
    const runs = assignedSince(world, before).includes(view.id) && !world.taken.has(view.id);
    return runs ? `${told}, and it ran` : '';
  }
  if (assigned.length > 0 || hasEnded || waitsByChoice(world, view, before)) return '';
  return `${told}, and nothing ran`;
}

/** Lies in so many states of the fuzz, each state with every task that waits in it. */
function liesIn(
  config: SchedulerConfig,
  states: number,
): { readonly lies: readonly string[]; readonly asked: number } {
  const lies: string[] = [];
  let asked = 0;
  let found = 0;
  const sequences = fc.sample(sequenceArbitrary(OPTIONS), { numRuns: 4 * states, seed: SEED });
  for (const [index, steps] of sequences.entries()) {
    const views = waitingViews(played(steps, config));
    if (views.length === 0) continue;
    for (const view of views) {
      asked += 1;
      for (const { gate } of view.gates) seen.set(gate, (seen.get(gate) ?? 0) + 1);
      const lie = lieOf(steps, config, view);
      if (lie !== '') lies.push(`sequence ${index}: ${lie}`);
    }
    found += 1;
    if (found === states) break;
  }
  expect(found, 'states with somebody who waits').toBe(states);
  return { lies, asked };
}

/**
 * None with the usual seeds. With others one in five hundred may be left: where a cure is the end of a lease of many seconds,
 * the state that it meets is another one, and what is said of the present cannot be held to all of the future.
 */
function expectTruth({ lies, asked }: ReturnType<typeof liesIn>): void {
  if (USUAL_SEEDS.includes(SEED) || lies.length > asked / 500) expect(lies).toEqual([]);
}

const USUAL_SEEDS: readonly number[] = [20_261_129, 20_261_130];
const SEED = Number(process.env['FC_SEED'] ?? 1);
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

describe('explain of a waiting task', () => {
  test('names a true cause in every state of a fuzzed scheduler', () => {
    expectTruth(liesIn(PLAIN, drawsOf(200)));
  }, 120_000);

  test('names a true cause where groups share nodes out', () => {
    expectTruth(liesIn(SHARED, drawsOf(200)));
  }, 120_000);

  test('has met the usual causes by then', () => {
    for (const gate of ['no-room', 'no-open-node', 'held-for-faster-node', 'too-late', 'bulkhead'])
      expect([gate, seen.get(gate) ?? 0]).not.toEqual([gate, 0]);
  });
});
