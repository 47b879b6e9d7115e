/** Something that answers clients in virtual time by a script, for tests of clients. */
import type { DurationUs, MonoUs, TaskId } from '../../src/base/units.ts';
import { EventQueue } from '../../src/simulator/event-queue.ts';
import type { Clients, ClientSink, Request } from '../../src/simulator/clients/clients.ts';
import type { JobEnd } from '../../src/simulator/observer.ts';

export interface ScriptedAnswer {
  readonly end: JobEnd;
  /** 0: within the submit, as refusals come. */
  readonly afterUs: DurationUs;
  readonly firstByteUs?: DurationUs;
}

export interface ScriptedRun {
  readonly requests: (Request & { readonly at: MonoUs })[];
  readonly cancels: { readonly taskId: TaskId; readonly at: MonoUs }[];
}

/** Runs until nothing is due any more or `until`. An undefined answer never comes; a cancelled try ends at once. */
export function answerByScript(
  clients: Clients,
  until: MonoUs,
  script: (request: Request, at: MonoUs) => ScriptedAnswer | undefined,
): ScriptedRun {
  const events = new EventQueue();
  const open: Set<TaskId> = new Set();
  const run: ScriptedRun = { requests: [], cancels: [] };
  let now: MonoUs = 0;
  const end = (taskId: TaskId, how: JobEnd): void => {
    if (open.delete(taskId)) clients.outcome(taskId, how, now);
  };
  const sink: ClientSink = {
    submit(request) {
      const { id } = request.task;
      run.requests.push({ ...request, at: now });
      open.add(id);
      const answer = script(request, now);
      if (answer === undefined) return;
      const { firstByteUs } = answer;
      if (firstByteUs !== undefined)
        events.push(now + firstByteUs, () => open.has(id) && clients.firstByte?.(id, now));
      if (answer.afterUs === 0) end(id, answer.end);
      else events.push(now + answer.afterUs, () => end(id, answer.end));
    },
    cancel(taskId) {
      run.cancels.push({ taskId, at: now });
      end(taskId, { kind: 'cancelled' });
    },
  };
  for (;;) {
    const next = Math.min(events.nextAt(), clients.nextAt());
    if (next > until) return run;
    now = next;
    if (events.nextAt() <= now) events.pop()?.();
    else clients.advance(now, sink);
  }
}

export const SERVED: JobEnd = { kind: 'served' };

/** A refusal whose hint tells to come back after this time; undefined: that it cannot help. */
export function refusal(afterUs: DurationUs | undefined): JobEnd {
  const hint = { retryable: afterUs !== undefined, afterUs: afterUs ?? 0 };
  return { kind: 'rejected', reason: 'shed', hint };
}
