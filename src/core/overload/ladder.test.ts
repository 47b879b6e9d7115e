import { describe, expect, test } from 'vitest';
import { LoadedFleet } from '../../../test/support/loaded-fleet.ts';
import { S } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import { Ladder, LADDERS_MAX } from './ladder.ts';
import { OVERRIDE_US_MAX } from './override.ts';

const MODEL_B = { models: [{ model: 'b' }] };

describe('the ladder under load', () => {
  test('limits classes below the first to a part of their gate, tells why, and lets the first one in', () => {
    const fleet = new LoadedFleet().node('a').node('b');
    fleet.load(60, 12);
    expect(fleet.view.stage).toBe(2);
    let refused = fleet.submit();
    while (refused === undefined) refused = fleet.submit();
    expect(refused).toMatchObject({ kind: 'rejected', reason: 'shed', hint: { retryable: true } });
    const { cause } = refused as { cause?: string };
    expect(cause).toMatch(/^ladder stage 2: \d+ waiting, normal for \d+\.\d s of \d+\.\d s/);
    const critical = { className: 'critical', deadlineAt: fleet.run.now + 60 * S, retryCount: 1 };
    for (let i = 0; i < 5; i++) expect(fleet.submit(critical), 'of one flow, repeated').toBeUndefined();
    const before = fleet.ends.length;
    fleet.load(30, 12, { tenant: 't0' });
    const admitted = fleet.ends.slice(before).filter(({ outcome }) => outcome.kind === 'served');
    const waits = admitted.map(({ task, at }) => at - (task.deadlineAt - 30 * S)).slice(20);
    expect(Math.max(...waits), 'three quarters of five seconds, and the service').toBeLessThan(5.3 * S);
    expect(fleet.run.scheduler.gates()).toContainEqual({
      gate: 'ladder',
      mode: 'on',
      refused: fleet.reasons('normal')['shed'],
      wouldRefuse: 0,
    });
  });

  test('goes down by itself when the load is over, and asks for no more samples then', () => {
    const fleet = new LoadedFleet().node('a').node('b');
    fleet.load(60, 12);
    fleet.run.runUntil(fleet.run.now + 60 * S);
    expect(fleet.view.stage).toBe(0);
    fleet.run.runUntil(fleet.run.now + 20 * S);
    expect(fleet.run.scheduler.nextWakeAt()).toBe(Number.POSITIVE_INFINITY);
  });

  test('goes down also when every node is gone, so that nothing can complete', () => {
    const fleet = new LoadedFleet().node('a');
    fleet.load(60, 12);
    expect(fleet.view.stage).toBe(2);
    fleet.run.apply({ kind: 'node-removed', nodeId: 'a' });
    fleet.run.runUntil(fleet.run.now + 90 * S);
    expect(fleet.view.stage).toBe(0);
  });

  test('leaves alone a model whose nodes have room, whatever another one is under', () => {
    const fleet = new LoadedFleet().node('a').node('b', MODEL_B);
    fleet.load(60, 12);
    expect([fleet.model().stage, fleet.submit({ model: 'b' })]).toEqual([2, undefined]);
    fleet.load(20, 12);
    expect([fleet.model().stage, fleet.model('b').stage]).toEqual([2, 0]);
    expect(fleet.submit({ model: 'b', className: 'low' })).toBeUndefined();
  });

  test('in shadow shows the stage, counts what it would refuse, and refuses nothing', () => {
    const shadow = new LoadedFleet({ gates: { ladder: 'shadow' } }).node('a').node('b');
    shadow.load(60, 12);
    expect(shadow.view).toMatchObject({ stage: 2, mode: 'shadow' });
    expect(shadow.reasons('normal')['shed']).toBeUndefined();
    const count = shadow.run.scheduler.gates().find(({ gate }) => gate === 'ladder');
    expect(count?.refused).toBe(0);
    expect(count?.wouldRefuse).toBeGreaterThan(100);
  });

  test('off takes no samples and stays at stage 0, also when it is switched off while it is up', () => {
    const off = new LoadedFleet({ gates: { ladder: 'off' } }).node('a').node('b');
    off.load(60, 12);
    expect(off.view).toMatchObject({ stage: 0, models: [] });
    const fleet = new LoadedFleet().node('a').node('b');
    fleet.load(60, 12);
    const config = defaultSchedulerConfig({ gates: { ladder: 'off' } });
    fleet.run.apply({ kind: 'config', config });
    expect(fleet.view).toMatchObject({ stage: 0, models: [] });
    fleet.load(5, 12);
    expect(fleet.view.stage).toBe(0);
  });

  test('goes to stage 2 by many small tasks that wait, whatever their time', () => {
    const fleet = new LoadedFleet({ ladder: { queueRatioMax: 100 } }).node('a').node('b');
    fleet.load(20, 1_000, { workUs: 10_000 });
    expect(fleet.model()).toMatchObject({ stage: 2, queue: { depthMax: 128, className: 'normal' } });
    const { depth, drainMs, targetMs } = fleet.model().queue;
    expect(depth).toBeGreaterThan(128);
    expect(drainMs).toBeLessThan(targetMs / 10);
  });
});

describe('those who come again', () => {
  /** Both nodes busy for long, and one task of the flow waiting. */
  function crowded(overrides: SchedulerOverrides = {}): LoadedFleet {
    const fleet = new LoadedFleet({ ladder: { waitShare: 0.9 }, ...overrides }).node('a').node('b');
    for (let i = 0; i < 2; i++) fleet.submit({ workUs: 4 * S });
    fleet.set(2);
    expect(fleet.submit({ workUs: 2 * S }), 'waits').toBeUndefined();
    return fleet;
  }

  test('before their time are refused at stage 2 although others of their flow still find room', () => {
    const fleet = crowded();
    expect(fleet.submit({ retryCount: 1, workUs: 1_000 })).toMatchObject({
      reason: 'shed',
      cause: 'ladder stage 2, set by hand',
    });
    expect(fleet.submit({ workUs: 1_000 })).toBeUndefined();
    const open = crowded({ gates: { 'retry-shed': 'off' } });
    expect(open.submit({ retryCount: 1, workUs: 1_000 }), 'where retries count as others do').toBeUndefined();
  });

  test('at the time that they were told are let in although others of their flow are not', () => {
    const fleet = crowded({ ladder: { waitShare: 0.01 } });
    const refused = fleet.submit({ fingerprint: 'x' });
    expect(refused).toMatchObject({ kind: 'rejected', reason: 'shed' });
    const { hint } = refused as Extract<typeof refused, { hint: unknown }>;
    fleet.run.runUntil(fleet.run.now + hint.afterUs);
    expect(fleet.submit({ fingerprint: 'y' })).toMatchObject({ reason: 'shed' });
    expect(fleet.submit({ fingerprint: 'x' })).toBeUndefined();
  });
});

describe('the last stage', () => {
  test('is reached by missed deadlines behind a queue, lets a trickle pass, and ends by itself', () => {
    // Service times that no estimate holds for: many are admitted and miss.
    const fleet = new LoadedFleet();
    for (const id of 'abcd') fleet.node(id, {}, 1.2);
    let last = 0;
    for (let i = 0; i < 60 && last < 3; i++) {
      fleet.load(2, 12, { deadlineAt: fleet.run.now + 9 * S });
      last = fleet.view.stage;
    }
    expect(last, JSON.stringify(fleet.model())).toBe(3);
    expect(fleet.model().triggers.map(({ isLit }) => isLit)).toEqual([false, true, true]);
    const before = fleet.ends.length;
    fleet.load(20, 20);
    const shed = fleet.ends.slice(before).filter(({ outcome }) => 'cause' in outcome);
    expect(shed.length).toBeGreaterThan(300);
    expect(fleet.submit({ className: 'critical', deadlineAt: fleet.run.now + 60 * S })).toBeUndefined();
    fleet.run.runUntil(fleet.run.now + 120 * S);
    expect(fleet.view.stage).toBe(0);
  });

  test('gives a node away that idles while none of the first class waits, and no more', () => {
    const fleet = new LoadedFleet();
    for (const id of 'abcd') fleet.node(id, {}, 1.2);
    for (let i = 0; i < 60 && fleet.view.stage < 3; i++)
      fleet.load(2, 12, { deadlineAt: fleet.run.now + 9 * S });
    fleet.run.runUntil(fleet.run.now + 15 * S);
    expect(fleet.view.stage, 'still').toBe(3);
    const outcomes = Array.from({ length: 40 }, () => fleet.submit({ className: 'low', workUs: 5 * S }));
    const refused = outcomes.filter((outcome) => outcome !== undefined);
    expect(refused.length, 'four nodes, one that trickles, one that waits for a faster node').toBeLessThan(
      37,
    );
    expect(refused.length).toBeGreaterThan(33);
    expect(refused.every((outcome) => 'reason' in outcome && outcome.reason === 'shed')).toBe(true);
  });

  test('is not reached by what the ladder refuses, however long it does', () => {
    const fleet = new LoadedFleet().node('a').node('b');
    fleet.load(180, 12);
    expect(fleet.view.stage).toBe(2);
    expect(fleet.model().triggers[2]).toMatchObject({ trigger: 'misses', value: null, isLit: false });
  });

  test('refuses all but the first class, one in a hundred of each excepted, and says for how long', () => {
    const fleet = new LoadedFleet().node('a').node('b');
    fleet.set(3, 40 * S);
    const outcomes = Array.from({ length: 200 }, () => fleet.submit({ className: 'low', workUs: 1_000 }));
    const refused = outcomes.filter((outcome) => outcome !== undefined);
    expect(refused, 'of each hundred one passes, although nodes idle').toHaveLength(198);
    expect(refused[0]).toEqual({
      kind: 'rejected',
      reason: 'shed',
      hint: { retryable: true, afterUs: 40 * S },
      cause: 'ladder stage 3, set by hand',
    });
    expect(fleet.submit({ className: 'critical' })).toBeUndefined();
  });

  test.each([
    [1, [false]],
    [2, [false, true]],
    [4, [false, true, true, true]],
  ])('knows its classes by their place: of %i', (count, refuses) => {
    const classes = Array.from({ length: count }, (_, i) => ({
      name: `c${i}`,
      weight: 1,
      shareMin: 0,
      firstByteMs: 10_000,
      completionMs: 60_000,
    }));
    const fleet = new LoadedFleet({ classes, defaultClass: 'c0' }).node('a');
    fleet.set(3);
    for (const { name } of classes) fleet.submit({ className: name });
    const refused = classes.map(({ name }) => fleet.submit({ className: name }) !== undefined);
    expect(refused).toEqual(refuses);
  });
});

describe('an idle node', () => {
  test('that would do it in time wins at stages 1 and 2, whatever waits', () => {
    const fleet = new LoadedFleet({ gates: { 'flow-wait': 'off' } }).node('slow').node('fast');
    const slow = fleet.run.nodes.get('slow') as { speed: number };
    slow.speed = 0.2;
    fleet.load(60, 1);
    fleet.set(2);
    for (const className of ['normal', 'low'])
      expect(fleet.submit({ className, tenant: 'fresh' }), className).toBeUndefined();
    for (let i = 0; i < 40; i++) fleet.submit({ tenant: 'fresh' });
    const rooms = fleet.run.scheduler.nodes(fleet.run.now).map(({ inflight }) => inflight);
    expect(rooms, 'no node idles once something was refused').toEqual([1, 1]);
    expect(fleet.reasons('normal')['shed']).toBeGreaterThan(0);
  });

  test('is given even to who comes back before the time', () => {
    const fleet = new LoadedFleet().node('a').node('b');
    fleet.set(2);
    expect([fleet.submit({ retryCount: 1 }), fleet.submit({ retryCount: 1 })]).toEqual([
      undefined,
      undefined,
    ]);
    expect(fleet.submit({ retryCount: 1 })).toMatchObject({ reason: 'shed' });
  });
});

describe('optional models', () => {
  const OPTIONAL: SchedulerOverrides = {
    models: [{ id: 'b', aliases: [], profile: { kind: 'generic', meanMs: 1_000 }, optional: true }],
  };
  const BOTH = { models: [{ model: 'm' }, { model: 'b' }] };

  test('are switched off while another model that shares their nodes is at stage 2, and back after', () => {
    const fleet = new LoadedFleet(OPTIONAL).node('a', BOTH).node('b', BOTH);
    fleet.load(60, 12);
    expect(fleet.model().stage).toBe(2);
    for (const className of ['critical', 'low'])
      expect(fleet.submit({ model: 'b', className }), className).toMatchObject({
        reason: 'shed',
        cause: 'ladder: this optional model is switched off while others need its nodes',
      });
    fleet.run.runUntil(fleet.run.now + 90 * S);
    expect(fleet.submit({ model: 'b', className: 'low' })).toBeUndefined();
  });

  test('stay on where their nodes are their own, and where the model is not declared optional', () => {
    const apart = new LoadedFleet(OPTIONAL).node('a').node('b', MODEL_B);
    apart.load(60, 12);
    expect([apart.model().stage, apart.submit({ model: 'b' })]).toEqual([2, undefined]);
    apart.submit({ model: 'b' });
    expect(apart.submit({ model: 'b', tenant: 'x' }), 'although its node is busy').toBeUndefined();
    const plain = new LoadedFleet().node('a', BOTH);
    plain.load(60, 12);
    expect(plain.submit({ model: 'b', className: 'critical' })).toBeUndefined();
  });

  test('are served by an idle node all the same', () => {
    const fleet = new LoadedFleet(OPTIONAL).node('a', BOTH).node('b', BOTH);
    fleet.set(2);
    expect(fleet.submit({ model: 'b' })).toBeUndefined();
    expect(fleet.submit({ model: 'b' })).toBeUndefined();
    expect(fleet.submit({ model: 'b' })).toMatchObject({ reason: 'shed' });
  });
});

describe('memory', () => {
  function memory(fleet: LoadedFleet, nodeId: string, memoryUse: number): void {
    fleet.run.apply({ kind: 'node-memory', nodeId, memory: { memoryUse, reservedUse: 0 } });
  }

  /** Tells memory every ten seconds, with a little traffic. */
  function tell(fleet: LoadedFleet, seconds: number, uses: Readonly<Record<string, number>>): void {
    for (let i = 0; i < seconds; i += 10) {
      for (const [nodeId, use] of Object.entries(uses)) memory(fleet, nodeId, use);
      fleet.submit({ workUs: 1_000 });
      fleet.run.runUntil(fleet.run.now + 10 * S);
    }
  }

  test('leads to stage 1 after thirty seconds by the mean of the nodes that tell it', () => {
    const fleet = new LoadedFleet().node('a').node('b').node('c');
    tell(fleet, 30, { a: 0.95, b: 0.8 });
    expect(fleet.view.stage).toBe(0);
    tell(fleet, 10, { a: 0.95, b: 0.8 });
    expect(fleet.model()).toMatchObject({ stage: 1, triggers: [{ value: 0.875, isLit: true }, {}, {}] });
    expect(fleet.model().unblock).toBe('Memory use below 75 % for 8 s.');
    tell(fleet, 50, { a: 0.7, b: 0.7 });
    expect(fleet.view.stage).toBe(0);
  });

  test('is unknown while fewer than half of the nodes tell it, and when it is not told again', () => {
    const fleet = new LoadedFleet().node('a').node('b').node('c');
    tell(fleet, 60, { a: 0.95 });
    expect(fleet.model().triggers[0]).toMatchObject({ value: null, isLit: false });
    tell(fleet, 60, { a: 0.95, b: 0.95 });
    expect(fleet.view.stage).toBe(1);
    tell(fleet, 100, {});
    expect([fleet.view.stage, fleet.model().triggers[0]?.value]).toEqual([0, null]);
  });

  test('is the cache use of an engine that reads its load', () => {
    const fleet = new LoadedFleet().node('a', { batching: true, slots: 0 });
    for (let i = 0; i < 40; i++) {
      fleet.run.apply({ kind: 'node-reading', nodeId: 'a', reading: { running: 1, cacheUse: 0.88 } });
      if (i % 10 === 0) fleet.submit({ workUs: 1_000 });
      fleet.run.runUntil(fleet.run.now + S);
    }
    expect(fleet.model()).toMatchObject({ stage: 1, triggers: [{ value: 0.88 }, {}, {}] });
  });
});

describe('an override', () => {
  test('holds for all models until its time is over, is shown with who and why, and then leaves by itself', () => {
    const fleet = new LoadedFleet().node('a');
    fleet.set(3, 10 * S);
    expect(fleet.view).toMatchObject({
      stage: 3,
      override: { stage: 3, expiresInMs: 10_000, who: 'ops', why: 'drill' },
    });
    fleet.submit();
    expect(fleet.submit()).toMatchObject({ reason: 'shed' });
    fleet.run.runUntil(10 * S);
    expect(fleet.view).toMatchObject({ stage: 0, override: null });
    expect(fleet.submit()).toBeUndefined();
  });

  test('of stage 0 lets pass what the evidence would refuse, and then gives back to the evidence', () => {
    const fleet = new LoadedFleet().node('a').node('b');
    fleet.load(60, 12);
    fleet.set(0, 20 * S);
    const before = fleet.reasons('normal')['shed'];
    fleet.load(19, 12);
    expect(fleet.reasons('normal')['shed']).toBe(before);
    expect([fleet.view.stage, fleet.model().stage]).toEqual([0, 2]);
    fleet.load(10, 12);
    expect(fleet.view.stage).toBe(2);
    expect(fleet.reasons('normal')['shed']).toBeGreaterThan(before as number);
  });

  test('can be taken back, and is never longer than its bound', () => {
    const fleet = new LoadedFleet().node('a');
    fleet.set(3, Number.POSITIVE_INFINITY);
    expect(fleet.view.override?.expiresInMs).toBe(OVERRIDE_US_MAX / 1_000);
    fleet.set(2, Number.NaN);
    expect(fleet.view).toMatchObject({ stage: 0, override: null });
    fleet.set(3);
    fleet.run.apply({ kind: 'ladder-override', override: null });
    expect(fleet.view).toMatchObject({ stage: 0, override: null });
    expect(fleet.submit()).toBeUndefined();
  });
});

describe('Ladder', () => {
  const config = defaultSchedulerConfig();
  const WISH = { since: 0, until: S, who: '', why: '' };

  test('degrades the last class from stage 1 on, by its place, and nobody in shadow', () => {
    const ladder = new Ladder(config);
    expect(ladder.degradesClass(2, null, 0)).toBe(false);
    for (const stage of [1, 2, 3] as const) {
      ladder.setOverride({ ...WISH, stage }, 0);
      expect([0, 1, 2].map((index) => ladder.degradesClass(index, null, 0))).toEqual([false, false, true]);
    }
    ladder.setOverride({ ...WISH, stage: 0 }, 0);
    expect(ladder.degradesClass(2, null, 0)).toBe(false);
    const shadow = new Ladder(defaultSchedulerConfig({ gates: { ladder: 'shadow' } }));
    shadow.setOverride({ ...WISH, stage: 1 }, 0);
    expect(shadow.degradesClass(2, null, 0)).toBe(false);
  });

  test('knows a bounded number of models, and forgets those that need none now first', () => {
    const fleet = new LoadedFleet({ ladder: { queueMs: 0 } });
    const models = Array.from({ length: LADDERS_MAX + 10 }, (_, i) => ({ model: `m${i}` }));
    fleet.node('a', { models: models.slice(0, 9_000) }).node('b', { models: models.slice(9_000) });
    const offer = (name: string): void => {
      fleet.submit({ model: name, workUs: 1 });
      fleet.run.runUntil(fleet.run.now + 10);
    };
    for (const { model } of models.slice(0, LADDERS_MAX)) offer(model);
    expect([fleet.view.modelsTotal, fleet.view.models.length]).toEqual([LADDERS_MAX, 100]);
    for (const { model } of models.slice(LADDERS_MAX)) offer(model);
    expect(fleet.view.modelsTotal, 'those at rest are forgotten').toBe(10);
    expect(fleet.view.models.map(({ model }) => model)).toContain(`m${LADDERS_MAX + 9}`);
    offer('m1');
    expect(fleet.view.modelsTotal).toBe(11);
  });
});
