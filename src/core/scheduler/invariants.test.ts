/** Invariants 1 to 6 of the architecture, whatever happens: random sequences of every event, with absurd numbers. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import {
  type FuzzOptions,
  FuzzPlayer,
  NODES,
  sequenceArbitrary,
  SMALL_BOUNDS,
  type Step,
} from '../../../test/support/fuzz.ts';
import { S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { SchedulerConfig } from '../config/types.ts';

/** Limits that a short sequence meets, of every kind. */
const CONFIG = defaultSchedulerConfig({
  bounds: SMALL_BOUNDS,
  seed: 7,
  tenantLimits: { requestsPerMinute: 120, tokensPerMinute: 30_000, tokensBurst: 4_000, concurrency: 8 },
});
const ALL: FuzzOptions = { absurd: true, shutdown: true, maxLength: 120 };

function played(steps: readonly Step[], config = CONFIG): CheckedScheduler {
  const world = new CheckedScheduler(config);
  new FuzzPlayer(world).play(steps);
  return world;
}

describe('createScheduler.apply', () => {
  test('never throws, and arrived is the sum of all ends after every event', () => {
    fc.assert(
      fc.property(sequenceArbitrary(ALL), (steps) => {
        played(steps);
      }),
      { numRuns: drawsOf(60) },
    );
  });

  test('gives equal effects, byte for byte, for equal config, seed and events', () => {
    fc.assert(
      fc.property(sequenceArbitrary(ALL), (steps) => {
        expect(played(steps).log).toEqual(played(steps).log);
      }),
      { numRuns: drawsOf(25) },
    );
  });

  test('keeps tasks, bytes and work within their bounds, in all, per class and per tenant', () => {
    fc.assert(
      fc.property(sequenceArbitrary({ ...ALL, maxLength: 200 }), (steps) => {
        const world = new CheckedScheduler(CONFIG);
        new FuzzPlayer(world).play(steps, () => expectWithinBounds(world));
      }),
      { numRuns: drawsOf(40) },
    );
  });

  test('ends every task exactly once and gives back every permit when clients and nodes are done', () => {
    fc.assert(
      fc.property(sequenceArbitrary(ALL), (steps) => {
        const world = played(steps);
        for (const id of world.specs.keys()) world.apply({ kind: 'cancel', taskId: id });
        world.endAll();
        world.advance(S);
        expect(world.outcomes.size).toBe(world.specs.size);
        expect(world.accounts).toMatchObject({ queued: 0, running: 0 });
        const { permits, limits, lanes, nodes, classes } = world.scheduler.dump(world.now) as Dump;
        expect(permits).toBe(0);
        expect(limits).toMatchObject({ tasks: 0, tokens: 0 });
        for (const lane of lanes) expect(lane).toMatchObject({ tasks: 0, workUs: 0, reservations: 0 });
        for (const node of nodes) expect(node).toMatchObject({ inflight: 0, reservedUs: 0 });
        for (const record of classes) {
          expect(record.queued).toEqual({ tasks: 0, workUs: 0, bytes: 0 });
          for (const flow of record.flows)
            expect(flow).toMatchObject({ running: 0, queued: { tasks: 0, workUs: 0, bytes: 0 } });
          expect(record.served).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: drawsOf(40) },
    );
  });

  test('holds nothing of limits at idle, whatever changes of the configuration came between', () => {
    fc.assert(
      fc.property(sequenceArbitrary(ALL), fc.array(fc.nat(2), { minLength: 1 }), (steps, changes) => {
        const world = new CheckedScheduler(CONFIG);
        const player = new FuzzPlayer(world);
        for (const [index, step] of steps.entries()) {
          if (index % 5 === 4) world.apply({ kind: 'config', config: changeOf(changes, index) });
          player.step(step);
        }
        for (const id of world.specs.keys()) world.apply({ kind: 'cancel', taskId: id });
        world.endAll();
        expect((world.scheduler.dump(world.now) as Dump).limits).toMatchObject({ tasks: 0, tokens: 0 });
        for (const { requests, tokens } of world.scheduler.limits(world.now))
          for (const view of [requests, tokens])
            if (view !== undefined) expect(view.remaining).toBeLessThanOrEqual(view.limit);
      }),
      { numRuns: drawsOf(60) },
    );
  });

  test('forgets by itself: with all leases run out and no further event, a fresh task is served at once', () => {
    fc.assert(
      fc.property(sequenceArbitrary({ ...ALL, shutdown: false }), (steps) => {
        const world = played(steps);
        world.endAll();
        openEveryDoor(world);
        world.advance(11 * 60 * S);
        world.endAll();
        world.advance(S);
        world.endAll();
        const fresh = taskSpec(1_000_000, {
          deadlineAt: world.now + 60 * S,
          fingerprint: 'x',
          deadlineWished: false,
        });
        expect(world.submit(fresh)).toBeUndefined();
        world.advance(2 * S);
        expect(world.permits.has(fresh.id), 'the fresh task runs within two seconds').toBe(true);
      }),
      { numRuns: drawsOf(40) },
    );
  });
});

const CHANGES: readonly SchedulerConfig[] = [
  CONFIG,
  defaultSchedulerConfig({ bounds: SMALL_BOUNDS, seed: 7, gates: { limits: 'shadow' } }),
  defaultSchedulerConfig({
    bounds: SMALL_BOUNDS,
    seed: 7,
    tenantWeights: [{ id: 'a', weight: 2 }],
    tenantLimitsOwn: [{ id: 'a', limits: { tokensPerMinute: 900, concurrency: 2 } }],
    tenantLimits: { requestsPerMinute: 60, requestsBurst: 3 },
    classes: CONFIG.classes.slice(1).map((row) => ({ ...row, limits: { concurrency: 4 } })),
  }),
];

function changeOf(changes: readonly number[], index: number): SchedulerConfig {
  return CHANGES[changes[index % changes.length] as number] as SchedulerConfig;
}

interface Dump {
  readonly permits: number;
  readonly limits: { readonly tasks: number; readonly tokens: number };
  readonly nodes: readonly { readonly inflight: number; readonly reservedUs: number }[];
  readonly lanes: readonly { readonly tasks: number; readonly workUs: number }[];
  readonly classes: readonly {
    readonly served: number;
    readonly queued: unknown;
    readonly flows: readonly { readonly running: number; readonly queued: unknown }[];
  }[];
}

/** What people, not leases, have closed; and at least one node to serve. */
function openEveryDoor(world: CheckedScheduler): void {
  world.apply({ kind: 'survival', shedClasses: 0 });
  if (world.scheduler.node('n0', world.now) === undefined)
    world.apply({ kind: 'node-registered', node: NODES[0] as (typeof NODES)[number] });
  for (const { id } of NODES) {
    world.apply({ kind: 'node-cordoned', nodeId: id, cordoned: false });
    world.apply({ kind: 'node-draining', nodeId: id, draining: false });
  }
}

function expectWithinBounds(world: CheckedScheduler): void {
  const { bounds } = world.config;
  const queue = world.scheduler.queue(world.now);
  expect(queue.depth).toBeLessThanOrEqual(bounds.tasksMax);
  expect(queue.bytes).toBeLessThanOrEqual(bounds.bytesMax);
  expect(queue.workMs).toBeLessThanOrEqual(bounds.workMsMax);
  for (const group of Object.values(queue.byClass)) {
    expect(group.depth).toBeLessThanOrEqual(bounds.tasksMax * bounds.classShareMax);
    expect(group.workMs).toBeLessThanOrEqual(bounds.workMsMax * bounds.classShareMax + 0.1);
  }
  for (const group of Object.values(queue.byTenant)) {
    expect(group.depth).toBeLessThanOrEqual(bounds.tasksMax * bounds.tenantShareMax);
    expect(group.workMs).toBeLessThanOrEqual(bounds.workMsMax * bounds.tenantShareMax + 0.1);
  }
}
