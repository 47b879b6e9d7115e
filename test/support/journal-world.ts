/**
 * A scheduler that is fuzzed twice at once: plain and checked, and recorded into a journal while somebody watches it and
 * looks at every view. Both must decide alike.
 */
import { hash } from 'node:crypto';
import type { SchedulerConfig } from '../../src/core/config/types.ts';
import {
  type Decision,
  DecisionSink,
  JOURNAL_FORMAT,
  JournalEncoder,
  type JournalHead,
} from '../../src/core/journal/index.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { Scheduler } from '../../src/core/scheduler/contract.ts';
import type { SchedulerEvent } from '../../src/core/scheduler/events.ts';
import { createScheduler } from '../../src/core/scheduler/index.ts';
import type { DecisionWatch } from '../../src/core/scheduler/watch.ts';
import { CheckedScheduler } from './checked-scheduler.ts';

export class JournalWorld extends CheckedScheduler {
  readonly recorded: Scheduler;
  readonly encoder: JournalEncoder = new JournalEncoder();
  /** Placements and waits that the watch was told of. */
  readonly told: string[] = [];
  events = 0;
  decisions = 0;
  readonly #sink: DecisionSink;

  constructor(config: SchedulerConfig, head: Partial<JournalHead> = {}) {
    super(config);
    this.recorded = createScheduler(config);
    this.recorded.watch(this.#watch());
    this.#sink = new Writer(this);
    this.begin(config, head);
  }

  /** Begins a segment. */
  begin(config: SchedulerConfig, head: Partial<JournalHead>): void {
    const { events, decisions } = this;
    this.encoder.head({
      journal: 'spillway',
      format: JOURNAL_FORMAT,
      code: { version: 'test', commit: '' },
      run: 'test',
      segment: 1,
      wallMs: 0,
      at: this.now,
      config,
      before: { events, decisions, hash: this.encoder.digest(), dropped: 0 },
      ...head,
    });
  }

  override apply(event: SchedulerEvent): void {
    super.apply(event);
    this.events += 1;
    if (!this.encoder.step(event, this.now)) this.encoder.other(event, this.now);
    const told = event.kind === 'submit' ? { ...event, task: withAsked(event.task, this.encoder) } : event;
    this.recorded.apply(told, this.now, this.#sink);
    this.#look();
  }

  lines(): readonly {
    readonly kind: 'line';
    readonly text: string;
    readonly file: string;
    readonly number: number;
  }[] {
    return Buffer.from(this.encoder.take().text)
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((text, index) => ({ kind: 'line', text, file: 'test', number: index + 1 }));
  }

  /** Whoever looks changes nothing. */
  #look(): void {
    const { recorded, now } = this;
    recorded.queue(now);
    recorded.nodes(now);
    recorded.limits(now);
    recorded.limitsOf('a', now);
    recorded.ladder(now);
    recorded.retryBudget(now);
    recorded.dump(now);
    recorded.estimate('never-seen', NO_SHAPE);
    for (const task of recorded.waiting(5)) recorded.explain(task.id, now);
    for (const node of recorded.nodes(now)) recorded.nodeMemory(node.id, now);
  }

  #watch(): DecisionWatch {
    return {
      placed: (taskId, nodeId, ranking) => {
        const ranked = ranking.nodes.slice(0, ranking.size).map((node) => node?.spec.id);
        const times = [...ranking.doneUs.slice(0, ranking.size)];
        this.told.push(`placed ${taskId} ${nodeId} of ${ranked.join(',')} ${times.join(',')}`);
      },
      queued: (taskId) => void this.told.push(`queued ${taskId}`),
      ladderStage() {},
    };
  }
}

const NO_SHAPE = {
  promptBytes: 0,
  outputTokensMax: 0,
  images: 0,
  steps: 0,
  pixelsPerImage: 0,
  statedWorkUs: 0,
};

class Writer extends DecisionSink {
  readonly #world: JournalWorld;

  constructor(world: JournalWorld) {
    super();
    this.#world = world;
  }

  protected decide(decision: Decision): void {
    this.#world.decisions += 1;
    this.#world.encoder.decision(decision);
  }
}

/** As the gateway does: the fingerprint is recorded when it is asked for, and salted. */
function withAsked(task: TaskSpec, encoder: JournalEncoder): TaskSpec {
  const { fingerprint, ...rest } = task;
  return {
    ...rest,
    get fingerprint() {
      encoder.fingerprint(task.id, fingerprint === '' ? '' : hash('sha256', fingerprint, 'hex').slice(0, 16));
      return fingerprint;
    },
  };
}
