/**
 * A single-slot image server with a FIFO of its own, as real Stable Diffusion servers have.
 *
 * One task runs at a time; the next starts at the exact virtual end of the one before it. When a completion was
 * reported late because this process was busy, the next arrival is dated back by that lateness (at most
 * `LATENESS_CREDIT_MS`): an accelerator would have reported in time, and the emulator's own delay must not look like
 * a slower card.
 *
 * Invariants: at most one task runs; each task ends exactly once, by `finished` or by `cancel`; busy time is the sum
 * of virtual running times and never counts waiting.
 */
import type { DurationMs } from '../base/units.ts';
import { EARLY_MS, type EmulatorClock, type Timer } from './clock.ts';

const LATENESS_CREDIT_MS = 25;

export interface ImageTask {
  /** Wall time of the service, with speed and noise applied. */
  readonly serviceMs: DurationMs;
  /** Called in the turn of the timer; the arguments are wall times of this task. */
  readonly finished: (times: { readonly queuedMs: DurationMs; readonly serviceMs: DurationMs }) => void;
}

export interface ImageTicket {
  /** Frees the slot, or the place in the queue, at once. Returns how long the task had run; -1 when it had ended. */
  cancel(): DurationMs;
}

export interface ImageEngine {
  /** Undefined when the queue is at its bound. */
  submit(task: ImageTask): ImageTicket | undefined;
  readonly waiting: number;
  readonly running: number;
  /** Virtual time spent running, including the task under way. */
  busyMs(): DurationMs;
  /** Forgets every task without calling back: the process behind it died. */
  drop(): void;
}

interface Job {
  readonly task: ImageTask;
  readonly arrivedAt: DurationMs;
  startedAt: DurationMs;
  state: 'waiting' | 'running' | 'ended';
}

export function createImageEngine(clock: EmulatorClock, options: { readonly queueMax: number }): ImageEngine {
  let queue: Job[] = [];
  /** Index of the first job that has not been taken; cancelled jobs stay in place until passed. */
  let head = 0;
  let waiting = 0;
  let running: Job | undefined;
  let timer: Timer | undefined;
  let freeAt = Number.NEGATIVE_INFINITY;
  let lateMs = 0;
  let busyMs = 0;

  function start(job: Job, at: DurationMs): void {
    running = job;
    job.state = 'running';
    job.startedAt = at;
    arm(at + job.task.serviceMs);
  }

  function arm(endAt: DurationMs): void {
    timer = clock.after(endAt - clock.now(), () => {
      const now = clock.now();
      if (now < endAt - EARLY_MS) arm(endAt);
      else finish(endAt, now);
    });
  }

  function finish(endAt: DurationMs, now: DurationMs): void {
    const job = running as Job;
    job.state = 'ended';
    busyMs += endAt - job.startedAt;
    lateMs = Math.min(LATENESS_CREDIT_MS, Math.max(0, now - endAt));
    release(endAt);
    job.task.finished({
      queuedMs: Math.max(0, job.startedAt - job.arrivedAt),
      serviceMs: job.task.serviceMs,
    });
  }

  function release(at: DurationMs): void {
    running = undefined;
    timer = undefined;
    freeAt = at;
    const next = takeNext();
    if (next !== undefined) start(next, at);
  }

  function takeNext(): Job | undefined {
    while (head < queue.length) {
      const job = queue[head] as Job;
      head += 1;
      if (head > 512 && head * 2 > queue.length) {
        queue = queue.slice(head);
        head = 0;
      }
      if (job.state === 'waiting') {
        waiting -= 1;
        return job;
      }
    }
    queue = [];
    head = 0;
    return undefined;
  }

  function cancel(job: Job): DurationMs {
    if (job.state === 'ended') return -1;
    const wasRunning = job.state === 'running';
    job.state = 'ended';
    if (!wasRunning) {
      waiting -= 1;
      if (waiting === 0) {
        queue = [];
        head = 0;
      }
      return 0;
    }
    timer?.cancel();
    const now = Math.max(clock.now(), job.startedAt);
    busyMs += now - job.startedAt;
    lateMs = 0;
    release(now);
    return now - job.startedAt;
  }

  return {
    submit(task) {
      if (waiting >= options.queueMax) return undefined;
      const now = clock.now();
      const job: Job = { task, arrivedAt: now, startedAt: 0, state: 'waiting' };
      if (running === undefined) {
        start(job, Math.max(freeAt, now - lateMs));
        lateMs = 0;
      } else {
        queue.push(job);
        waiting += 1;
      }
      return { cancel: () => cancel(job) };
    },
    get waiting() {
      return waiting;
    },
    get running() {
      return running === undefined ? 0 : 1;
    },
    busyMs: () => busyMs + (running === undefined ? 0 : Math.max(0, clock.now() - running.startedAt)),
    drop() {
      timer?.cancel();
      for (const job of queue) job.state = 'ended';
      if (running !== undefined) running.state = 'ended';
      queue = [];
      head = 0;
      waiting = 0;
      running = undefined;
      timer = undefined;
      lateMs = 0;
    },
  };
}
