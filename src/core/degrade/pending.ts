/** A task that met a bad end for which a lesser answer may stand in. It is neither queued nor running meanwhile. */
import type { TaskRecord } from '../queue/task-record.ts';
import type { BadEnd } from './alternative.ts';

export interface PendingEnd {
  readonly task: TaskRecord;
  /** What happens to it without an alternative; null for an arrival that the overload ladder asks to begin with one. */
  readonly end: BadEnd | null;
}
