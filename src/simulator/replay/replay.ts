/**
 * Replays a journal: feeds what happened to a scheduler of the same configuration, and compares what it decides with what
 * was decided. Equal events must give equal decisions; the first one that differs is told.
 *
 * A journal is exact from its start to its first gap. Where the beginning is missing (its segments were removed, or entries
 * were dropped) a replay goes on from the state in the next head as well as it can, and says that it is not exact: then
 * placements are counted that went to the same node, and nothing is proved.
 */
import type { MonoUs, NodeId, TaskId } from '../../base/units.ts';
import {
  DECISION,
  DECISION_NAMES,
  type Decision,
  DecisionDigest,
  DecisionSink,
  JournalDecoder,
  type JournalEntry,
  type JournalHead,
  type JournalSample,
  textWord,
} from '../../core/journal/index.ts';
import type { Scheduler } from '../../core/scheduler/contract.ts';
import type { SchedulerEvent } from '../../core/scheduler/events.ts';
import { createScheduler } from '../../core/scheduler/index.ts';

/** A line of a journal, or what a reader found wrong between lines. */
export interface ReplayLine {
  readonly kind: 'line' | 'sealed' | 'damaged' | 'unsealed';
  readonly text?: string;
  readonly file: string;
  readonly number: number;
}

export interface ReplayReport {
  /**
   * `equal`: every decision is the same. `differs`: one is not. `damaged`: the journal is not what was written.
   * `inexact`: nothing differed, but a part could only be followed, not proved. `empty`: there is nothing to replay.
   */
  readonly verdict: 'equal' | 'differs' | 'damaged' | 'inexact' | 'empty';
  /** Whether the whole journal was proved. */
  readonly exact: boolean;
  /** Whether it was closed in order, or ends where its writer was cut off. */
  readonly isWhole: boolean;
  readonly head?: Pick<JournalHead, 'code' | 'run' | 'segment' | 'wallMs' | 'at'>;
  readonly events: number;
  readonly decisions: number;
  /** Of the decisions that the replay came to. */
  readonly hash: string;
  readonly spanMs: number;
  readonly difference?: Difference;
  readonly problem?: { readonly file: string; readonly line: number; readonly why: string };
  readonly followed?: { readonly because: string; readonly placements: number; readonly sameNode: number };
}

export interface Difference {
  readonly file: string;
  readonly line: number;
  /** Number of the event, from 1. */
  readonly event: number;
  readonly at: MonoUs;
  /** Since the journal's start. */
  readonly afterMs: number;
  readonly taskId: TaskId;
  readonly expected: string;
  readonly got: string;
}

export async function replayJournal(
  lines: AsyncIterable<ReplayLine> | Iterable<ReplayLine>,
): Promise<ReplayReport> {
  const replay = new Replay();
  for await (const line of lines) if (!replay.take(line)) break;
  return replay.report();
}

/** An event with what the journal says it led to. */
interface Group {
  readonly event: SchedulerEvent;
  readonly at: MonoUs;
  readonly line: ReplayLine;
  readonly expected: Decision[];
}

class Collector extends DecisionSink {
  readonly decisions: Decision[] = [];
  readonly digest = new DecisionDigest();

  begin(at: MonoUs): void {
    this.decisions.length = 0;
    this.digest.at = at;
  }

  protected decide(decision: Decision): void {
    this.digest.add(decision, textWord(decision.nodeId), textWord(decision.what));
    this.decisions.push(decision);
  }
}

class Replay {
  readonly #fingerprints = new Map<TaskId, string>();
  readonly #decoder = new JournalDecoder((taskId) => this.#fingerprints.get(taskId) ?? '');
  readonly #sink = new Collector();
  readonly #running = new Map<TaskId, NodeId>();
  #scheduler: Scheduler | undefined;
  #first: JournalHead | undefined;
  #group: Group | undefined;
  #events = 0;
  #lastAt: MonoUs = 0;
  #difference: Difference | undefined;
  #problem: ReplayReport['problem'];
  #isWhole = false;
  /** Why it is followed only; '' while it is exact. */
  #because = '';
  #placements = 0;
  #sameNode = 0;
  #unreadable: ReplayReport['problem'];

  /** False when nothing more is worth reading. */
  take(line: ReplayLine): boolean {
    if (line.kind === 'damaged') return this.#fail(line, 'its lines are not those that were written');
    if (line.kind === 'sealed') return this.#difference === undefined;
    // A difference is told; whether its lines are what was written is known at their seal.
    if (line.kind === 'unsealed' || this.#difference !== undefined) return true;
    // Something follows a line that cannot be read: it was not cut off there.
    if (this.#unreadable !== undefined) {
      this.#problem = this.#unreadable;
      return false;
    }
    const entry = this.#decoder.decode(line.text ?? '');
    if (this.#first === undefined && entry.kind !== 'head' && entry.kind !== 'unreadable')
      return this.#fail(line, 'it does not begin with the head of a journal');
    return this.#enter(entry, line) || this.#difference !== undefined;
  }

  report(): ReplayReport {
    if (this.#problem === undefined && this.#difference === undefined) this.#settle(false);
    const problem = this.#problem ?? this.#unreadable;
    const isWhole = this.#isWhole && problem === undefined;
    const verdict = this.#verdict();
    const { code, run, segment, wallMs, at } = this.#first ?? {};
    return {
      verdict,
      exact: verdict === 'equal',
      isWhole,
      ...(this.#first === undefined ? {} : { head: { code, run, segment, wallMs, at } as JournalHead }),
      events: this.#events,
      decisions: this.#sink.digest.count,
      hash: this.#sink.digest.digest(),
      spanMs: Math.max(0, this.#lastAt - (at ?? 0)) / 1_000,
      ...(this.#difference === undefined ? {} : { difference: this.#difference }),
      ...(problem === undefined ? {} : { problem }),
      ...(this.#because === ''
        ? {}
        : {
            followed: {
              because: this.#because,
              placements: this.#placements,
              sameNode: this.#sameNode,
            },
          }),
    };
  }

  #verdict(): ReplayReport['verdict'] {
    if (this.#problem !== undefined) return 'damaged';
    if (this.#difference !== undefined) return 'differs';
    if (this.#first === undefined) return 'empty';
    return this.#because === '' ? 'equal' : 'inexact';
  }

  #enter(entry: JournalEntry, line: ReplayLine): boolean {
    switch (entry.kind) {
      case 'name':
        return true;
      case 'decision':
        this.#group?.expected.push(entry.decision);
        return true;
      case 'fingerprint':
        this.#fingerprints.set(entry.taskId, entry.salted);
        return true;
      case 'unreadable':
        // The last line of a journal whose writer was killed; an error if more comes.
        this.#unreadable = { file: line.file, line: line.number, why: entry.why };
        return true;
      case 'event':
        if (!this.#settle(true)) return false;
        this.#group = { event: entry.event, at: entry.at, line, expected: [] };
        return true;
      case 'learn':
        if (!this.#settle(true)) return false;
        this.#scheduler?.learn(entry.model, entry.shape, entry.usage);
        return true;
      case 'sample':
        return this.#settle(true) && this.#compareSample(entry.sample, line);
      case 'head':
        return this.#settle(true) && this.#begin(entry.head);
      case 'end':
        this.#isWhole = this.#settle(true);
        return this.#isWhole;
    }
  }

  #begin(head: JournalHead): boolean {
    this.#isWhole = false;
    const isNext =
      this.#first !== undefined && head.run === this.#first.run && head.before.events === this.#events;
    const isWhole = isNext && head.before.dropped === 0 && head.before.hash === this.#sink.digest.digest();
    if (isWhole && this.#because === '') return true;
    if (this.#first === undefined) {
      this.#first = head;
      this.#lastAt = head.at;
      if (head.segment > 1) this.#because = 'the beginning of the journal is gone';
    } else if (this.#because === '') this.#because = `entries are missing before segment ${head.segment}`;
    else if (isNext) return true;
    this.#events = head.before.events;
    this.#running.clear();
    this.#scheduler = createScheduler(head.config);
    for (const { node, memory } of head.state?.nodes ?? [])
      this.#apply({ kind: 'node-registered', node, ...(memory === null ? {} : { memory }) }, head.at);
    for (const task of head.state?.waiting ?? [])
      this.#apply({ kind: 'submit', task: { ...task, fingerprint: '' } }, head.at);
    return true;
  }

  /** Applies the event that was read, now that all of it is known. `isClosed`: its decisions are complete. */
  #settle(isClosed: boolean): boolean {
    const group = this.#group;
    this.#group = undefined;
    if (group === undefined) return true;
    this.#events += 1;
    this.#lastAt = group.at;
    if (this.#because !== '') {
      this.#follow(group);
      return true;
    }
    const got = this.#applyRecorded(group);
    if (got === undefined) return false;
    const count = isClosed ? Math.max(got.length, group.expected.length) : group.expected.length;
    for (let at = 0; at < count; at++) {
      if (!isSame(group.expected[at], got[at])) return this.#differ(group, group.expected[at], got[at]);
    }
    return true;
  }

  /** Undefined where the scheduler cannot take it: what was recorded never made it fail. */
  #applyRecorded({ event, at, line }: Group): readonly Decision[] | undefined {
    try {
      return this.#apply(event, at);
    } catch (thrown) {
      this.#fail(
        line,
        `the scheduler cannot take it: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
      );
      return undefined;
    }
  }

  #apply(event: SchedulerEvent, at: MonoUs): readonly Decision[] {
    this.#sink.begin(at);
    this.#scheduler?.apply(event, at, this.#sink);
    for (const { code, taskId, nodeId } of this.#sink.decisions) {
      if (code === DECISION.assign) this.#running.set(taskId, nodeId);
      else if (code === DECISION.outcome) this.#fingerprints.delete(taskId);
    }
    if (event.kind === 'attempt-ended') this.#running.delete(event.taskId);
    return this.#sink.decisions;
  }

  /** What is recorded may be about tasks that the replay knows nothing of, or has elsewhere. */
  #follow({ event, at, expected }: Group): void {
    const isAttempt =
      event.kind === 'attempt-sent' || event.kind === 'attempt-first-byte' || event.kind === 'attempt-ended';
    if (!isAttempt || this.#running.has(event.taskId)) this.#apply(event, at);
    for (const { code, taskId, nodeId } of expected) {
      if (code === DECISION.assign) {
        this.#placements += 1;
        if (this.#running.get(taskId) === nodeId) this.#sameNode += 1;
      }
      if (code === DECISION.outcome) this.#release(taskId, at);
    }
  }

  /** The recorded request is over; a replay that still runs it gives its place back. */
  #release(taskId: TaskId, at: MonoUs): void {
    this.#apply({ kind: 'cancel', taskId }, at);
    if (this.#running.has(taskId))
      this.#apply({ kind: 'attempt-ended', taskId, result: { kind: 'aborted' } }, at);
  }

  #compareSample(sample: JournalSample, line: ReplayLine): boolean {
    if (this.#because !== '') return true;
    const isSameSample =
      sample.events === this.#events &&
      sample.hash === this.#sink.digest.digest() &&
      JSON.stringify(sample.accounts) === JSON.stringify(orderedLike(sample.accounts, this.#accounts()));
    return isSameSample || this.#fail(line, 'a sample of the decisions so far does not fit what precedes it');
  }

  #accounts(): object {
    return this.#scheduler?.accounts() ?? {};
  }

  #differ(group: Group, expected: Decision | undefined, got: Decision | undefined): false {
    this.#difference = {
      file: group.line.file,
      line: group.line.number,
      event: this.#events,
      at: group.at,
      afterMs: (group.at - (this.#first?.at ?? 0)) / 1_000,
      taskId: (expected ?? got)?.taskId ?? 0,
      expected: told(expected),
      got: told(got),
    };
    return false;
  }

  #fail({ file, number }: ReplayLine, why: string): false {
    this.#problem = { file, line: number, why };
    return false;
  }
}

function orderedLike(order: object, values: object): object {
  return Object.fromEntries(Object.keys(order).map((key) => [key, (values as Record<string, unknown>)[key]]));
}

function isSame(a: Decision | undefined, b: Decision | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const isSameTask = a.code === b.code && a.taskId === b.taskId && a.nodeId === b.nodeId;
  return isSameTask && a.what === b.what && a.number === b.number;
}

function told(decision: Decision | undefined): string {
  if (decision === undefined) return 'nothing';
  const { code, nodeId, what, number } = decision;
  return [DECISION_NAMES[code], nodeId, what, number === 0 ? '' : number]
    .filter((part) => part !== '')
    .join(' ');
}
