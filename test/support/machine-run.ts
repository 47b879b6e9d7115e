/** Drives a machine through a script in virtual time, as the simulation would: what is due inside comes first. */
import type { MonoUs } from '../../src/base/units.ts';
import type { Demand, Job, Machine } from '../../src/simulator/machines/machine.ts';
import { taskSpec } from './specs.ts';

export interface ScriptEntry {
  readonly at: MonoUs;
  readonly action:
    | {
        readonly kind: 'start';
        readonly id: number;
        readonly demand: Demand;
        readonly noise?: number;
        readonly model?: string;
      }
    | { readonly kind: 'abort'; readonly id: number }
    | { readonly kind: 'speed'; readonly factor: number }
    | { readonly kind: 'drop' };
}

export interface MachineRun {
  /** By job. */
  readonly firstBytes: ReadonlyMap<number, MonoUs>;
  readonly ends: ReadonlyMap<number, MonoUs>;
  readonly dropped: readonly number[];
  /** When nothing was due any more. */
  readonly quietAt: MonoUs;
  readonly advances: number;
}

/** In order of time; entries of one instant in their order. Throws when a job ends or begins twice. */
export function runMachine(machine: Machine, script: readonly ScriptEntry[]): MachineRun {
  const jobs = new Map<number, Job>();
  const firstBytes = new Map<number, MonoUs>();
  const ends = new Map<number, MonoUs>();
  const dropped: number[] = [];
  let now = 0;
  let advances = 0;
  const once = (record: Map<number, MonoUs>, job: Job): void => {
    if (record.has(job.task.id) || jobs.get(job.task.id) !== job)
      throw new Error(`Told twice: ${job.task.id}`);
    record.set(job.task.id, now);
  };
  const sink = { firstByte: (job: Job) => once(firstBytes, job), ended: (job: Job) => once(ends, job) };
  const advanceTo = (until: MonoUs): void => {
    while (machine.nextAt() <= until) {
      if (machine.nextAt() < now) throw new Error('The machine wants to be looked at in the past');
      now = machine.nextAt();
      machine.advance(now, sink);
      advances += 1;
    }
  };
  for (const { at, action } of [...script].sort((a, b) => a.at - b.at)) {
    advanceTo(at);
    now = at;
    if (action.kind === 'start') {
      const job = jobOf(action.id, action.demand, action.noise ?? 1);
      jobs.set(action.id, job);
      machine.start(job, action.model ?? 'm', at);
    } else if (action.kind === 'abort') {
      const job = jobs.get(action.id);
      if (job === undefined || ends.has(action.id)) continue;
      jobs.delete(action.id);
      machine.abort(job, at);
    } else if (action.kind === 'speed') machine.setSpeed(action.factor, at);
    else
      for (const job of machine.drop(at)) {
        jobs.delete(job.task.id);
        dropped.push(job.task.id);
      }
  }
  advanceTo(Number.MAX_SAFE_INTEGER);
  return { firstBytes, ends, dropped, quietAt: now, advances };
}

function jobOf(id: number, demand: Demand, noise: number): Job {
  return { task: taskSpec(id), demand, noise, attempts: 1, sentAt: 0, firstSentAt: 0 };
}
