import { describe, expect, test } from 'vitest';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { viewsOf } from './describe.ts';
import { handleNode } from './node-events.ts';
import { enqueue } from './settle.ts';
import { createState, flowOf, type SchedulerState } from './state.ts';

const CONFIG = defaultSchedulerConfig({ models: [] });
const MODELS = ['a', 'b', 'c'];
const TENANTS = 7;

/** Queued tasks in every class, of a few models and tenants, one second of work each; one a millisecond came. */
function queued(count: number): { readonly state: SchedulerState; readonly tasks: readonly TaskRecord[] } {
  const state = createState(CONFIG);
  const tasks: TaskRecord[] = [];
  handleNode(state, {
    kind: 'node-registered',
    node: nodeSpec('n', { models: MODELS.map((model) => ({ model })) }),
  });
  for (let id = 1; id <= count; id++) {
    const record = state.classes[id % state.classes.length];
    if (record === undefined) throw new Error('No class');
    const model = MODELS[id % MODELS.length] as string;
    const flow = flowOf(state, record, `tenant ${id % TENANTS}`);
    const task = state.records.take(
      taskSpec(id, { model, className: record.config.name, workUs: S }),
      flow,
      id * 1_000,
    );
    const lane = state.fleet.laneFor(model, task.spec.needs, flow.tenant);
    if (typeof lane === 'string') throw new Error(lane);
    tasks.push(task);
    enqueue(lane, task);
  }
  return { state, tasks };
}

describe('the view of the queue', () => {
  test('tells depth, work and longest wait in all, by class, model and tenant', () => {
    const { state } = queued(42);
    const view = viewsOf(state).queue(100_000);
    expect(view).toMatchObject({ depth: 42, workMs: 42_000, oldestWaitMs: 99, bytes: 4_200 });
    expect(Object.values(view.byModel).map(({ depth }) => depth)).toEqual([14, 14, 14]);
    expect(view.byModel['b']).toEqual({ depth: 14, workMs: 14_000, oldestWaitMs: 99 });
    expect(view.byTenant['tenant 3']).toEqual({ depth: 6, workMs: 6_000, oldestWaitMs: 97 });
    expect(Object.keys(view.byTenant)).toHaveLength(TENANTS);
    expect(view.byClass['normal']).toEqual({ depth: 14, workMs: 14_000, oldestWaitMs: 99 });
    expect(view.byClassAndModel['normal']).toEqual({ b: view.byModel['b'] });
  });

  test('looks at as many tasks with 20,000 queued as with 42', () => {
    const looks = (count: number): number => {
      const { state, tasks } = queued(count);
      let reads = 0;
      for (const task of tasks) {
        const { submittedAt } = task;
        Object.defineProperty(task, 'submittedAt', {
          get() {
            reads += 1;
            return submittedAt;
          },
        });
      }
      viewsOf(state).queue(30_000_000);
      return reads;
    };
    const few = looks(42);
    expect(few).toBeGreaterThan(0);
    expect(looks(20_000)).toBe(few);
  });

  test('shows a hundred tenants at most, with what they wait for in all classes', () => {
    const state = createState(CONFIG);
    handleNode(state, { kind: 'node-registered', node: nodeSpec('n') });
    let id = 0;
    for (const [index, record] of state.classes.entries()) {
      for (let tenant = 0; tenant < 150; tenant++) {
        const flow = flowOf(state, record, `tenant ${tenant}`);
        const task = state.records.take(taskSpec(++id), flow, 1_000 * index);
        const lane = state.fleet.laneFor('m', task.spec.needs, flow.tenant);
        if (typeof lane !== 'string') enqueue(lane, task);
      }
    }
    const rows = Object.values(viewsOf(state).queue(10_000).byTenant);
    expect(rows).toHaveLength(100);
    for (const row of rows) expect(row).toEqual({ depth: 3, workMs: 3_000, oldestWaitMs: 10 });
  });
});
