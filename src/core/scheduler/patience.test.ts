/** Learned bounds on a node's silence, as the scheduler sets them and as attempts meet them. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { GateMode } from '../config/types.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import type { NodeSpec } from './events.ts';

const TIMED_OUT: AttemptResult = { kind: 'failed', failure: 'timeout', retryable: true };
const NONE = { firstByteUs: 0, idleUs: 0 };

class World extends CheckedScheduler {
  #nextId = 1;

  /** A task of one second, due in an hour. */
  ask(change: Partial<TaskSpec> = {}): number {
    const id = this.#nextId++;
    this.submit(taskSpec(id, { tenant: `t${id}`, deadlineAt: this.now + 3_600 * S, ...change }));
    return id;
  }

  limits(id: number): { readonly firstByteUs: number; readonly idleUs: number } {
    return this.scheduler.attemptLimits(id);
  }

  nodeOf(id: number): string {
    return this.permits.get(id)?.nodeId ?? '';
  }

  /** Rounds in which every node serves one task in the time that its work says. */
  warmUp(rounds: number, change: Partial<TaskSpec> = {}, result: AttemptResult = { kind: 'ok' }): void {
    for (let round = 0; round < rounds; round++) {
      const ids = [...this.scheduler.nodes(this.now)].map(() => this.ask(change));
      const running = ids.filter((id) => this.permits.has(id));
      this.advance(S / 2);
      if (change.stream === true)
        for (const id of running) this.apply({ kind: 'attempt-first-byte', taskId: id });
      this.advance(S / 2);
      for (const id of running) this.end(id, result);
      this.endAll();
    }
  }

  timeouts(): { readonly refused: number; readonly wouldRefuse: number } | undefined {
    return this.scheduler.gates().find(({ gate }) => gate === 'timeouts');
  }
}

function worldOf(nodes: readonly NodeSpec[], overrides: SchedulerOverrides = {}): World {
  const world = new World(defaultSchedulerConfig(overrides));
  for (const node of nodes) world.apply({ kind: 'node-registered', node });
  return world;
}

const TWO = [nodeSpec('a'), nodeSpec('b')];

describe('the bound of an attempt', () => {
  test('is a small multiple of the usual time, and the floor for what is short', () => {
    const world = worldOf(TWO);
    world.warmUp(80);
    const { firstByteUs } = world.limits(world.ask());
    expect(firstByteUs).toBeGreaterThanOrEqual(2.5 * S);
    expect(firstByteUs).toBeLessThan(4 * S);
    world.endAll();
    expect(world.limits(world.ask({ workUs: S / 1_000 })).firstByteUs).toBe(S);
  });

  test('is none before the deadline when it would come after it', () => {
    const world = worldOf(TWO);
    world.warmUp(80);
    const within = world.ask({ deadlineAt: world.now + 10 * S });
    expect(world.limits(within).firstByteUs).toBeGreaterThan(0);
    world.endAll();
    expect(world.limits(world.ask({ deadlineAt: world.now + 2 * S }))).toEqual(NONE);
  });

  test('is none where no other node can take over: alone, and at the last attempt', () => {
    const alone = worldOf([nodeSpec('a')]);
    alone.warmUp(80);
    expect(alone.limits(alone.ask())).toEqual(NONE);
    const world = worldOf([...TWO, nodeSpec('c')], { retry: { attemptsMax: 2 } });
    world.warmUp(80);
    const id = world.ask();
    expect(world.limits(id).firstByteUs).toBeGreaterThan(0);
    world.advance(world.limits(id).firstByteUs);
    world.end(id, TIMED_OUT);
    expect(world.permits.get(id)?.attempt).toBe(2);
    expect(world.limits(id)).toEqual(NONE);
  });

  test('allows for loading the model on a node that served nothing for a minute', () => {
    const world = worldOf(TWO);
    world.warmUp(80);
    const warm = world.limits(world.ask()).firstByteUs;
    world.endAll();
    world.advance(61 * S);
    expect(Math.round((world.limits(world.ask()).firstByteUs - warm) / S)).toBe(30);
  });

  test('is doubled for a node that was cut, and for a task that was', () => {
    const world = worldOf([...TWO, nodeSpec('c')]);
    world.warmUp(80);
    const id = world.ask();
    const usual = world.limits(id).firstByteUs;
    const cutNode = world.nodeOf(id);
    world.advance(usual);
    world.end(id, TIMED_OUT);
    expect(world.limits(id).firstByteUs).toBe(2 * usual);
    const others = [world.ask(), world.ask()];
    const next = others.find((other) => world.nodeOf(other) === cutNode) as number;
    expect(world.limits(next).firstByteUs).toBe(2 * usual);
  });

  test('is doubled only as far as half of the time left allows', () => {
    const world = worldOf([...TWO, nodeSpec('c')]);
    world.warmUp(80);
    const id = world.ask({ deadlineAt: world.now + 12 * S });
    const usual = world.limits(id).firstByteUs;
    world.advance(usual);
    world.end(id, TIMED_OUT);
    expect(world.limits(id).firstByteUs).toBeCloseTo((12 * S - usual) / 2, -1);
  });

  test('of a stream counts to its first byte, then between its bytes as it was learned', () => {
    const world = worldOf(TWO);
    const stream = { stream: true, firstByteWorkUs: S / 2 };
    world.warmUp(80, stream, { kind: 'ok', silenceUs: 4 * S });
    const { firstByteUs, idleUs } = world.limits(world.ask(stream));
    expect(firstByteUs).toBeGreaterThanOrEqual(1.25 * S);
    expect(firstByteUs).toBeLessThan(2 * S);
    expect(idleUs).toBeGreaterThanOrEqual(2.5 * 4 * S);
    expect(idleUs).toBeLessThan(14 * S);
  });

  test('between bytes is never shorter than its floor, and none before streams were seen', () => {
    const world = worldOf(TWO);
    const stream = { stream: true, firstByteWorkUs: S / 2 };
    world.warmUp(15, stream, { kind: 'ok', silenceUs: S / 100 });
    expect(world.limits(world.ask(stream)).idleUs).toBe(0);
    world.endAll();
    world.warmUp(60, stream, { kind: 'ok', silenceUs: S / 100 });
    expect(world.limits(world.ask(stream)).idleUs).toBe(5 * S);
  });
});

describe('an attempt that is cut', () => {
  test('goes to another node, speaks against the first, and says nothing of the request', () => {
    const world = worldOf([...TWO, nodeSpec('c')]);
    world.warmUp(80);
    for (let round = 0; round < 2; round++) {
      const id = world.ask({ fingerprint: 'same' });
      for (let attempt = 1; attempt <= 2; attempt++) {
        expect(world.permits.get(id)?.attempt).toBe(attempt);
        world.advance(world.limits(id).firstByteUs);
        world.end(id, TIMED_OUT);
      }
      world.end(id);
      expect(world.outcomes.get(id), 'no poison').toEqual({ kind: 'served' });
    }
    expect(world.timeouts()).toMatchObject({ refused: 4 });
    expect(world.scheduler.nodes(world.now).some(({ health }) => health < 1)).toBe(true);
  });

  test('a timeout that came before the bound is the node’s failure as ever', () => {
    const world = worldOf(TWO);
    world.warmUp(80);
    const id = world.ask();
    world.advance(world.limits(id).firstByteUs / 2);
    world.end(id, TIMED_OUT);
    expect(world.timeouts()).toMatchObject({ refused: 0 });
  });
});

describe('the gate timeouts', () => {
  function late(mode: GateMode): World {
    const world = worldOf([...TWO, nodeSpec('c')], { gates: { timeouts: mode } });
    world.warmUp(80);
    const id = world.ask();
    expect(world.limits(id).firstByteUs > 0).toBe(mode === 'on');
    world.advance(60 * S);
    world.end(id);
    return world;
  }

  test('in shadow cuts nothing and counts what would have been cut, whether it ends well or not', () => {
    const world = late('shadow');
    expect(world.timeouts()).toMatchObject({ refused: 0, wouldRefuse: 1 });
    const hung = world.ask({ deadlineAt: world.now + 100 * S });
    world.advance(101 * S);
    world.end(hung, { kind: 'aborted' });
    expect(world.timeouts()).toMatchObject({ refused: 0, wouldRefuse: 2 });
  });

  test('in shadow counts a stream whose first byte would have come too late', () => {
    const world = worldOf(TWO, { gates: { timeouts: 'shadow' } });
    const stream = { stream: true, firstByteWorkUs: S / 2 };
    world.warmUp(80, stream);
    const id = world.ask(stream);
    world.advance(60 * S);
    world.apply({ kind: 'attempt-first-byte', taskId: id });
    world.end(id);
    expect(world.timeouts()).toMatchObject({ refused: 0, wouldRefuse: 1 });
  });

  test('when off does nothing at all', () => {
    expect(late('off').timeouts()).toMatchObject({ refused: 0, wouldRefuse: 0 });
  });
});
