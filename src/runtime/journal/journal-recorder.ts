/**
 * Records what happens to the scheduler, and what it decided, into a journal store. Lines gather in memory and leave in
 * batches; the store writes them behind. Where it cannot keep up, lines are dropped and counted, and nobody waits.
 *
 * A journal is exact from its start up to its first gap. So a segment after a gap, or one whose predecessors may be removed,
 * begins with a state from which a scheduler can go on as well as it can.
 */
import { hash, randomBytes } from 'node:crypto';
import type { Bytes, DurationMs, MonoUs, TaskId } from '../../base/units.ts';
import type { SchedulerConfig } from '../../core/config/types.ts';
import {
  type CodeVersion,
  type Decision,
  DecisionSink,
  JOURNAL_FORMAT,
  JournalEncoder,
  type JournalState,
} from '../../core/journal/index.ts';
import type { RequestShape, Usage } from '../../core/request/task.ts';
import type { Scheduler } from '../../core/scheduler/contract.ts';
import type { NodeMemory, SchedulerEvent } from '../../core/scheduler/events.ts';
import type { JournalStore } from '../../ports/journal-store.ts';
import type { CancelTimer, RuntimeClock } from '../clock.ts';

/** A batch leaves at this size, or after this time. */
const BATCH_BYTES = 64 * 1024;
const BATCH_MS: DurationMs = 250;
/** A store that failed is tried again after this time. */
const RETRY_MS: DurationMs = 5_000;
/** A sample after so many events: a replay tells between which two it began to differ. */
const SAMPLE_EVENTS = 10_000;
/** Whether a batch or a sample is due is looked up after so many events: each look reads what lies elsewhere. */
const LOOK_EVENTS = 32;
/** Nodes and waiting tasks in the head of a later segment: it is made in one turn. */
export const STATE_NODES_MAX = 2_000;
export const STATE_TASKS_MAX = 2_000;
const SALTED_CHARS = 16;

export interface JournalOptions {
  readonly store: JournalStore;
  readonly run: string;
  readonly code: CodeVersion;
  readonly segmentBytesMax: Bytes;
}

export interface JournalStatus {
  readonly events: number;
  readonly decisions: number;
  readonly segments: number;
  readonly bytesWritten: Bytes;
  /** Lines that are not in the journal, since the start. */
  readonly dropped: number;
  readonly isRecording: boolean;
}

/** A class, since every event of the gateway passes it. */
export class JournalRecorder extends DecisionSink {
  readonly #options: JournalOptions;
  readonly #scheduler: Scheduler;
  readonly #clock: RuntimeClock;
  readonly #encoder = new JournalEncoder();
  readonly #salt = randomBytes(16).toString('base64');
  #config: SchedulerConfig;
  /** Of the last event. */
  #at: MonoUs = 0;
  #events = 0;
  #decisions = 0;
  #lookAfter = 0;
  #sampleAfter = SAMPLE_EVENTS;
  #segment = 0;
  #segmentBytes = 0;
  #dropped = 0;
  #isRecording = false;
  #isClosed = false;
  #cancelTimer: CancelTimer | undefined;

  constructor(
    options: JournalOptions,
    scheduler: Scheduler,
    start: { clock: RuntimeClock; config: SchedulerConfig },
  ) {
    super();
    this.#options = options;
    this.#scheduler = scheduler;
    this.#clock = start.clock;
    this.#config = start.config;
    this.#begin();
  }

  status(): JournalStatus {
    const { segments, bytesWritten, linesLost } = this.#options.store.counters();
    return {
      events: this.#events,
      decisions: this.#decisions,
      segments,
      bytesWritten,
      dropped: this.#dropped + linesLost,
      isRecording: this.#isRecording,
    };
  }

  /** Before it is applied: what ends the process is in the journal too. */
  event(event: SchedulerEvent, now: MonoUs): void {
    if (this.#events >= this.#lookAfter) this.#look();
    if (this.#cancelTimer === undefined) this.#arm();
    this.#at = now;
    this.#events += 1;
    if (!this.#isRecording || !this.#encoder.step(event, now)) this.#other(event, now);
  }

  learn(model: string, shape: RequestShape, usage: Usage): void {
    if (!this.#isRecording) this.#dropped += 1;
    else this.#encoder.learn(model, shape, usage);
  }

  /** The scheduler asked for the fingerprint of a task's body. */
  fingerprint(taskId: TaskId, fingerprint: string): void {
    if (this.#isRecording) this.#encoder.fingerprint(taskId, this.#saltOf(fingerprint));
  }

  protected decide(decision: Decision): void {
    this.#decisions += 1;
    if (!this.#isRecording) this.#dropped += 1;
    else this.#encoder.decision(decision);
  }

  /** Resolves when everything that was recorded is written. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelTimer?.();
    const now = Math.max(this.#at, this.#clock.nowUs());
    if (this.#isRecording) {
      this.#sample();
      this.#encoder.close(now);
      this.#flush();
    }
    this.#isRecording = false;
    await this.#options.store.close();
  }

  /** What is no step of a request, and all while nothing is recorded. */
  #other(event: SchedulerEvent, now: MonoUs): void {
    if (event.kind === 'config') this.#config = event.config;
    if (!this.#isRecording) this.#dropped += 1;
    else this.#encoder.other(this.#salted(event), now);
  }

  /** Between events, so that samples and heads tell of whole ones. */
  #look(): void {
    this.#lookAfter = this.#events + LOOK_EVENTS;
    if (this.#events >= this.#sampleAfter) this.#sample();
    if (this.#encoder.bytes >= BATCH_BYTES) this.#flush();
  }

  #sample(): void {
    this.#sampleAfter = this.#events + SAMPLE_EVENTS;
    if (!this.#isRecording) return;
    this.#encoder.sample({
      at: this.#at,
      events: this.#events,
      decisions: this.#decisions,
      accounts: this.#scheduler.accounts(),
    });
  }

  #arm(): void {
    this.#cancelTimer ??= this.#isClosed
      ? undefined
      : this.#clock.after(this.#isRecording ? BATCH_MS : RETRY_MS, () => this.#fire());
  }

  #fire(): void {
    this.#cancelTimer = undefined;
    if (this.#isRecording) this.#flush();
    else if (!this.#isClosed && this.#options.store.nextSegment()) this.#begin();
  }

  #flush(): void {
    const { text, lines } = this.#encoder.take();
    if (lines === 0) return;
    if (!this.#options.store.append(text, lines)) {
      this.#dropped += lines;
      this.#isRecording = false;
      return;
    }
    this.#segmentBytes += text.length;
    if (this.#segmentBytes >= this.#options.segmentBytesMax && this.#options.store.nextSegment())
      this.#begin();
  }

  /** Between two events: the state of its head is that of all that was recorded before. */
  #begin(): void {
    this.#segment += 1;
    const isFirst = this.#segment === 1;
    if (isFirst && !this.#options.store.nextSegment()) return;
    this.#isRecording = true;
    const at = isFirst ? this.#clock.nowUs() : this.#at;
    this.#encoder.head({
      journal: 'spillway',
      format: JOURNAL_FORMAT,
      code: this.#options.code,
      run: this.#options.run,
      segment: this.#segment,
      wallMs: this.#clock.wallMs(),
      at,
      config: this.#config,
      before: {
        events: this.#events,
        decisions: this.#decisions,
        hash: this.#encoder.digest(),
        dropped: this.status().dropped,
      },
      ...(isFirst ? {} : { state: this.#state(at) }),
    });
    // A head that is larger than a segment must not end it.
    this.#segmentBytes = -this.#encoder.bytes;
    this.#arm();
  }

  #state(at: MonoUs): JournalState {
    const nodes = this.#scheduler.nodes(at);
    const waiting = this.#scheduler.waiting(STATE_TASKS_MAX);
    const accounts = this.#scheduler.accounts();
    return {
      accounts,
      nodes: nodes.slice(0, STATE_NODES_MAX).map(({ id, spec }) => {
        const memory = this.#scheduler.nodeMemory(id, at);
        return { node: spec, memory: memory === undefined ? null : this.#saltedMemory(memory) };
      }),
      waiting,
      omitted: {
        nodes: Math.max(0, nodes.length - STATE_NODES_MAX),
        tasks: Math.max(0, accounts.queued - waiting.length),
      },
    };
  }

  /** Fingerprints are of bodies: only whether two are equal is the journal's business. */
  #salted(event: SchedulerEvent): SchedulerEvent {
    if (event.kind !== 'node-registered' || event.memory?.strikes === undefined) return event;
    return { ...event, memory: this.#saltedMemory(event.memory) };
  }

  #saltedMemory(memory: NodeMemory): NodeMemory {
    if (memory.strikes === undefined) return memory;
    const strikes = memory.strikes.map((row) => ({ ...row, fingerprint: this.#saltOf(row.fingerprint) }));
    return { ...memory, strikes };
  }

  #saltOf(fingerprint: string): string {
    return fingerprint === '' ? '' : hash('sha256', this.#salt + fingerprint, 'hex').slice(0, SALTED_CHARS);
  }
}
