/** Who is ejected for having become slower, by what its peers do meanwhile. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { NodeSpec } from './events.ts';

const TASKS = 40;
const ASLEEP_US = 100 * S;

/** One-slot nodes under more load than they can do: each has the next task as soon as it has done one. */
class BusyFleet extends CheckedScheduler {
  /** How long a task takes that is begun now. */
  tookUs: (nodeId: string) => number = usual;
  readonly #endsAt: Map<number, number> = new Map();
  #nextId = 1;

  constructor(nodes: readonly NodeSpec[]) {
    super(defaultSchedulerConfig({ health: { ejectMs: ASLEEP_US / 1_000, ejectMsMax: ASLEEP_US / 1_000 } }));
    this.onAssign = (taskId, nodeId) => void this.#endsAt.set(taskId, this.now + this.tookUs(nodeId));
    for (const node of nodes) this.apply({ kind: 'node-registered', node });
  }

  workFor(durationUs: number): void {
    const until = this.now + durationUs;
    for (;;) {
      while (this.accounts.queued < this.scheduler.nodes(this.now).length) this.#ask();
      const [id, at] = this.#next();
      if (at > until) break;
      this.advance(at - this.now);
      this.end(id);
    }
    this.advance(until - this.now);
  }

  /** Its next tasks fail, until it is out. */
  fail(nodeId: string, model = 'm'): void {
    for (let i = 0; i < 10 && this.state(nodeId) !== 'ejected'; i++) {
      for (const id of this.runningOn(nodeId))
        this.end(id, { kind: 'failed', failure: 'server-error', retryable: false, nodeRetryAfterUs: 0 });
      this.#ask(model);
    }
    expect(this.state(nodeId)).toBe('ejected');
  }

  state(nodeId: string): string | undefined {
    return this.scheduler.node(nodeId, this.now)?.state;
  }

  /** Nodes that were ejected so far, in that order. */
  get ejected(): readonly string[] {
    return this.log.flatMap((line) => / node (\S+) ejected$/.exec(line)?.[1] ?? []);
  }

  #next(): readonly [taskId: number, at: number] {
    const ends = [...this.permits.keys()].map((id) => [id, this.#endsAt.get(id) as number] as const);
    return ends.reduce((first, one) => (one[1] < first[1] ? one : first));
  }

  #ask(model = 'm'): void {
    const id = this.#nextId++;
    this.submit(taskSpec(id, { model, tenant: `t${id}`, deadlineAt: this.now + 3_600 * S }));
  }
}

const named = (...ids: readonly string[]): readonly NodeSpec[] => ids.map((id) => nodeSpec(id));
const usual = (): number => S;
const slower =
  (times: number, ...ids: readonly string[]) =>
  (nodeId: string): number =>
    ids.includes(nodeId) ? times * S : S;

/** What is usual is known of all: each has done its tasks, and begins the next one in an instant. */
function seasoned(nodes: readonly NodeSpec[], tookUs = usual as (nodeId: string) => number): BusyFleet {
  const fleet = new BusyFleet(nodes);
  fleet.tookUs = tookUs;
  fleet.workFor(TASKS * Math.max(...nodes.map(({ id }) => tookUs(id))) - 1);
  return fleet;
}

describe('a slowdown', () => {
  test('of all nodes at once ejects none, and what they do from then on is usual', () => {
    const fleet = seasoned(named('a', 'b', 'c', 'd'));
    fleet.tookUs = () => 4 * S;
    fleet.workFor(60 * 4 * S);
    expect(fleet.ejected).toEqual([]);
    fleet.tookUs = (nodeId) => (nodeId === 'b' ? 16 * S : 4 * S);
    fleet.workFor(10 * 16 * S);
    expect(fleet.ejected).toEqual(['b']);
  });

  test.each([2, 4, 30])('of one of %i nodes ejects it after three tasks', (count) => {
    const fleet = seasoned(named(...Array.from({ length: count }, (_, i) => `n${i}`)));
    fleet.tookUs = slower(4, 'n1');
    fleet.workFor(12 * S);
    expect(fleet.ejected).toEqual([]);
    fleet.workFor(S);
    expect(fleet.ejected).toEqual(['n1']);
  });

  test('of less than half of its peers is theirs, and ejects them', () => {
    const fleet = seasoned(named('a', 'b', 'c', 'd', 'e', 'f'));
    fleet.tookUs = slower(4, 'a', 'b', 'c');
    fleet.workFor(14 * S);
    expect([...fleet.ejected].sort()).toEqual(['a', 'b', 'c']);
  });

  test('is weighed by what its peers usually do, not by how many they are', () => {
    const slow = Array.from({ length: 4 }, (_, i) => nodeSpec(`slow-${i}`, { hardware: 'T4' }));
    const took = (nodeId: string): number => (nodeId.startsWith('slow') ? 5 * S : S);
    const fleet = seasoned([...named('fast-a', 'fast-b'), ...slow], took);
    fleet.tookUs = (nodeId) => (nodeId.startsWith('fast') ? 4 : 1) * took(nodeId);
    fleet.workFor(40 * S);
    expect(fleet.ejected).toEqual([]);
  });

  test('of a node whose peers never did enough to be known is its own', () => {
    const fleet = new BusyFleet(named('a', 'b', 'c'));
    fleet.tookUs = (nodeId) => (nodeId === 'a' ? S : 20 * S);
    fleet.workFor(40 * S);
    fleet.tookUs = (nodeId) => (nodeId === 'a' ? 4 * S : 20 * S);
    fleet.workFor(14 * S);
    expect(fleet.ejected).toEqual(['a']);
  });

  test('is not disproved by peers that have only just come', () => {
    const fleet = seasoned(named('a', 'b'));
    for (const node of named('c', 'd', 'e')) fleet.apply({ kind: 'node-registered', node });
    fleet.tookUs = () => 4 * S;
    fleet.workFor(20 * S);
    expect(fleet.ejected).toEqual([]);
  });

  test('ejects nobody more while half of what the peers can do is out already', () => {
    const fleet = seasoned(named('a', 'b', 'c', 'd', 'e'));
    fleet.fail('a');
    fleet.fail('b');
    fleet.tookUs = slower(4, 'c');
    fleet.workFor(20 * S);
    expect(fleet.ejected).toEqual(['a', 'b']);
  });

  test('ejects nobody while who is back has not proven itself', () => {
    const fleet = seasoned(named('a', 'b'));
    fleet.tookUs = slower(4, 'a');
    fleet.workFor(13 * S);
    expect(fleet.ejected).toEqual(['a']);
    fleet.workFor(ASLEEP_US);
    expect(fleet.state('a')).not.toBe('ejected');
    fleet.tookUs = slower(4, 'a', 'b');
    fleet.workFor(20 * S);
    expect(fleet.ejected).toEqual(['a']);
  });

  test('counts who is out with all its slots, although it comes back with one', () => {
    const fleet = seasoned([nodeSpec('a', { slots: 4 }), ...named('b', 'c', 'd')]);
    fleet.fail('a');
    fleet.tookUs = slower(4, 'b');
    fleet.workFor(20 * S);
    expect(fleet.ejected).toEqual(['a']);
  });

  test('is not looked for at peers that are cordoned', () => {
    const fleet = seasoned(named('a', 'b', 'c', 'd'));
    fleet.tookUs = slower(4, 'c', 'd');
    fleet.workFor(6 * S);
    for (const nodeId of ['c', 'd']) fleet.apply({ kind: 'node-cordoned', nodeId, cordoned: true });
    fleet.tookUs = slower(4, 'a');
    fleet.workFor(14 * S);
    expect(fleet.ejected).toEqual(['a']);
  });

  test('is not looked for at nodes that do another model', () => {
    const models = [{ model: 'm' }, { model: 'k' }];
    const others = ['c', 'd'].map((id) => nodeSpec(id, { models: [{ model: 'k' }] }));
    const fleet = seasoned([nodeSpec('a', { models }), nodeSpec('b'), ...others]);
    fleet.fail('c', 'k');
    fleet.tookUs = slower(4, 'a');
    fleet.workFor(14 * S);
    expect(fleet.ejected).toEqual(['c', 'a']);
  });
});
