/** What the loop tells, to whoever records: the ring of decisions in memory, and the journal where one is kept. */
import type { MonoUs, TaskId } from '../../base/units.ts';
import type { RequestShape, Usage } from '../../core/request/task.ts';
import type { Scheduler } from '../../core/scheduler/contract.ts';
import type { SchedulerEvent } from '../../core/scheduler/events.ts';
import type { EffectBuffer } from '../effect-buffer.ts';
import type { LoopRecorder } from '../event-loop.ts';
import { DecisionRing } from './decision-ring.ts';
import type { JournalRecorder } from './journal-recorder.ts';

export class Recording implements LoopRecorder {
  readonly ring: DecisionRing = new DecisionRing();
  readonly journal: JournalRecorder | undefined;

  constructor(scheduler: Scheduler, journal: JournalRecorder | undefined) {
    this.journal = journal;
    scheduler.watch(this.ring);
  }

  event(event: SchedulerEvent, now: MonoUs): void {
    this.ring.event(event, now);
    this.journal?.event(event, now);
  }

  effects(effects: EffectBuffer): void {
    effects.show(this.ring);
    this.ring.settle();
    if (this.journal !== undefined) effects.show(this.journal);
  }

  learn(model: string, shape: RequestShape, usage: Usage): void {
    this.journal?.learn(model, shape, usage);
  }

  fingerprint(taskId: TaskId, fingerprint: string): void {
    this.journal?.fingerprint(taskId, fingerprint);
  }
}
