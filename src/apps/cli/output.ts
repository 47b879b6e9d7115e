/** What commands write. Standard output carries the answer, standard error everything else. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function warn(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** One document, and nothing else on standard output. */
export function sayJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** Text from elsewhere, for a terminal: control characters could move the cursor or recolour what follows. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '?');
}

/** Columns of the terminal; what is piped on is made for 80, and `--json` has everything. */
export function terminalWidth(): number {
  return process.stdout.columns ?? LINE_WIDTH;
}

/** Words on lines of at most this width; a longer word has a line of its own. */
export function wrapped(text: string, width: number): readonly string[] {
  const rows: string[] = [];
  let row = '';
  for (const word of printable(text).split(' ')) {
    if (row !== '' && row.length + 1 + word.length > width) {
      rows.push(row);
      row = word;
    } else row = row === '' ? word : `${row} ${word}`;
  }
  rows.push(row);
  return rows;
}

export const LINE_WIDTH = 80;
/** A shortened cell keeps as much as tells most names apart. */
const CELL_WIDTH_MIN = 10;
const GAP = '  ';

export interface TableFit {
  readonly width: number;
  /** Columns whose cells may be shortened. The last column is left out when that is not enough. */
  readonly shrinks: readonly number[];
}

/** Rows under a head, columns aligned with two spaces between, within a width if one is given. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], fit?: TableFit): string {
  const lines = [head, ...rows.map((row) => row.map(printable))];
  const wanted = head.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const widths = fit === undefined ? wanted : fitted(wanted, fit);
  return lines
    .map((line) =>
      widths
        .map((width, column) => shortened(line[column] ?? '', width).padEnd(width))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/** Takes from the widest column that may shrink, one character at a time; then drops the last column, and begins anew. */
function fitted(wanted: readonly number[], { width, shrinks }: TableFit): readonly number[] {
  const widths = [...wanted];
  const total = (): number => widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);
  while (total() > width) {
    const widest = shrinks
      .filter((column) => (widths[column] ?? 0) > CELL_WIDTH_MIN)
      .sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))[0];
    if (widest !== undefined) widths[widest] = (widths[widest] ?? 0) - 1;
    else if (widths.length > 1) return fitted(wanted.slice(0, -1), { width, shrinks });
    else break;
  }
  return widths;
}

function shortened(cell: string, width: number): string {
  return cell.length <= width ? cell : `${cell.slice(0, Math.max(0, width - 1))}…`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`;
}
