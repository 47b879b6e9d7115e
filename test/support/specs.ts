/** Small builders for what tests feed the scheduler: everything has a default, a test names only what it is about. */
import type { NodeConfig } from '../../src/core/config/types.ts';
import { NO_NEEDS } from '../../src/core/request/needs.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { NodeSpec } from '../../src/core/scheduler/events.ts';

export const MS = 1_000;
export const S = 1_000_000;

/** One slot, model `m`, hardware unknown: its prior is the speed of the reference accelerator. */
export function nodeSpec(id: NodeConfig['id'], change: Partial<NodeSpec> = {}): NodeSpec {
  return {
    id,
    models: [{ model: 'm' }],
    slots: 1,
    batching: false,
    hardware: '',
    labels: {},
    heartbeats: false,
    ...change,
  };
}

/** One second of work for tenant `t` in class `normal`, due 60 s after the origin. */
export function taskSpec(id: number, change: Partial<TaskSpec> = {}): TaskSpec {
  const workUs = change.workUs ?? S;
  return {
    id,
    className: 'normal',
    tenant: 't',
    model: 'm',
    needs: NO_NEEDS,
    workUs,
    firstByteWorkUs: workUs,
    bytes: 100,
    deadlineAt: 60 * S,
    deadlineWished: true,
    stream: false,
    fingerprint: '',
    ...change,
  };
}
