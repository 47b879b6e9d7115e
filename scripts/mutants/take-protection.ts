/** Taking a protection out of a source text, and the page for readers that lists the known failure modes. */
import type { KnownCase, Removal } from './known-case.ts';

/** Throws when an original is not there exactly once: a removal that does nothing would count as unnoticed. */
export function take(source: string, file: string, removal: Removal): string {
  let text = source;
  for (const { original, mutated } of removal.edits.filter((edit) => edit.file === file)) {
    const found = text.split(original).length - 1;
    if (found !== 1)
      throw new Error(
        `Cannot take away '${removal.what}': its original must be in ${file} exactly once, it is there ${found} times`,
      );
    text = text.replace(original, () => mutated);
  }
  return text;
}

const HEAD: readonly string[] = [
  '# Known failure modes of gateways, and the tests that rule them out',
  '',
  'Other gateways and schedulers have had most of these faults in public; the others are what a protection that this one',
  'promises would leave behind. Each has a test here that runs the gateway over real sockets, against emulated or scripted',
  'nodes; where time or memory of the process counts, against a process of its own. `npm test` runs them all.',
  '',
  'A test proves little unless it fails without what it protects. So for each there is a list of protections, and',
  '`node scripts/case-mutants.ts` takes one after the other away in a copy of the source and demands that the named test',
  'fails (`--only black-hole` for one). Before, the same tests have to pass as the source is, and one that only ran out of',
  'its time has noticed nothing. The list is in `scripts/mutants/cases.ts`; this page is written from it by',
  '`node scripts/case-mutants.ts --write-reference`, and a test compares the two. All of them were tried and noticed.',
  '',
];

export function caseReferenceOf(cases: readonly KnownCase[]): string {
  const sections = cases.flatMap((one) => [
    `## ${one.name}`,
    '',
    one.reports.length === 0
      ? one.symptom
      : `${one.symptom} Reported publicly as ${one.reports.join(' and ')}.`,
    '',
    `**Here:** ${one.promise}`,
    '',
    `Test: \`test/integration/${one.test}\`${(one.also ?? []).map((path) => `, and \`${path}\``).join('')}`,
    '',
    '| protection taken away | in | fails |',
    '| --- | --- | --- |',
    ...one.removals.map(({ what, edits, titles }) => {
      const files = [...new Set(edits.map(({ file }) => `\`${file}\``))].join(', ');
      return `| ${what} | ${files} | ${titles} … |`;
    }),
    '',
  ]);
  return [...HEAD, ...sections].join('\n');
}
