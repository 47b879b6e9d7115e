/** `spillway ledgers`: the books that the scheduler of a running gateway keeps on itself; see docs/concepts/ledgers.md. */
import { AdminRefusal, askAdmin } from './admin-client.ts';
import { CliError } from './exit.ts';
import { duration, table, wrapped } from './output.ts';
import type { Environment } from './state.ts';
import { showing, type WatchOptions } from './terminal/showing.ts';

export interface PredictionError {
  readonly p50: number;
  readonly p95: number;
  readonly bias: number;
  readonly samples: number;
}

interface ClassRefusals {
  readonly class: string;
  readonly refused: number;
  readonly couldHaveServed: number;
  readonly couldNot: number;
  readonly pending: number;
  readonly unjudged: number;
  readonly byReason: Readonly<Record<string, number>>;
}

interface MissedChance {
  readonly id: string;
  readonly class: string;
  readonly reason: string;
  readonly node: string;
  readonly refusedAt: number;
  readonly couldStartAt: number;
  readonly couldBeDoneAt: number;
}

interface FailureRow {
  readonly failure: string;
  readonly status: number | null;
  readonly pattern: string;
  readonly count: number;
  readonly nodes: number;
  readonly node: string;
  readonly onNode: number;
}

/** As `GET /spillway/v1/ledgers` tells them. */
export interface LedgersPage {
  readonly refusals: {
    readonly classes: readonly ClassRefusals[];
    readonly examples: readonly MissedChance[];
  };
  readonly eta: {
    readonly classes: readonly {
      readonly class: string;
      readonly admission: PredictionError | null;
      readonly dispatch: PredictionError | null;
    }[];
    readonly hints: { readonly kept: number; readonly broken: number };
  };
  readonly work: {
    readonly usefulSeconds: number;
    readonly wastedSeconds: number;
    readonly wastedRatio: number;
    readonly wastedByCause: Readonly<Record<string, number>>;
  };
  readonly failures: readonly FailureRow[];
}

const NO_LEDGERS =
  'This gateway tells no ledgers (404 at /spillway/v1/ledgers): it is of an older version than this command';
const NOT_FOUND = 404;
/** Examples shown; all are in `--json`. */
const EXAMPLES_SHOWN_MAX = 5;
const FAILURES_SHOWN_MAX = 10;

export async function ledgers(options: WatchOptions, environment: Environment): Promise<number> {
  return showing(options, async () => {
    const page = await askLedgers(options, environment);
    return { document: page, text: (width) => ledgersText(page, width) };
  });
}

async function askLedgers(options: WatchOptions, environment: Environment): Promise<LedgersPage> {
  try {
    return (await askAdmin('/ledgers', options, environment)) as LedgersPage;
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === NOT_FOUND) throw new CliError(NO_LEDGERS);
    throw error;
  }
}

/** What was refused and could have been served, how far predictions were off, work that nobody got, and why attempts failed. */
export function ledgersText({ refusals, eta, work, failures }: LedgersPage, width: number): string {
  return [
    ...refusalLines(refusals, width),
    '',
    ...errorLines(eta, width),
    '',
    ...workLines(work, width),
    '',
    ...failureLines(failures, width),
  ].join('\n');
}

function refusalLines({ classes, examples }: LedgersPage['refusals'], width: number): readonly string[] {
  const refused = classes.reduce((sum, row) => sum + row.refused, 0);
  const couldHave = classes.reduce((sum, row) => sum + row.couldHaveServed, 0);
  const head = `${refused} refused for want of capacity, ${couldHave} of them could have been served`;
  if (refused === 0) return wrapped(head, width);
  const rows = classes.map((row) => [
    row.class,
    ...[row.refused, row.couldHaveServed, row.couldNot, row.pending, row.unjudged].map(String),
    reasonsOf(row.byReason),
  ]);
  const titles = ['CLASS', 'REFUSED', 'COULD HAVE', 'COULD NOT', 'PENDING', 'UNJUDGED', 'REASONS'];
  return [
    ...wrapped(head, width),
    table(titles, rows, { width, shrinks: [0, 6] }),
    ...exampleLines(examples, width),
  ];
}

/** The most frequent first. */
function reasonsOf(byReason: Readonly<Record<string, number>>): string {
  const reasons = Object.entries(byReason).toSorted(([, a], [, b]) => b - a);
  return reasons.map(([reason, count]) => `${reason} ${count}`).join(', ');
}

function exampleLines(examples: readonly MissedChance[], width: number): readonly string[] {
  if (examples.length === 0) return [];
  const rows = examples
    .slice(0, EXAMPLES_SHOWN_MAX)
    .map((one) => [
      one.id,
      one.class,
      one.reason,
      one.node,
      duration(Math.max(0, one.couldStartAt - one.refusedAt)),
      duration(Math.max(0, one.couldBeDoneAt - one.refusedAt)),
    ]);
  const titles = ['ID', 'CLASS', 'REASON', 'NODE', 'START AFTER', 'DONE AFTER'];
  return [
    '',
    ...wrapped('The newest that could have been served, where, and how long after the refusal:', width),
    table(titles, rows, { width, shrinks: [0, 1, 3] }),
  ];
}

function errorLines({ classes, hints }: LedgersPage['eta'], width: number): readonly string[] {
  const rows = classes.flatMap((row) => [
    ...errorRow(row.class, 'admission', row.admission),
    ...errorRow(row.class, 'dispatch', row.dispatch),
  ]);
  const kept = `Clients that came back when told: ${hints.kept} let in, ${hints.broken} refused again`;
  if (rows.length === 0) return wrapped(`No prediction has come to its end yet. ${kept}`, width);
  const titles = ['CLASS', 'PREDICTION', 'OFF BY, P50', 'P95', 'BIAS', 'SAMPLES'];
  return [table(titles, rows, { width, shrinks: [0] }), ...wrapped(kept, width)];
}

function errorRow(
  className: string,
  prediction: string,
  error: PredictionError | null,
): readonly (readonly string[])[] {
  if (error === null) return [];
  const { p50, p95, bias, samples } = error;
  return [[className, prediction, percent(p50), percent(p95), `x ${bias.toFixed(2)}`, String(samples)]];
}

function workLines(
  { usefulSeconds, wastedSeconds, wastedRatio, wastedByCause }: LedgersPage['work'],
  width: number,
): readonly string[] {
  const causes = Object.entries(wastedByCause)
    .filter(([, seconds]) => seconds > 0)
    .toSorted(([, a], [, b]) => b - a)
    .map(([cause, seconds]) => `${cause} ${seconds.toFixed(1)} s`);
  const why = causes.length === 0 ? '' : `: ${causes.join(', ')}`;
  const text = `Work of the reference accelerator: ${usefulSeconds.toFixed(1)} s useful, ${wastedSeconds.toFixed(1)} s (${percent(wastedRatio)}) for nobody${why}`;
  return wrapped(text, width);
}

function failureLines(failures: LedgersPage['failures'], width: number): readonly string[] {
  const failed = failures.reduce((sum, { count }) => sum + count, 0);
  if (failed === 0) return wrapped('No attempt has failed', width);
  const rows = failures
    .slice(0, FAILURES_SHOWN_MAX)
    .map(({ failure, status, pattern, count, nodes, node, onNode }) => [
      String(count),
      status === null ? failure : `${failure} ${status}`,
      nodes === 1 ? node : `${node} ${onNode}, ${nodes - 1} more`,
      pattern === '' ? '-' : pattern,
    ]);
  const head = `${failed} attempts failed; what nodes and connections said, * for what varies:`;
  return [
    ...wrapped(head, width),
    table(['FAILED', 'KIND', 'NODES', 'SAID'], rows, { width, shrinks: [2, 3] }),
  ];
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(ratio < 0.1 ? 1 : 0)} %`;
}
