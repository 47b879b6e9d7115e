/** Breakers of models, through the whole scheduler: what is shut, for whom, for how long, and what opens it again. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { BreakerView } from '../health/model-breakers.ts';
import type { AttemptResult, FailureKind, Outcome } from '../request/outcome.ts';
import type { NodeMemory, NodeSpec } from './events.ts';

const BROKEN: AttemptResult = { kind: 'failed', failure: 'server-error', retryable: false };

class World extends CheckedScheduler {
  #nextId = 1;

  /** Whatever runs and waits is ended first, so that every node has room. */
  ask(model: string, tenant = 't'): number {
    const id = this.#nextId++;
    this.submit(taskSpec(id, { model, tenant, deadlineAt: this.now + 600 * S }));
    return id;
  }

  /** Where a task of the model goes now; it ends with the result that its node gives, at once. */
  play(model: string, resultOn: (nodeId: string) => AttemptResult): string | undefined {
    const id = this.ask(model);
    const nodeId = this.permits.get(id)?.nodeId;
    if (nodeId !== undefined) this.end(id, resultOn(nodeId));
    return nodeId;
  }

  breakers(nodeId: string): readonly BreakerView[] {
    return this.scheduler.node(nodeId, this.now)?.breakers ?? [];
  }

  state(nodeId: string): string | undefined {
    return this.scheduler.node(nodeId, this.now)?.state;
  }

  gate(): { readonly refused: number; readonly wouldRefuse: number } | undefined {
    return this.scheduler.gates().find((row) => row.gate === 'breaker');
  }
}

function serving(id: string, models: readonly string[], change: Partial<NodeSpec> = {}): NodeSpec {
  return nodeSpec(id, { models: models.map((model) => ({ model })), ...change });
}

function worldOf(nodes: readonly NodeSpec[], overrides: SchedulerOverrides = {}): World {
  const world = new World(
    defaultSchedulerConfig({
      health: { ejectMs: 5_000, ejectMsMax: 60_000, refusedMs: 10 },
      placement: { swapMs: 0 },
      ...overrides,
    }),
  );
  for (const node of nodes) world.apply({ kind: 'node-registered', node });
  return world;
}

const ok: AttemptResult = { kind: 'ok' };
/** Twelve models: such a node lies in one pool for all of them. */
const MANY = Array.from({ length: 12 }, (_, i) => `m${i}`);

describe.each([
  ['with a pool per model', ['m0', 'm1', 'm2']],
  ['with one pool for twelve models', MANY],
])('one broken model on a node of several, %s,', (_title, models) => {
  const fails = (nodeId: string): AttemptResult => (nodeId === 'a' ? BROKEN : ok);

  /** Models in turn, `m0` failing on node a until its breaker opens there. */
  function broken(overrides: SchedulerOverrides = {}): { readonly world: World; readonly failures: number } {
    const world = worldOf([serving('a', models), serving('b', models)], overrides);
    for (const model of models) world.play(model, () => ok);
    let failures = 0;
    for (let i = 0; i < 200 && failures < 20 && world.breakers('a')[0]?.state !== 'open'; i++) {
      if (world.play('m0', fails) === 'a') failures += 1;
      world.advance(S / 10);
      for (const other of models.slice(1, 3)) world.play(other, () => ok);
      world.advance(S / 10);
    }
    return { world, failures };
  }

  test('shuts the node for that model within ten failures, and the node goes on with the others', () => {
    const { world, failures } = broken();
    expect(failures).toBeLessThanOrEqual(10);
    expect(world.breakers('a')).toMatchObject([{ model: 'm0', scope: 'node', state: 'open', opens: 1 }]);
    expect(world.state('a')).toBe('active');
    expect(world.scheduler.node('a', world.now)?.ejections).toBe(0);
    const went = Array.from({ length: 8 }, () => world.play('m0', () => ok));
    expect(went).toEqual(Array.from({ length: 8 }, () => 'b'));
    world.apply({ kind: 'node-cordoned', nodeId: 'b', cordoned: true });
    expect(world.play('m1', () => ok)).toBe('a');
    const refusal = world.submit(taskSpec(9_001, { model: 'm0', deadlineAt: world.now + 600 * S }));
    expect(refusal).toMatchObject({
      kind: 'rejected',
      reason: 'no-node',
      cause: expect.stringContaining('1 of its'),
    });
  });

  test('says so to those who ask', () => {
    const { world } = broken();
    const ids = [world.ask('m0'), world.ask('m0')];
    const reasons = ids.map((id) => world.scheduler.explain(id, world.now)?.nodes[0]?.reasons);
    for (const row of reasons) expect(row).toContain('breaker-open');
    world.endAll();
  });

  test('is tried by one task after the sleep, and is back when that ends well', () => {
    const { world } = broken();
    world.apply({ kind: 'node-cordoned', nodeId: 'b', cordoned: true });
    world.advance(5 * S);
    expect(world.breakers('a')).toMatchObject([{ state: 'half-open' }]);
    expect(world.play('m0', () => ok)).toBe('a');
    expect(world.breakers('a')[0]?.state).toBe('closed');
    for (let i = 0; i < 40; i++) expect(world.play('m0', () => ok)).toBe('a');
    expect(world.breakers('a'), 'nothing speaks against it any more').toEqual([]);
  });

  test('lets nobody else in while one tries, on a node with many slots', () => {
    const { world } = broken();
    world.apply({ kind: 'node-registered', node: serving('a', models, { slots: 8 }) });
    world.apply({ kind: 'node-cordoned', nodeId: 'b', cordoned: true });
    world.advance(5 * S);
    const ids = [world.ask('m0'), world.ask('m0'), world.ask('m0')];
    expect(ids.filter((id) => world.permits.has(id))).toHaveLength(1);
    expect(world.permits.has(world.ask('m1')), 'another model is none of its business').toBe(true);
    world.endAll();
  });

  test('sleeps twice as long when the one that tries fails', () => {
    const { world } = broken();
    world.apply({ kind: 'node-cordoned', nodeId: 'b', cordoned: true });
    world.advance(5 * S);
    expect(world.play('m0', () => BROKEN)).toBe('a');
    expect(world.breakers('a')).toMatchObject([{ state: 'open', openForMs: 10_000, opens: 2 }]);
    expect(world.state('a')).toBe('active');
  });

  test('in shadow shuts nothing, counts it, and the node answers for it', () => {
    const { world } = broken({ gates: { breaker: 'shadow' } });
    expect(world.gate()).toMatchObject({ refused: 0 });
    const went = new Set(Array.from({ length: 60 }, () => (world.advance(S), world.play('m0', fails))));
    expect(went).toContain('a');
    expect(world.gate()?.wouldRefuse).toBeGreaterThan(0);
    expect(world.scheduler.node('a', world.now)?.ejections).toBeGreaterThan(0);
  });

  test('when off, is the node’s fault as on a node of one model', () => {
    const world = worldOf([serving('a', models)], { gates: { breaker: 'off' } });
    for (let i = 0; i < 3; i++) world.play('m0', () => BROKEN);
    expect(world.state('a')).toBe('ejected');
    expect(world.breakers('a')).toEqual([]);
  });

  test('is forgotten when the gate is switched off', () => {
    const { world } = broken();
    const config = defaultSchedulerConfig({ gates: { breaker: 'off' } });
    world.apply({ kind: 'config', config });
    expect(world.breakers('a')).toEqual([]);
    const went = new Set(Array.from({ length: 20 }, () => world.play('m0', () => ok)));
    expect(went).toContain('a');
  });
});

describe('a node that serves several models', () => {
  test('answers for none of what was under way when one of them broke', () => {
    const world = worldOf([serving('a', ['m', 'x'], { slots: 16 })]);
    for (let i = 0; i < 20; i++) world.play(i % 2 === 0 ? 'm' : 'x', () => ok);
    const ids = Array.from({ length: 12 }, (_, i) => world.ask('m', `t${i}`));
    expect(world.permits.size).toBe(12);
    for (const id of ids) world.end(id, BROKEN);
    expect(world.breakers('a')).toMatchObject([{ model: 'm', state: 'open', opens: 1 }]);
    expect(world.state('a')).toBe('active');
  });

  test('hides none of the others while it is shut, however many are', () => {
    const world = worldOf([]);
    const breakers = [{ model: 'm', scope: 'node', openForUs: 60 * S, opens: 1, isTrial: true }] as const;
    const memory: NodeMemory = {
      cordoned: false,
      draining: false,
      ejectedForUs: 0,
      ejections: 0,
      rates: [],
      breakers,
    };
    for (let i = 0; i < 80; i++)
      world.apply({ kind: 'node-registered', node: serving(`shut ${i}`, ['m', 'x']), memory });
    world.apply({ kind: 'node-registered', node: serving('open', ['m', 'x']) });
    expect(world.play('m', () => ok)).toBe('open');
  });
});

describe('a node of several models that is broken itself', () => {
  test('is ejected after three requests when its models take turns', () => {
    const world = worldOf([serving('a', ['m0', 'm1', 'm2'])]);
    for (const model of ['m0', 'm1', 'm2']) world.play(model, () => BROKEN);
    expect(world.state('a')).toBe('ejected');
  });

  test('is ejected within ten requests when they come one model after the other', () => {
    const world = worldOf([serving('a', MANY)]);
    let requests = 0;
    for (const model of MANY) {
      for (let i = 0; i < 3 && world.state('a') !== 'ejected'; i++) {
        world.play(model, () => BROKEN);
        requests += 1;
      }
    }
    expect(world.state('a')).toBe('ejected');
    expect(requests).toBeLessThanOrEqual(10);
  });

  test('is ejected when it cannot be reached, whatever model was asked for', () => {
    const world = worldOf([serving('a', ['m0', 'm1'])]);
    for (let i = 0; i < 3; i++)
      world.play('m0', () => ({ kind: 'failed', failure: 'connect', retryable: false }));
    expect(world.state('a')).toBe('ejected');
    expect(world.breakers('a')).toEqual([]);
  });
});

describe('a model that fails wherever it runs', () => {
  const NODES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

  /** Eight nodes of one model each, all of which fail it from now on, until its breaker opens. */
  function failing(overrides: SchedulerOverrides = {}): { readonly world: World; readonly attempts: number } {
    const world = worldOf(
      NODES.map((id) => serving(id, ['m'], { slots: 4 })),
      overrides,
    );
    for (let i = 0; i < 100; i++) world.play('m', () => ok);
    let attempts = 0;
    for (; attempts < 60 && !isOpen(world); attempts++) {
      world.play('m', () => BROKEN);
      world.advance(S / 100);
    }
    return { world, attempts };
  }

  function isOpen(world: World): boolean {
    return NODES.some((id) =>
      world.breakers(id).some((row) => row.scope === 'everywhere' && row.state === 'open'),
    );
  }

  function refusal(world: World, id: number): Outcome | undefined {
    return world.submit(taskSpec(id, { deadlineAt: world.now + 600 * S }));
  }

  test('is refused at once, with the cause and the time left, and no attempt is spent on it', () => {
    const { world, attempts } = failing();
    expect(isOpen(world)).toBe(true);
    expect(attempts).toBeLessThanOrEqual(20);
    const before = world.log.filter((line) => line.includes(' assign ')).length;
    world.advance(S);
    const outcome = refusal(world, 5_000);
    expect(outcome).toMatchObject({
      kind: 'rejected',
      reason: 'no-node',
      hint: { retryable: true },
      cause: expect.stringMatching(/^Breaker of model m: \d+ of its last 20 attempts failed, on \d nodes$/),
    });
    const afterUs = outcome?.kind === 'rejected' ? outcome.hint.afterUs : 0;
    expect(afterUs).toBeGreaterThan(3 * S);
    expect(afterUs).toBeLessThanOrEqual(4 * S);
    expect(world.log.filter((line) => line.includes(' assign ')).length).toBe(before);
  });

  test('is tried by exactly one task after its sleep; that it ends well opens it for all', () => {
    const { world } = failing();
    world.advance(6 * S);
    const probe = world.ask('m');
    expect(world.permits.has(probe)).toBe(true);
    expect(refusal(world, 5_000)).toMatchObject({ reason: 'no-node' });
    world.end(probe);
    const ids = [world.ask('m'), world.ask('m')];
    expect(ids.every((id) => world.permits.has(id))).toBe(true);
    world.endAll();
  });

  test('sleeps twice as long when that task fails, which is told so at once and not tried elsewhere', () => {
    const { world } = failing({ retry: { budgetReserve: 1_000 } });
    world.advance(6 * S);
    const probe = world.ask('m');
    world.end(probe, { ...BROKEN, retryable: true });
    expect(world.outcomes.get(probe)).toMatchObject({
      kind: 'failed',
      reason: 'node-failed',
      hint: { retryable: true, afterUs: 10 * S },
      cause: expect.stringContaining('Breaker of model m'),
    });
  });

  test('gets another probe when the one it had tells nothing', () => {
    const { world } = failing();
    world.advance(6 * S);
    const probe = world.ask('m');
    world.apply({ kind: 'cancel', taskId: probe });
    world.end(probe, { kind: 'aborted' });
    expect(world.permits.has(world.ask('m'))).toBe(true);
    world.endAll();
  });

  test('gets another probe when the one it had was refused for another reason', () => {
    const { world } = failing();
    world.advance(6 * S);
    expect(world.submit(taskSpec(5_000, { deadlineAt: world.now + 1 }))).toMatchObject({
      reason: 'too-slow',
    });
    expect(world.permits.has(world.ask('m'))).toBe(true);
    world.endAll();
  });

  test('is open for all from the first content byte of the stream that tries it', () => {
    const { world } = failing();
    world.advance(6 * S);
    world.submit(taskSpec(5_000, { stream: true, deadlineAt: world.now + 600 * S }));
    expect(world.runningOn(world.permits.get(5_000)?.nodeId ?? '')).toEqual([5_000]);
    expect(refusal(world, 5_001)).toMatchObject({ reason: 'no-node' });
    world.apply({ kind: 'attempt-first-byte', taskId: 5_000 });
    expect(refusal(world, 5_002)).toBeUndefined();
    world.endAll();
  });

  test('keeps nobody waiting who was queued when it opened', () => {
    const world = worldOf(NODES.map((id) => serving(id, ['m'])));
    for (let i = 0; i < NODES.length; i++) world.ask('m');
    world.endAll();
    const running = Array.from({ length: 8 }, (_, i) => world.ask('m', `r${i}`));
    const waiting = Array.from({ length: 40 }, (_, i) => world.ask('m', `w${i}`));
    expect(world.permits.size).toBe(8);
    for (let rounds = 0; rounds < 60 && world.permits.size > 0; rounds++) {
      const [next] = world.permits.keys();
      world.end(next as number, BROKEN);
    }
    const ended = waiting.map((id) => world.outcomes.get(id));
    const evicted = ended.filter((outcome) => outcome?.kind === 'evicted');
    expect(running.every((id) => world.outcomes.get(id)?.kind === 'failed')).toBe(true);
    expect(evicted.length).toBeGreaterThanOrEqual(12);
    expect(ended).not.toContain(undefined);
    for (const outcome of evicted)
      expect(outcome).toMatchObject({ reason: 'no-node', hint: { retryable: true } });
  });

  test.each<FailureKind>(['connect', 'refused'])('is not to blame when every node says %s', (kind) => {
    const world = worldOf(NODES.map((id) => serving(id, ['m'], { slots: 4 })));
    for (let i = 0; i < 100; i++) world.play('m', () => ok);
    for (let i = 0; i < 60; i++) {
      world.play('m', () => ({ kind: 'failed', failure: kind, retryable: false }));
      world.advance(S / 50);
    }
    for (const id of NODES) expect(world.breakers(id)).toEqual([]);
  });

  test('is not to blame for what its users ask wrong', () => {
    const world = worldOf(NODES.map((id) => serving(id, ['m'])));
    for (let i = 0; i < 100; i++) world.play('m', () => ({ kind: 'declined' }));
    for (const id of NODES) expect([world.state(id), world.breakers(id)]).toEqual(['unverified', []]);
  });

  test('is not to blame while half of the nodes serve it: those that fail are ejected', () => {
    const ids = Array.from({ length: 20 }, (_, i) => `n${i}`);
    const world = worldOf(ids.map((id) => serving(id, ['m'])));
    const bad = new Set(ids.filter((_, i) => i % 2 === 0));
    // The bad ones fail at once, while the good ones still work: for a moment only failures come in.
    const slow: number[] = [];
    for (let i = 0; i < 100; i++) {
      const id = world.ask('m', `u${i}`);
      const nodeId = world.permits.get(id)?.nodeId ?? '';
      if (bad.has(nodeId)) world.end(id, BROKEN);
      else slow.push(id);
    }
    expect(world.breakers('n1')).toEqual([]);
    world.endAll();
    for (const id of bad) expect(world.state(id)).toBe('ejected');
    expect(world.permits.has(world.ask('m'))).toBe(true);
    world.endAll();
  });

  test('in shadow is refused nowhere, and counted', () => {
    const { world } = failing({ gates: { breaker: 'shadow' } });
    world.advance(6 * S);
    const outcomes = [1, 2, 3].map((i) => refusal(world, 5_000 + i));
    expect(outcomes).toEqual([undefined, undefined, undefined]);
    expect(world.gate()).toMatchObject({ refused: 0, wouldRefuse: 2 });
    world.endAll();
  });

  test('is refused by nobody when the gate is off, but by its nodes, one by one', () => {
    const { world, attempts } = failing({ gates: { breaker: 'off' } });
    expect(isOpen(world)).toBe(false);
    expect(attempts).toBe(60);
    for (const id of NODES) expect(world.state(id)).toBe('ejected');
  });
});

describe('bounds', () => {
  test('of watched models hold: of one beyond them the node is judged', () => {
    const models = Array.from({ length: 10_001 }, (_, i) => `m${i}`);
    const world = worldOf([serving('a', models)], { health: { ejectMs: 10, ejectMsMax: 10 } });
    for (const model of models) {
      world.play(model, () => BROKEN);
      world.advance(S / 100);
    }
    const dump = world.scheduler.dump(world.now) as { readonly modelBreakers: readonly unknown[] };
    expect(dump.modelBreakers).toHaveLength(10_000);
    expect(world.scheduler.node('a', world.now)?.ejections).toBeGreaterThan(9_000);
  });

  test('of bodies that broke a node hold: the oldest are forgotten', () => {
    const world = worldOf([serving('a', ['m'])]);
    for (let i = 0; i < 12; i++) {
      world.submit(taskSpec(5_000 + i, { fingerprint: `body ${i}`, deadlineAt: world.now + 600 * S }));
      world.end(5_000 + i, { kind: 'failed', failure: 'reset', retryable: false });
      for (let j = 0; j < 25; j++) world.play('m', () => ok);
    }
    const strikes = world.scheduler.nodeMemory('a', world.now)?.strikes ?? [];
    expect(strikes.map((row) => row.fingerprint)).toEqual([4, 5, 6, 7, 8, 9, 10, 11].map((i) => `body ${i}`));
  });

  test('of breakers follow what the node offers', () => {
    const world = worldOf([serving('a', ['m', 'x'])]);
    world.play('x', () => ok);
    for (let i = 0; i < 3; i++) world.play('m', () => BROKEN);
    world.apply({ kind: 'node-registered', node: serving('a', ['x', 'y']) });
    expect(world.breakers('a')).toEqual([]);
  });
});

describe('what is remembered of a node', () => {
  function again(world: World, nodes: readonly NodeSpec[]): World {
    const restarted = new World(world.config);
    for (const node of nodes) {
      const memory = JSON.parse(JSON.stringify(world.scheduler.nodeMemory(node.id, world.now))) as NodeMemory;
      restarted.apply({ kind: 'node-registered', node, memory });
    }
    return restarted;
  }

  test('are its failures below an ejection: two, and a third one after the restart', () => {
    const nodes = [serving('a', ['m'])];
    const world = worldOf(nodes);
    for (let i = 0; i < 2; i++) world.play('m', () => BROKEN);
    const restarted = again(world, nodes);
    expect(restarted.state('a')).toBe('unverified');
    restarted.play('m', () => BROKEN);
    expect(restarted.state('a')).toBe('ejected');
  });

  test('is a model that it was shut for, for the rest of the time, and how often in a row', () => {
    const nodes = [serving('a', ['m', 'x'])];
    const world = worldOf(nodes);
    world.play('x', () => ok);
    for (let i = 0; i < 3; i++) world.play('m', () => BROKEN);
    world.advance(2 * S);
    const restarted = again(world, nodes);
    expect(restarted.breakers('a')).toMatchObject([
      { model: 'm', state: 'open', openForMs: 3_000, opens: 1 },
    ]);
    expect(restarted.play('m', () => ok)).toBeUndefined();
    expect(restarted.play('x', () => ok)).toBe('a');
    restarted.advance(3 * S);
    restarted.play('m', () => BROKEN);
    expect(restarted.breakers('a')).toMatchObject([{ model: 'm', state: 'open', openForMs: 10_000 }]);
  });

  test('is a model that failed everywhere', () => {
    const nodes = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((id) => serving(id, ['m', 'x']));
    const world = worldOf(nodes);
    for (let i = 0; i < 20; i++) {
      world.play('m', () => BROKEN);
      world.advance(S / 10);
    }
    expect(world.breakers('a').map((row) => row.scope)).toContain('everywhere');
    const restarted = again(world, nodes);
    const outcome = restarted.submit(taskSpec(7_000, { deadlineAt: 600 * S }));
    expect(outcome).toMatchObject({
      reason: 'no-node',
      cause: expect.stringContaining('before the restart'),
    });
  });

  test('is a body that broke it: broken by it, another node after the restart makes it poison', () => {
    const nodes = [serving('a', ['m']), serving('b', ['m'])];
    const world = worldOf([nodes[0] as NodeSpec]);
    const reset: AttemptResult = { kind: 'failed', failure: 'reset', retryable: true };
    world.submit(taskSpec(1, { fingerprint: 'body' }));
    world.end(1, reset);
    expect(world.outcomes.get(1)).toMatchObject({ reason: 'node-failed' });
    const restarted = again(world, [nodes[0] as NodeSpec]);
    restarted.apply({ kind: 'node-registered', node: nodes[1] as NodeSpec });
    restarted.apply({ kind: 'node-cordoned', nodeId: 'a', cordoned: true });
    restarted.submit(taskSpec(2, { fingerprint: 'body' }));
    expect(restarted.runningOn('b')).toEqual([2]);
    restarted.end(2, reset);
    expect(restarted.outcomes.get(2)).toMatchObject({ reason: 'poison' });
    expect(restarted.submit(taskSpec(3, { fingerprint: 'body' }))).toMatchObject({ reason: 'poison' });
  });
});
