/** A scheduler whose books go wrong on demand: the one fault that nobody can bring in from outside a gateway. */
import { createScheduler, type Scheduler } from '../../src/core/scheduler/index.ts';
import { losing } from './signal-cases.ts';

export interface LosingScheduler {
  /** One in so many of what is served is missing in the books; 0: none. */
  oneIn: number;
  readonly create: typeof createScheduler;
}

export function losingScheduler(): LosingScheduler {
  const losses: LosingScheduler = {
    oneIn: 0,
    create(config): Scheduler {
      const scheduler = createScheduler(config);
      return {
        ...scheduler,
        sample(now) {
          const sample = scheduler.sample(now);
          return losses.oneIn === 0 ? sample : losing(sample, losses.oneIn);
        },
      };
    },
  };
  return losses;
}
