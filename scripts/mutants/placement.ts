/** Faults in what is sent where; the form is told in `list.ts`. */
import type { Mutant } from './mutant.ts';

const CORE = 'src/core';
const PLACEMENT = `${CORE}/placement/placement.test.ts`;
const FEASIBILITY = `${CORE}/admission/feasibility.test.ts`;

export const PLACEMENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'explore-with-whatever-comes',
    invariant: 0,
    file: `${CORE}/scheduler/dispatch.ts`,
    original: '    if (task.workUs > pool.typicalWorkUs * EXPLORING_WORK_MAX) continue;\n',
    mutated: '',
    killer: PLACEMENT,
    titles: 'exploration > spends small tasks alone',
  },
  {
    name: 'explore-below-typical-work-alone',
    invariant: 0,
    file: `${CORE}/scheduler/dispatch.ts`,
    original: 'const EXPLORING_WORK_MAX = 1.1;',
    mutated: 'const EXPLORING_WORK_MAX = 1;',
    killer: PLACEMENT,
    titles: 'exploration > gives an idle slow node',
  },
  {
    name: 'let-a-gate-that-is-off-place-tasks',
    invariant: 0,
    file: `${CORE}/scheduler/submit.ts`,
    original: 'return isAtStake ? idle : null;',
    mutated: 'return idle;',
    killer: FEASIBILITY,
    titles: 'the gate > sends nothing',
  },
];
