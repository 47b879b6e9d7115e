/** Mutants of preemption; see `list.ts`. */
import type { Mutant } from './mutant.ts';

const CORE = 'src/core';
const PREEMPT = `${CORE}/scheduler/preempt.ts`;
const KILLER = `${CORE}/scheduler/preempt.test.ts`;

function mutant(name: string, [original, mutated]: readonly [string, string], titles: string): Mutant {
  return { name, invariant: 0, file: PREEMPT, original, mutated, killer: KILLER, titles };
}

const TOO_LATE = 'a task of the first class that would come too late';

export const PREEMPTION_MUTANTS: readonly Mutant[] = [
  mutant(
    'preempt-for-whoever-is-in-time',
    [' || !isTooLate(state, lane, task)) return;', ') return;'],
    `${TOO_LATE} > waits for a node`,
  ),
  mutant(
    'forget-who-waits-before-the-hasty',
    ['busyStartAt + aheadUs', 'busyStartAt + 0 * aheadUs'],
    `${TOO_LATE} > counts who waits`,
  ),
  mutant(
    'let-the-large-jump-the-queue-of-their-class',
    [' || isLateByItsOwnClass(state, lane, { task, aheadUs }))', ')'],
    `${TOO_LATE} > takes no place`,
  ),
  mutant('keep-the-most-urgent-from-a-place', ['!isMostUrgent &&\n    ', ''], `${TOO_LATE} > takes no place`),
  mutant(
    'take-places-for-a-flow-that-asks-for-too-much',
    ['isFlowOverloaded(state, lane, task) || ', ''],
    `${TOO_LATE} > takes no place`,
  ),
  mutant(
    'abort-the-oldest-first',
    ['one.decidedAt > other.decidedAt', 'one.decidedAt < other.decidedAt'],
    `${TOO_LATE} > asks the lowest class first`,
  ),
  mutant(
    'abort-the-higher-class-first',
    ['return classes > 0;', 'return classes < 0;'],
    `${TOO_LATE} > asks the lowest class first`,
  ),
  mutant(
    'take-the-place-of-an-answer',
    ['other.hasFirstByte || other.isAnswering || ', ''],
    `${TOO_LATE} > leaves alone who`,
  ),
  mutant(
    'abort-what-a-breaker-waits-for',
    ['  if (breakers?.has(other.model) === true) return false;\n', ''],
    `${TOO_LATE} > leaves alone whose end`,
  ),
  mutant(
    'abort-where-it-frees-nothing',
    [' || node.spec.canAbort === false', ''],
    `${TOO_LATE} > leaves alone what runs`,
  ),
  mutant('ask-the-same-task-twice', [' || other.wasAsked', ''], `${TOO_LATE} > asks each task once`),
  mutant(
    'ask-a-node-for-two-places-at-once',
    [' || node.isGivingWay', ''],
    `${TOO_LATE} > asks a node for one place at a time`,
  ),
  mutant(
    'take-one-place-after-the-other',
    ['  task.hasTakenPlace = true;\n', ''],
    `${TOO_LATE} > takes one place at most`,
  ),
  mutant(
    'throw-work-away-without-a-budget',
    [
      '  if (!state.preemptions.budget.withdraw(lostUs(state, victim), state.now, state.config.preemption)) return;\n',
      '',
    ],
    'the budget',
  ),
  mutant(
    'preempt-in-shadow',
    ["  if (!state.gates.refuses('preemption')) return;\n", "  state.gates.refuses('preemption');\n"],
    'the gate',
  ),
  mutant(
    'leave-the-place-to-the-lane',
    ['  refreshNode(state, node);\n  takePlace(state, heir, node);\n', '  refreshNode(state, node);\n'],
    'the place > is taken when',
  ),
  mutant(
    'leave-a-late-place-to-the-lane',
    ['counts.late += 1;\n  takePlace(state, heir, node);', 'counts.late += 1;'],
    'the place > is taken when',
  ),
  {
    ...mutant(
      'count-the-aborted-attempt',
      ['return this.gaveWay ? this.attempts - 1 : this.attempts;', 'return this.attempts;'],
      'the place > costs the low one nothing',
    ),
    file: `${CORE}/queue/task-record.ts`,
  },
  {
    ...mutant(
      'charge-for-what-was-thrown-away',
      ['        correct(task, 0);\n        giveWay', '        giveWay'],
      'the place > costs the low one nothing',
    ),
    file: `${CORE}/scheduler/attempts.ts`,
  },
  {
    ...mutant(
      'make-the-one-that-gave-its-place-the-newest',
      ['task.gaveWay ? this.#placeOf(task) : this.#newest', 'this.#newest'],
      'the place > leaves an older one older',
    ),
    file: `${CORE}/queue/arrivals.ts`,
  },
  {
    ...mutant(
      'take-the-place-that-is-kept-for-another',
      ['return hasClaim || kept === 0 || this.free + 1 > kept;', 'return true;'],
      'in a node group',
    ),
    file: `${CORE}/placement/bulkhead.ts`,
  },
];
