/** Takes a sample of the scheduler once a second and shows it to the detectors. Owns its timer. */
import type { DurationMs } from '../base/units.ts';
import type { Scheduler } from '../core/scheduler/contract.ts';
import { type OutsideSample, Signals, type SignalsView } from '../core/signals/index.ts';
import type { CancelTimer, RuntimeClock } from './clock.ts';

const SAMPLE_MS: DurationMs = 1_000;

export interface SignalsWatchOptions {
  readonly scheduler: Pick<Scheduler, 'sample'>;
  readonly clock: RuntimeClock;
  /** What the scheduler cannot know. */
  readonly outside: () => OutsideSample;
}

export interface SignalsWatch {
  view(): SignalsView;
  stop(): void;
}

export function watchSignals({ scheduler, clock, outside }: SignalsWatchOptions): SignalsWatch {
  const signals = new Signals();
  let cancel: CancelTimer | undefined;
  const look = (): void => {
    signals.observe({ ...scheduler.sample(clock.nowUs()), outside: outside() });
    cancel = clock.after(SAMPLE_MS, look);
  };
  cancel = clock.after(SAMPLE_MS, look);
  return {
    view: () => signals.view(),
    stop() {
      cancel?.();
      cancel = undefined;
    },
  };
}
