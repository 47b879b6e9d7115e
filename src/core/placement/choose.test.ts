/** The index against a full scan: how much completion time is lost by looking only at the tops of buckets. */
import { timeLeftLaw } from '../capacity/time-left.ts';
import { describe, expect, test } from 'vitest';
import { nodeSpec, S } from '../../../test/support/specs.ts';
import { flowAlone, taskRecord } from '../../../test/support/task-records.ts';
import { createPrng, type Prng } from '../../base/prng.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { SchedulerConfig } from '../config/types.ts';
import { NodeRecord } from '../health/node-record.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { Lane } from '../queue/lane.ts';
import { NO_NEEDS } from '../request/needs.ts';
import {
  type ChooseContext,
  choose,
  chooseInTime,
  deadlineServiceUs,
  emptyChoice,
  roomAt,
  rankedUs,
  serviceUs,
} from './choose.ts';
import { Fleet } from './fleet.ts';
import { PrefixIndex } from './prefix-index.ts';

const CONFIG = defaultSchedulerConfig();

class World {
  readonly context: ChooseContext;
  readonly nodes: NodeRecord[] = [];
  readonly fleet = new Fleet([]);
  readonly prng: Prng;
  readonly #flow = flowAlone();
  readonly #endAt: Map<TaskRecord, number> = new Map();
  #nextId = 1;

  /** Nodes of distinct speeds, from 0.1 to 4 of the reference, each proven. */
  constructor(nodes: number, seed: number) {
    this.prng = createPrng(seed);
    this.context = { config: CONFIG, prng: this.prng, now: 0, timeLeft: null, prefixes: new PrefixIndex() };
    for (let i = 0; i < nodes; i++) {
      const node = new NodeRecord(nodeSpec(`n${i}`), i);
      node.restoreRate('', 0.1 * 40 ** ((i + this.prng.nextRatio()) / nodes), 50);
      node.verified = true;
      node.successes = CONFIG.health.slowStartTasks;
      this.fleet.seat(node);
      this.fleet.place(node, 0, CONFIG);
      this.nodes.push(node);
    }
  }

  draw(): TaskRecord {
    return taskRecord(
      this.#nextId++,
      { workUs: Math.round(20_000 * 200 ** this.prng.nextRatio()) },
      this.#flow,
    );
  }

  start(task: TaskRecord, node: NodeRecord): void {
    const noise = 0.7 + 0.6 * this.prng.nextRatio();
    this.#endAt.set(task, this.context.now + serviceUs(node, task, this.context) * noise);
    node.start(task, this.context.now);
    task.node = node;
    for (const seat of node.seats) seat.pool.noteWork(task.workUs);
    this.fleet.place(node, this.context.now, CONFIG);
  }

  advance(durationUs: number): void {
    this.context.now += Math.round(durationUs);
    for (const [task, at] of this.#endAt) {
      if (at > this.context.now) continue;
      this.#endAt.delete(task);
      const node = task.node as NodeRecord;
      node.release(task, this.context.now);
      this.fleet.place(node, this.context.now, CONFIG);
    }
  }

  /** When the task would be done on a node, by the same formula as the index uses. */
  doneAt(task: TaskRecord, node: NodeRecord): number {
    const startAt = node.hasRoom(this.context.now, CONFIG) ? this.context.now : roomAt(node, this.context);
    return startAt + serviceUs(node, task, this.context) / node.rankFactor;
  }
}

/** Mean completion time lost against the best of all nodes, relative to the best. */
function regret(nodes: number, seed: number, load: number, usualRatio: number = 1): number {
  const world = new World(nodes, seed);
  world.context.timeLeft = timeLeftLaw(usualRatio);
  const lane = world.fleet.laneFor('m', NO_NEEDS, 't');
  if (typeof lane === 'string') throw new Error(lane);
  const capacity = world.nodes.reduce((sum, node) => sum + node.speed(1), 0);
  const meanWorkUs = 20_000 * (199 / Math.log(200));
  const choice = emptyChoice();
  let lostUs = 0;
  let bestUs = 0;
  const decisions = Math.max(1_500, 3 * nodes);
  for (let i = 0; i < decisions; i++) {
    world.advance((meanWorkUs / capacity / load) * 2 * world.prng.nextRatio());
    const task = world.draw();
    choose(lane.pools, task, world.context, choice);
    const { now } = world.context;
    const best = world.nodes.reduce(
      (least, node) => Math.min(least, world.doneAt(task, node)),
      Number.POSITIVE_INFINITY,
    );
    const isRoomy = choice.roomyDoneAt <= choice.busyDoneAt;
    const node = (isRoomy ? choice.roomy : choice.busy)?.node as NodeRecord;
    if (i > decisions / 5) {
      lostUs += Math.max(0, world.doneAt(task, node) - best);
      bestUs += best - now;
    }
    if (isRoomy) world.start(task, node);
    else if (choice.roomy !== null && i % 2 === 0) world.start(task, choice.roomy.node);
  }
  return lostUs / bestUs;
}

/** Two proven nodes, of a quarter of the reference's speed and of all of it, and the lane that both serve. */
function slowAndFast(world: World): {
  readonly slow: NodeRecord;
  readonly fast: NodeRecord;
  readonly lane: Lane;
} {
  const [slow, fast] = [0.25, 1].map((rate, i) => {
    const node = new NodeRecord(nodeSpec(`n${i}`), i);
    node.restoreRate('', rate, 50);
    node.verified = true;
    node.successes = CONFIG.health.slowStartTasks;
    world.fleet.seat(node);
    world.fleet.place(node, 0, CONFIG);
    return node;
  }) as [NodeRecord, NodeRecord];
  const lane = world.fleet.laneFor('m', NO_NEEDS, 't');
  if (typeof lane === 'string') throw new Error(lane);
  return { slow, fast, lane };
}

describe('choose', () => {
  test.each([
    [10, 0.6],
    [10, 1.2],
    [100, 0.9],
    [300, 1.2],
    [1_000, 0.6],
    [1_000, 0.95],
    [1_000, 1.2],
  ])(
    'loses at most 2 percent of completion time against a scan of %i nodes of distinct speeds, load %d',
    (nodes, load) => {
      expect(regret(nodes, 17, load)).toBeLessThanOrEqual(0.02);
    },
  );

  test.each([
    [10, 1.2],
    [100, 0.9],
    [300, 1.2],
    [1_000, 0.95],
  ])('nor where running tasks are expected by the law of their errors, %i nodes, load %d', (nodes, load) => {
    expect(regret(nodes, 17, load, 1.8)).toBeLessThanOrEqual(0.02);
  });

  test('waits for a busy node as long as its task still takes in the mean, not as long as was predicted', () => {
    const world = new World(0, 1);
    const { slow, fast, lane } = slowAndFast(world);
    fast.start(taskRecord(1, { workUs: 10 * S }), 0);
    world.fleet.place(fast, 0, CONFIG);
    world.context.now = 9 * S;
    const choice = emptyChoice();
    // One second here, four on the slow one.
    const startsAt = (): number => {
      choose(lane.pools, taskRecord(2, { workUs: S }), world.context, choice);
      expect(choice.roomy?.node).toBe(slow);
      return choice.busyStartAt;
    };
    expect(startsAt()).toBe(10 * S);
    world.context.timeLeft = timeLeftLaw(1.25);
    expect(startsAt()).toBeGreaterThan(10.5 * S);
    world.context.timeLeft = timeLeftLaw(1.8);
    expect(startsAt()).toBeGreaterThan(14 * S);
  });

  test('waits for a faster busy node exactly where that one is done sooner', () => {
    const world = new World(0, 1);
    const { slow, fast, lane } = slowAndFast(world);
    const choice = emptyChoice();
    world.start(taskRecord(1, { workUs: 2 * S }), fast);
    choose(lane.pools, taskRecord(2, { workUs: S }), world.context, choice);
    expect(choice.roomy?.node).toBe(slow);
    expect([choice.roomyDoneAt, choice.busyDoneAt]).toEqual([4 * S, 3 * S]);
    choose(lane.pools, taskRecord(3, { workUs: S / 2 }), world.context, choice);
    expect([choice.roomyDoneAt, choice.busyDoneAt]).toEqual([2 * S, 2.5 * S]);
  });

  test('prefers the node that has the model resident over one that must swap, though it is slower', () => {
    const world = new World(0, 1);
    const models = [{ model: 'm' }, { model: 'other' }];
    const nodes = [1, 0.8].map((rate, i) => {
      const node = new NodeRecord(nodeSpec(`n${i}`, { models }), i);
      node.restoreRate('', rate, 50);
      node.verified = true;
      world.fleet.seat(node);
      node.residentModel = i === 0 ? 'other' : 'm';
      world.fleet.place(node, 0, CONFIG);
      return node;
    });
    const lane = world.fleet.laneFor('m', NO_NEEDS, 't');
    if (typeof lane === 'string') throw new Error(lane);
    const choice = emptyChoice();
    const config = { ...CONFIG, placement: { ...CONFIG.placement, swapMs: 12_000 } };
    choose(lane.pools, taskRecord(1, { workUs: S }), { ...world.context, config }, choice);
    expect(choice.roomy?.node).toBe(nodes[1]);
  });
});

/** Nodes of two models, some of them unproven, some with the other model loaded, all with room. */
function mixedWorld(seed: number, config: SchedulerConfig): World {
  const world = new World(0, seed);
  const { prng } = world;
  const models = [{ model: 'm' }, { model: 'other' }];
  const nodes = 1 + (prng.nextUint32() % 40);
  for (let i = 0; i < nodes; i++) {
    const node = new NodeRecord(nodeSpec(`n${i}`, { models }), i);
    node.restoreRate('', 0.1 * 40 ** prng.nextRatio(), 50);
    node.verified = prng.nextRatio() < 0.5;
    node.successes = prng.nextUint32() % CONFIG.health.slowStartTasks;
    node.residentModel = prng.nextRatio() < 0.5 ? 'm' : 'other';
    world.fleet.seat(node);
    world.fleet.place(node, 0, config);
    world.nodes.push(node);
  }
  return world;
}

describe('chooseInTime', () => {
  test.each([0, 2_000])(
    'finds the best of the nodes with room that are in time, and none where none is, a swap taking %i ms',
    (swapMs) => {
      const config = { ...CONFIG, placement: { ...CONFIG.placement, swapMs } };
      let replaced = 0;
      for (let seed = 0; seed < 400; seed++) {
        const world = mixedWorld(seed, config);
        const context = { ...world.context, config };
        const lane = world.fleet.laneFor('m', NO_NEEDS, 't');
        if (typeof lane === 'string') throw new Error(lane);
        const task = world.draw();
        const out = emptyChoice();
        choose(lane.pools, task, context, out);
        const first = out.roomy?.node as NodeRecord;
        const leftUs = deadlineServiceUs(first, task, context) * (0.9 + world.prng.nextRatio() / 10);
        const inTime = world.nodes.filter((node) => deadlineServiceUs(node, task, context) <= leftUs);
        const rankedOf = (node: NodeRecord): number => rankedUs(node, task, context) / node.rankFactor;
        const best = inTime.sort((a, b) => rankedOf(a) - rankedOf(b))[0];
        expect(chooseInTime(lane.pools, task, context, { leftUs, out }), `seed ${seed}`).toBe(
          best !== undefined,
        );
        expect(out.roomy?.node, `seed ${seed}`).toBe(best ?? first);
        expect(out.roomyDoneAt).toBe(context.now + rankedOf(best ?? first));
        if (best !== undefined) replaced += 1;
      }
      expect(replaced).toBeGreaterThan(30);
    },
  );
});
