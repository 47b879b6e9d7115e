/** Names of segments: `journal-RUN-NUMBER.txt`, so that their order by name is their order in time. */

const PATTERN = /^journal-(.+)-(\d{6,})\.txt$/;

export function segmentName(run: string, number: number): string {
  return `journal-${run}-${String(number).padStart(6, '0')}.txt`;
}

/** Segments among the names of a folder, the oldest first. */
export function segmentsIn(names: readonly string[]): readonly string[] {
  return names.filter((name) => PATTERN.test(name)).sort();
}

/** The run that a segment is of; undefined for another file. */
export function runOf(name: string): string | undefined {
  return PATTERN.exec(name)?.[1];
}
