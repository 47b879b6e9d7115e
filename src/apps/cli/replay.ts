/** `spillway replay JOURNAL`: whether the scheduler decides again what it decided. */
import { journalFiles, readJournal } from '../../adapters/journal-file/index.ts';
import { POLICIES } from '../../simulator/policies/registry.ts';
import { readRun, type RecordedRun } from '../../simulator/replay/recorded-run.ts';
import { type WhatIfRow, whatIf } from '../../simulator/replay/what-if.ts';
import { type ReplayReport, replayJournal } from '../../simulator/replay/replay.ts';
import { codeVersion } from '../gateway/open-journal.ts';
import { CliError, DONE, FAILED, USAGE } from './exit.ts';
import { duration, say, sayJson, table, terminalWidth } from './output.ts';
import { sayOvertaken } from './overtaken.ts';
import { readRuns } from './runs-file.ts';

export interface ReplayOptions {
  /** Plays the recorded arrivals under these as well. */
  readonly policy?: readonly string[];
  /** Tells who waited past its deadline and who was served meanwhile; with a file of runs, of theirs too. */
  readonly overtaken?: boolean;
  readonly runs?: string;
  readonly json?: boolean;
}

/** Exit code: 0 where every decision is the same, or could only be followed; 1 where one differs or the journal is damaged. */
export async function replay(path: string, options: ReplayOptions): Promise<number> {
  const files = filesOf(path);
  if (files.length === 0) throw new CliError(`Expected a journal, but there is no segment in ${path}`, USAGE);
  if (options.policy !== undefined) return compare(files, options.policy, options.json === true);
  if (options.overtaken === true || options.runs !== undefined) {
    const runs = options.runs === undefined ? [] : readRuns(options.runs);
    sayOvertaken(await runOf(files), runs, options.json === true);
    return DONE;
  }
  const report = await replayJournal(readJournal(files));
  if (options.json === true) sayJson({ ...report, replayedBy: codeVersion(), files: files.length });
  else for (const line of replayLines(report)) say(line);
  return report.verdict === 'equal' || report.verdict === 'inexact' ? DONE : FAILED;
}

/** The recorded policy is among them: how far it is from what was recorded is how far to trust the others. */
async function compare(files: readonly string[], asked: readonly string[], json: boolean): Promise<number> {
  const unknown = asked.find((name) => !Object.hasOwn(POLICIES, name));
  if (unknown !== undefined)
    throw new CliError(`Could not find the policy ${unknown}; see spillway simulate --list`, USAGE);
  const run = await runOf(files);
  const rows = whatIf(run, [...new Set([run.config.policy, ...asked])]);
  if (json) sayJson({ spanMs: run.spanUs / 1_000, nodes: run.nodes.length, rows });
  else {
    say(`${run.requests.length} requests on ${run.nodes.length} nodes over ${duration(run.spanUs / 1_000)}`);
    say(table(HEAD, rows.map(rowOf), { width: terminalWidth(), shrinks: [0] }));
    say('Nodes do not fail in it, and whoever was refused comes back when he did in fact.');
  }
  return DONE;
}

async function runOf(files: readonly string[]): Promise<RecordedRun> {
  const run = await readRun(readJournal(files));
  if (run !== undefined) return run;
  throw new CliError('Expected a journal from its start: what began before it is not known', USAGE);
}

const HEAD = [
  'POLICY',
  'CLASS',
  'REQUESTS',
  'IN TIME',
  'ANSWERED',
  'REFUSED',
  'FAILED',
  'LEFT',
  'P50',
  'P95',
];

function rowOf(row: WhatIfRow): string[] {
  const { requests, inTime, answered, refused, failed, cancelled, responseMs } = row;
  const share = `${((100 * inTime) / requests).toFixed(1)} %`;
  const counts = [answered, refused, failed, cancelled].map(String);
  return [
    row.policy,
    row.className,
    String(requests),
    share,
    ...counts,
    duration(responseMs.p50),
    duration(responseMs.p95),
  ];
}

function filesOf(path: string): readonly string[] {
  try {
    return journalFiles(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(`Could not read the journal ${path}: ${reason}`, USAGE);
  }
}

export function replayLines(report: ReplayReport): readonly string[] {
  const { head, events, decisions, hash, spanMs } = report;
  const code = head === undefined ? '' : `, written by ${head.code.version}${shortCommit(head.code.commit)}`;
  return [
    VERDICTS[report.verdict],
    `${events} events and ${decisions} decisions over ${duration(spanMs)}${code}`,
    `decision hash ${hash}`,
    ...(report.difference === undefined ? [] : differenceLines(report.difference)),
    ...(report.problem === undefined
      ? []
      : [`${report.problem.file}, line ${report.problem.line}: ${report.problem.why}`]),
    ...(report.followed === undefined ? [] : followedLines(report.followed)),
    ...(report.isWhole || (report.verdict !== 'equal' && report.verdict !== 'inexact')
      ? []
      : [
          'The journal was not closed in order: its writer still runs, or was cut off. Replayed up to there.',
        ]),
  ];
}

const VERDICTS: Readonly<Record<ReplayReport['verdict'], string>> = {
  equal: 'EQUAL: the scheduler decides again what it decided.',
  differs: 'DIFFERS: a decision is not the one that was recorded.',
  damaged: 'DAMAGED: the journal is not what was written.',
  inexact: 'NOT EXACT: a part of the journal is missing, so it could be followed and not proved.',
  empty: 'EMPTY: there is nothing to replay.',
};

function differenceLines(difference: NonNullable<ReplayReport['difference']>): readonly string[] {
  const { file, line, event, afterMs, taskId, expected, got } = difference;
  return [
    `first at event ${event}, ${duration(afterMs)} after the start, about task ${taskId} (${file}, line ${line})`,
    `  recorded: ${expected}`,
    `  replayed: ${got}`,
  ];
}

function followedLines({
  because,
  placements,
  sameNode,
}: NonNullable<ReplayReport['followed']>): readonly string[] {
  return [`${because}: of ${placements} placements since then ${sameNode} went to the same node`];
}

function shortCommit(commit: string): string {
  return commit === '' ? '' : ` (${commit.slice(0, 10)})`;
}
