/** Mutants of the ledgers; see `list.ts`. */
import type { Mutant } from './mutant.ts';

const CORE = 'src/core';
const REFUSALS = {
  invariant: 0,
  file: `${CORE}/ledgers/refusals.ts`,
  killer: `${CORE}/ledgers/refusals.test.ts`,
} as const;
const BOOK = { invariant: 0, killer: `${CORE}/scheduler/book.test.ts` } as const;

export const LEDGER_MUTANTS: readonly Mutant[] = [
  {
    ...REFUSALS,
    name: 'use-free-time-twice',
    original: 'node.spareFrom = startAt + serviceUs / node.spareSlots;',
    mutated: '',
    titles: 'a refusal > uses a stretch of free time once',
  },
  {
    ...REFUSALS,
    name: 'count-what-would-have-come-too-late',
    original: ' || startAt + boundedUs > record.deadlineAt) return;',
    mutated: ') return;',
    titles: 'a refusal > could not where its deadline is shorter',
  },
  {
    ...REFUSALS,
    name: 'count-what-would-still-be-running',
    original: 'if (startAt + serviceUs > now || ',
    mutated: 'if (',
    titles: 'a refusal > could not where the only node was taken',
  },
  {
    ...REFUSALS,
    name: 'use-free-time-from-before-the-refusal',
    original: 'Math.max(node.spareFrom, at)',
    mutated: 'node.spareFrom',
    titles: 'a refusal > could have been served by a node that idled',
  },
  {
    ...REFUSALS,
    name: 'remember-refusals-without-bound',
    invariant: 4,
    original: 'this.#pending < PENDING_MAX && ',
    mutated: '',
    titles: 'the ledger > never keeps more records',
  },
  {
    ...REFUSALS,
    name: 'forget-refusals-that-left-no-record',
    original: 'copies: book.unrecorded, until',
    mutated: 'copies: 1, until',
    titles: 'the ledger > holds its bound',
  },
  {
    ...REFUSALS,
    name: 'judge-refusals-of-lanes-that-are-gone',
    file: `${CORE}/placement/fleet.ts`,
    original: '    this.refusals.forgetLanes();\n',
    mutated: '',
    titles: 'a refusal > is left unjudged',
  },
  {
    ...REFUSALS,
    name: 'count-places-that-are-kept-for-others',
    original: ' || node.group?.isKeptFrom(model, tenant) === true',
    mutated: '',
    titles: 'a refusal > could not by a place that is kept',
  },
  {
    ...BOOK,
    name: 'leave-out-predictions-that-nobody-lived-to-see',
    file: `${CORE}/scheduler/attempts.ts`,
    original: '  bookNotDone(state, task);\n',
    mutated: '',
    titles: 'predictions > that a deadline cut short',
  },
  {
    ...BOOK,
    name: 'call-late-work-useful',
    file: `${CORE}/ledgers/waste.ts`,
    original: "return isSettled ? 'late' : null;",
    mutated: 'return null;',
    titles: 'work > is told apart by why nobody got it',
  },
  {
    ...BOOK,
    name: 'count-more-waste-than-there-was-work',
    file: `${CORE}/scheduler/book.ts`,
    original: 'Math.min(task.workUs, doneUs)',
    mutated: 'doneUs',
    titles: 'work > of a failed attempt',
  },
];
