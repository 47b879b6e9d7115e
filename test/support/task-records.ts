/** Task records outside of any scheduler, for tests of the structures that hold them. */
import { defaultSchedulerConfig } from '../../src/core/config/defaults.ts';
import { ClassRecord, Flow } from '../../src/core/queue/flow.ts';
import { TaskRecord } from '../../src/core/queue/task-record.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import { taskSpec } from './specs.ts';

/** A flow of the class with this index in the default configuration. */
export function flowAlone(classIndex = 1, tenant = 't'): Flow {
  const classConfig = defaultSchedulerConfig().classes[classIndex];
  if (classConfig === undefined) throw new Error(`No class ${classIndex}`);
  const record = new ClassRecord(classIndex, classConfig, classConfig.weight);
  return new Flow(record, { tenant, weight: 1, order: 0, tenantQueued: { tasks: 0, workUs: 0, bytes: 0 } });
}

export function taskRecord(id: number, change: Partial<TaskSpec> = {}, flow: Flow = flowAlone()): TaskRecord {
  return new TaskRecord(taskSpec(id, change), flow, 0);
}
