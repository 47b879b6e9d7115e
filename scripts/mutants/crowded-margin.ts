/** Mutants of the margin where not everybody can be in time; see `list.ts`. */
import type { Mutant } from './mutant.ts';

const CORE = 'src/core';
const KILLER = `${CORE}/scheduler/crowded-margin.test.ts`;
const IS_UNCROWDED = '  if (state.now + laneDrainUs(lane) <= task.deadlineAt) return marginOf(state);\n';

function mutant(name: string, [original, mutated]: readonly [string, string], titles: string): Mutant {
  const file = `${CORE}/scheduler/in-time.ts`;
  return { name, invariant: 0, file, original, mutated, killer: KILLER, titles };
}

export const CROWDED_MARGIN_MUTANTS: readonly Mutant[] = [
  mutant(
    'be-sure-where-nobody-loses',
    [IS_UNCROWDED, ''],
    'a task that is in time more often than not takes the node where nobody loses',
  ),
  mutant(
    'never-be-sure',
    [IS_UNCROWDED, '  if (state.now >= 0) return marginOf(state);\n'],
    'where not all can be in time, the node goes to one',
  ),
  mutant(
    'be-as-sure-of-the-first-class',
    ['? state.margin.usualWithin(marginMin, max)', '? state.margin.sureWithin(marginMin, max)'],
    'a task of the first class need not be as sure',
  ),
  {
    ...mutant(
      'be-less-sure-of-who-booked-another-node',
      [
        'mayRunOn(state, task, node) && meetsWithMargin(state, lane, { task, node });',
        'mayRunOn(state, task, node) && meetsDeadline(state, task, node, state.now);',
      ],
      'who waits for another node is asked the same',
    ),
    file: `${CORE}/scheduler/dispatch.ts`,
  },
  {
    ...mutant(
      'be-less-sure-behind-a-long-queue',
      [
        '  return isSurelyFor(state, task, node) && meetsWithMargin(state, lane, { task, node });\n',
        '  return true;\n',
      ],
      'where not all can be in time, the node goes to one',
    ),
    file: `${CORE}/scheduler/dispatch.ts`,
  },
];
