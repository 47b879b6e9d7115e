/** Takes a sample of the scheduler once a second, or as configured, and shows it to the detectors. Owns its timer. */
import type { DurationMs } from '../base/units.ts';
import type { Scheduler } from '../core/scheduler/contract.ts';
import { type OutsideSample, Signals, type SignalsView } from '../core/signals/index.ts';
import type { CancelTimer, RuntimeClock } from './clock.ts';

const MS_PER_S = 1_000;

export interface SignalsWatchOptions {
  readonly scheduler: Pick<Scheduler, 'sample'>;
  readonly clock: RuntimeClock;
  readonly sampleMs: DurationMs;
  /** What the scheduler cannot know. */
  readonly outside: () => OutsideSample;
}

export interface SignalsWatch {
  view(): SignalsView;
  stop(): void;
}

export function watchSignals({ scheduler, clock, sampleMs, outside }: SignalsWatchOptions): SignalsWatch {
  const signals = new Signals(sampleMs / MS_PER_S);
  let cancel: CancelTimer | undefined;
  const look = (): void => {
    signals.observe({ ...scheduler.sample(clock.nowUs()), outside: outside() });
    cancel = clock.after(sampleMs, look);
  };
  cancel = clock.after(sampleMs, look);
  return {
    view: () => signals.view(),
    stop() {
      cancel?.();
      cancel = undefined;
    },
  };
}
