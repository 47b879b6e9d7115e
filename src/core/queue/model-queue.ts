/**
 * What one class has waiting for one model, over all tenants and lanes: counters, and the tasks in order of arrival, so
 * that who waits longest is known without a walk.
 *
 *   enter ──► newest … oldest ──► leave, from anywhere          O(1) each
 *
 * Who was tried and waits again stands behind those that came meanwhile, as in its flow; who gave its place has its own
 * back. A class has one per model that waited there since lanes were laid anew, so the models that nodes offer bound it.
 */
import type { RefUs } from '../../base/units.ts';
import type { TaskRecord } from './task-record.ts';

export class ModelQueue {
  tasks = 0;
  workUs: RefUs = 0;
  oldest: TaskRecord | null = null;
  #newest: TaskRecord | null = null;

  enter(task: TaskRecord): void {
    let older = this.#newest;
    if (task.gaveWay) while (older !== null && older.spec.id > task.spec.id) older = older.olderOfModel;
    const newer = older === null ? this.oldest : older.newerOfModel;
    task.olderOfModel = older;
    task.newerOfModel = newer;
    if (older !== null) older.newerOfModel = task;
    else this.oldest = task;
    if (newer !== null) newer.olderOfModel = task;
    else this.#newest = task;
    task.modelQueue = this;
    this.tasks += 1;
    this.workUs += task.workUs;
  }

  leave(task: TaskRecord): void {
    const { olderOfModel: older, newerOfModel: newer } = task;
    if (older !== null) older.newerOfModel = newer;
    else this.oldest = newer;
    if (newer !== null) newer.olderOfModel = older;
    else this.#newest = older;
    task.olderOfModel = null;
    task.newerOfModel = null;
    task.modelQueue = null;
    this.tasks -= 1;
    this.workUs -= task.workUs;
  }
}
