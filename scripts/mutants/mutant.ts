/** One fault: where it is put, and who must notice. */
export interface Mutant {
  readonly name: string;
  /** Number of the invariant in ARCHITECTURE.md that it breaks; 0 for another promise of the design. */
  readonly invariant: number;
  readonly file: string;
  readonly original: string;
  readonly mutated: string;
  /** The test file that must fail, and how the titles that are run there begin: groups and test, joined by ` > `. */
  readonly killer: string;
  readonly titles: string;
}
