/**
 * What one class has waiting for one model, over all tenants and lanes: counters, and the tasks in order of arrival. A class
 * has one per model that waited there since lanes were laid anew, so the models that nodes offer bound it.
 */
import type { RefUs } from '../../base/units.ts';
import { type ArrivalRows, Arrivals, OF_MODEL } from './arrivals.ts';
import type { TaskRecord } from './task-record.ts';

export class ModelQueue extends Arrivals {
  tasks = 0;
  workUs: RefUs = 0;

  constructor(rows: ArrivalRows) {
    super(rows, OF_MODEL);
  }

  enter(task: TaskRecord): void {
    this.link(task);
    task.modelQueue = this;
    this.tasks += 1;
    this.workUs += task.workUs;
  }

  leave(task: TaskRecord): void {
    this.unlink(task);
    task.modelQueue = null;
    this.tasks -= 1;
    this.workUs -= task.workUs;
  }
}
