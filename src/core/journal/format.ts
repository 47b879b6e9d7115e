/**
 * The journal of a scheduler: everything that happened to it, in order, and what it decided. Feeding the events to a
 * scheduler of the same configuration gives the same decisions: that is what makes it a proof, and a post-mortem.
 *
 * Text, one entry a line. The first line of a segment is its head, JSON; the others are a letter, numbers, and JSON for what is no
 * number (line.ts), short because a busy gateway writes ten for each request:
 *
 *   n  number, name               a name that is a number from here on (classes, tenants, models, nodes, reasons)
 *   s  at, task …                 a task was submitted
 *   c  at, task                   its client left
 *   t  at, task                   its attempt was sent
 *   b  at, task                   the first byte came
 *   r  at, task, result           its attempt ended
 *   k  at                         nothing but time
 *   e  at, event                  any other event, as it is
 *   l  model, shape, usage        what a node told of a request's size was learned
 *   f  task, fingerprint          the scheduler asked for it; salted, so that it tells nothing of the body
 *   d  kind, task, node, what, number      what the event before it led to
 *   h  at, sample                 how many events and decisions there were, their hash and the accounts
 *   q  at                         the journal was closed in order
 *
 * Instants (`at`) are microseconds on the gateway's own clock, told since the one before; the head tells the first. Deadlines are
 * told since the instant of their line, tasks since the task of the line before. Prompts, keys and addresses are in none of them.
 */
import type { MonoUs, WallMs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { TaskSpec } from '../request/task.ts';
import type { NodeMemory, NodeSpec } from '../scheduler/events.ts';
import type { Accounts } from '../scheduler/views.ts';

/** 1 was lines of JSON; nothing reads it any more. */
export const JOURNAL_FORMAT = 2;

/** First characters of lines, as their codes. */
export const LETTER = {
  name: 110,
  submit: 115,
  cancel: 99,
  sent: 116,
  firstByte: 98,
  ended: 114,
  tick: 107,
  other: 101,
  learn: 108,
  fingerprint: 102,
  decision: 100,
  sample: 104,
  close: 113,
} as const;

/** Flags of a submitted task; those from `needs` on are of what its line ends with: `[needs, alternatives, prefix]`, 0 for none. */
export const FLAG = { deadlineWished: 1, stream: 2, needs: 4, alternatives: 8, prefix: 16 } as const;

/** Forms of an attempt's end; of `other` the result follows as JSON. */
export const FORM = { ok: 0, declined: 1, aborted: 2, other: 3 } as const;

/** Which numbers of a usage follow, and whether the silence of an attempt does. */
export const TOLD = { usage: 1, promptTokens: 2, outputTokens: 4, silence: 8 } as const;

/** Names that are numbers at once; one more, and all are told anew. */
export const JOURNAL_NAMES_MAX = 100_000;

export interface CodeVersion {
  readonly version: string;
  /** Of the checkout that it runs from; '' where there is none. */
  readonly commit: string;
}

export interface JournalHead {
  readonly journal: 'spillway';
  readonly format: number;
  readonly code: CodeVersion;
  /** Names the process; segments of one process have the same. */
  readonly run: string;
  /** Counts from 1. A segment above the first one begins with a `state`. */
  readonly segment: number;
  readonly wallMs: WallMs;
  readonly at: MonoUs;
  readonly config: SchedulerConfig;
  readonly before: JournalTotals;
  readonly state?: JournalState;
}

/** What was recorded before this segment. */
export interface JournalTotals {
  readonly events: number;
  readonly decisions: number;
  readonly hash: string;
  /** Entries that could not be written, since the start. */
  readonly dropped: number;
}

/** From what a scheduler is built that goes on as well as it can where the beginning is missing. Not the whole state. */
export interface JournalState {
  readonly accounts: Accounts;
  readonly nodes: readonly { readonly node: NodeSpec; readonly memory: NodeMemory | null }[];
  /** Tasks that wait, in order of arrival. */
  readonly waiting: readonly TaskSpec[];
  /** Nodes and tasks that were left out at the bounds. */
  readonly omitted: { readonly nodes: number; readonly tasks: number };
}

export interface JournalSample {
  readonly at: MonoUs;
  readonly events: number;
  readonly decisions: number;
  readonly hash: string;
  readonly accounts: Accounts;
}

/** Accounts in the order in which a sample holds them. */
export const ACCOUNT_NAMES: readonly (keyof Accounts)[] = [
  'arrived',
  'served',
  'degraded',
  'rejected',
  'evicted',
  'failed',
  'cancelled',
  'queued',
  'running',
];
