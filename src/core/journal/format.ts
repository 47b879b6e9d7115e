/**
 * The journal of a scheduler: everything that happened to it, in order, and what it decided. Feeding the events to a
 * scheduler of the same configuration gives the same decisions: that is what makes it a proof, and a post-mortem.
 *
 * Text, one JSON value a line. The first line of a segment is its head, an object; the others are arrays that begin with a
 * letter, small because a busy gateway writes a dozen for each request:
 *
 *   n  number, name               a name that is a number from here on (classes, tenants, models, nodes)
 *   s  at, task …                 a task was submitted
 *   c  at, task                   its client left
 *   t  at, task                   its attempt was sent
 *   b  at, task                   the first byte came
 *   r  at, task, result           its attempt ended
 *   k  at                         nothing but time
 *   e  at, event                  any other event, as it is
 *   l  model, shape, usage        what a node told of a request's size was learned
 *   f  task, fingerprint          the scheduler asked for it; salted, so that it tells nothing of the body
 *   d  kind, task, node, what     what the event before it led to
 *   h  at, events, decisions, hash, accounts      a sample
 *   q  at                         the journal was closed in order
 *
 * Instants (`at`) are microseconds on the gateway's own clock, told as the time since the one before; the head tells the first.
 * Deadlines are told from the instant of their line. Prompts, keys and addresses are in none of them.
 */
import type { MonoUs, WallMs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { TaskSpec } from '../request/task.ts';
import type { NodeMemory, NodeSpec } from '../scheduler/events.ts';
import type { Accounts } from '../scheduler/views.ts';

export const JOURNAL_FORMAT = 1;

/** Names that become numbers; those beyond are written out each time. */
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
