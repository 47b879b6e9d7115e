/** A failure that the product promises to rule out, and the removals that its test over real sockets must notice. */

export interface Removal {
  /** What is taken away, for people. */
  readonly what: string;
  readonly edits: readonly { readonly file: string; readonly original: string; readonly mutated: string }[];
  /** The beginning of the titles that must fail. */
  readonly titles: string;
}

export interface KnownCase {
  readonly name: string;
  /** Where it was reported, in other projects. */
  readonly reports: readonly string[];
  /** What happened there, and what happens here. */
  readonly symptom: string;
  readonly promise: string;
  /** The test file, under `test/integration`. */
  readonly test: string;
  /** Other tests of the same fault, by path. */
  readonly also?: readonly string[];
  readonly removals: readonly Removal[];
}

export type Edit = Removal['edits'][number];

export function edit(file: string, original: string, mutated: string): Edit {
  return { file, original, mutated };
}

export function removal(what: string, titles: string, edits: readonly Edit[]): Removal {
  return { what, titles, edits };
}
