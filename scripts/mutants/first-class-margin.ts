/** Mutants of the margin of the first class; see `list.ts`. */
import type { Mutant } from './mutant.ts';

const CORE = 'src/core';
const KILLER = `${CORE}/scheduler/first-class-margin.test.ts`;

function mutant(name: string, [original, mutated]: readonly [string, string], titles: string): Mutant {
  const file = `${CORE}/scheduler/in-time.ts`;
  return { name, invariant: 0, file, original, mutated, killer: KILLER, titles };
}

export const FIRST_CLASS_MARGIN_MUTANTS: readonly Mutant[] = [
  mutant(
    'refuse-the-first-class-for-its-margin',
    ['return Math.max(1, Math.min(margin, halfUs / bestUs));', 'return margin;'],
    'the margin gives way to a task of the first class',
  ),
  mutant(
    'spare-the-first-class-every-margin',
    ['return Math.max(1, Math.min(margin, halfUs / bestUs));', 'return 1;'],
    'the margin of the first class stays whole',
  ),
  mutant(
    'begin-what-cannot-end-in-time',
    ['return Math.max(1, Math.min(margin,', 'return Math.max(0, Math.min(margin,'],
    'the margin gives way down to the bare prediction',
  ),
  mutant(
    'spare-every-class-the-margin',
    ['  if (!isOfFirstClass(task, state.config)) return margin;\n  const halfUs', '  const halfUs'],
    'the margin gives way to a task of the first class',
  ),
];
