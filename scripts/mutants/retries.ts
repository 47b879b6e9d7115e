/** Mutants of the rules about retries and about the time that a refusal tells; see `list.ts`. */
import { IDEMPOTENCY_MUTANTS } from './idempotency.ts';
import type { Mutant } from './mutant.ts';

const CORE = 'src/core';
const RETRY_SHED = `${CORE}/admission/retry-shed.test.ts`;
const RETRY_MARKS = `${CORE}/admission/retry-marks.test.ts`;

export const RETRY_MUTANTS: readonly Mutant[] = [
  {
    name: 'let-retries-wait-as-long-as-first-attempts',
    invariant: 0,
    file: `${CORE}/admission/retry-shed.ts`,
    original: "if (standing === 'repeat') return REPEAT_SHARE;",
    mutated: "if (standing === 'repeat') return 1;",
    killer: RETRY_SHED,
    titles: 'a repeated request > by the client’s own count',
  },
  {
    name: 'take-every-body-for-a-new-one',
    invariant: 0,
    file: `${CORE}/admission/retry-shed.ts`,
    original: "return verdict === 'early' || retryCount > 0 ?",
    mutated: 'return retryCount > 0 ?',
    killer: RETRY_SHED,
    titles: 'a repeated request > by its body',
  },
  {
    name: 'shed-retries-past-an-idle-node',
    invariant: 0,
    file: `${CORE}/scheduler/submit.ts`,
    original:
      "  const idle = idleNodeFor(state, lane, task);\n  if (idle !== null) return idle;\n  if (standing === 'repeat' && !isExempt) {",
    mutated:
      "  const idle = standing === 'repeat' ? null : idleNodeFor(state, lane, task);\n  if (idle !== null) return idle;\n  if (standing === 'repeat' && !isExempt) {",
    killer: RETRY_SHED,
    titles: 'a repeated request > takes an idle node',
  },
  {
    name: 'shed-retries-of-the-first-class',
    invariant: 0,
    file: `${CORE}/scheduler/submit.ts`,
    original: 'const isExempt = isOfFirstClass(task, state.config) || task.alternative >= 0;',
    mutated: 'const isExempt = task.alternative >= 0;',
    killer: RETRY_SHED,
    titles: 'a repeated request > of the first class',
  },
  {
    name: 'shed-retries-in-shadow',
    invariant: 0,
    file: `${CORE}/scheduler/submit.ts`,
    original: "    if (state.gates.refuses('retry-shed')) return 'shed';",
    mutated: "    state.gates.refuses('retry-shed');\n    return 'shed';",
    killer: RETRY_SHED,
    titles: 'a repeated request > is let in and counted in shadow',
  },
  {
    name: 'shed-retries-until-work-completes',
    invariant: 6,
    file: `${CORE}/scheduler/submit.ts`,
    original: 'if (waitUs <= share * limitUs) return null;',
    mutated:
      "if (waitUs <= share * limitUs && (standing !== 'repeat' || state.counts.served > 0)) return null;",
    killer: RETRY_SHED,
    titles: 'a repeated request > is let in again once',
  },
  {
    name: 'give-promised-places-away',
    invariant: 0,
    file: `${CORE}/admission/retry-shed.ts`,
    original: "return standing === 'first' && isPromised ? PROMISED_SHARE : 1;",
    mutated: "return standing === 'first' && isPromised ? 1 : 1;",
    killer: RETRY_SHED,
    titles: 'places that were promised > are kept',
  },
  {
    name: 'tell-all-who-are-refused-the-same-time',
    invariant: 0,
    file: `${CORE}/admission/retry-shed.ts`,
    original: 'laneFlow.promisedUntil = Math.max(laneFlow.promisedUntil, at) + takenUs;',
    mutated: 'laneFlow.promisedUntil = Math.max(laneFlow.promisedUntil, at + 0 * takenUs);',
    killer: RETRY_SHED,
    titles: 'places that were promised > follow each other',
  },
  {
    name: 'keep-places-for-who-got-a-lesser-answer',
    invariant: 0,
    file: `${CORE}/scheduler/retry-hint.ts`,
    original: "  task.isTold = gates.isWatching('retry-shed');\n",
    mutated:
      "  task.isTold = gates.isWatching('retry-shed');\n  keepPlace(state, task, { kind: 'rejected', reason: 'shed', hint: { retryable: true, afterUs: 5e6 } });\n",
    killer: RETRY_SHED,
    titles: 'places that were promised > are not kept for who was content',
  },
  {
    name: 'promise-for-ever-ahead',
    invariant: 4,
    file: `${CORE}/scheduler/retry-hint.ts`,
    original: ' || outcome.hint.afterUs > PROMISED_US_MAX) return;',
    mutated: ') return;',
    killer: RETRY_SHED,
    titles: 'places that were promised > lie a minute ahead',
  },
  {
    name: 'give-a-repeat-a-new-time',
    invariant: 0,
    file: `${CORE}/scheduler/retry-hint.ts`,
    original: 'if (toldUs > 0) return',
    mutated: 'if (toldUs > 1e12) return',
    killer: RETRY_SHED,
    titles: 'a repeated request > by its body',
  },
  {
    name: 'remember-who-was-refused-for-ever',
    invariant: 6,
    file: `${CORE}/admission/retry-marks.ts`,
    original: 'mark === undefined || mark.expiresAt <= now ? undefined : mark',
    mutated: 'mark === undefined ? undefined : mark',
    killer: RETRY_MARKS,
    titles: 'RetryMarks forget by themselves',
  },
  {
    name: 'remember-who-was-refused-without-bound',
    invariant: 4,
    file: `${CORE}/admission/retry-marks.ts`,
    original: 'if (this.#marks.size <= RETRY_MARKS_MAX) return;',
    mutated: 'if (this.#marks.size <= 1e9) return;',
    killer: RETRY_MARKS,
    titles: 'RetryMarks are bounded',
  },
  {
    name: 'keep-places-for-who-never-comes',
    invariant: 0,
    file: `${CORE}/admission/retry-marks.ts`,
    original: '      if (mark.early <= EARLY_MAX) this.#learn(0);\n',
    mutated: '',
    killer: RETRY_MARKS,
    titles: 'RetryMarks learn how many',
  },
  ...IDEMPOTENCY_MUTANTS,
];
