/** The replacement of a mutant in a source text, and the page that lists them all. */
import type { Mutant } from './mutant.ts';

/** Throws when the original is not there exactly once: a mutant that is not applied would count as killed by nobody. */
export function mutate(source: string, mutant: Mutant): string {
  const found = source.split(mutant.original).length - 1;
  if (found !== 1) {
    throw new Error(
      `Mutant ${mutant.name}: its original must be in ${mutant.file} exactly once, it is there ${found} times`,
    );
  }
  return source.replace(mutant.original, () => mutant.mutated);
}

export function referenceOf(mutants: readonly Mutant[]): string {
  const rows = mutants.map(
    ({ name, invariant, file, killer, titles }) =>
      `| ${name} | ${invariant === 0 ? '–' : invariant} | \`${file}\` | \`${killer}\`: ${titles} |`,
  );
  return [
    '# Mutants of the scheduler core',
    '',
    'Faults that somebody could introduce in good faith. Each is applied to a copy of the source, and the named tests',
    'must fail; `node scripts/mutants.ts` does it for all, `--only NAME` for one. The list is in',
    '`scripts/mutants/list.ts`; this page is written from it by `node scripts/mutants.ts --write-reference`, and a test',
    'compares the two.',
    '',
    '| mutant | invariant | changes | killed by |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}
