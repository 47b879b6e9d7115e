/**
 * Every bar of every example scenario, with enough seeds to tell: what a change of the scheduler is to be held against. The test
 * suite runs the same scenarios with a seed or two, which a rule that is a tenth worse passes.
 *
 *   node bench/bars.ts [--seeds 20] [--scenario PREFIX] [--trace FILE] [--json]
 *
 * Only policies that a bar names are run: eight to fifteen minutes on two cores. `staircase` is shortened to 32 s, as in
 * docs/reference/experiments.md; `prefix` needs a public trace and is left out without one, loudly. Exit codes: 0 every
 * bar held, 1 one was missed or could not be judged.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readScenario, type ScenarioPlan } from '../src/apps/simulate/read-scenario.ts';

const FOLDER = 'examples/scenarios';
const MAIN = 'src/apps/cli/main.ts';
const OUTPUT_BYTES_MAX = 256 << 20;
/** Scenarios that would take an hour as they stand. */
const SHORTER: Readonly<Record<string, readonly string[]>> = { staircase: ['--set', 'span=32s'] };

/** A bar as `simulate --json` tells it; `held` is null where a policy or variant of it was not run. */
interface JudgedBar {
  readonly about: string;
  readonly policy: string;
  readonly variant: string;
  readonly metric: string;
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly value: number | null;
  readonly held: boolean | null;
}

interface Row extends JudgedBar {
  readonly scenario: string;
}

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    scenario: { type: 'string', default: '' },
    trace: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
  },
});

function planOf(file: string): ScenarioPlan {
  const read = readScenario({ file, sets: [], variants: [], policies: [], traceFile: values.trace });
  if (read.kind === 'issues') throw new Error(`Could not read ${file}`);
  return read.plan;
}

function judge(name: string): readonly Row[] {
  const file = `${FOLDER}/${name}.yaml`;
  const { bars: set, variants } = planOf(file);
  // Those that a bar is about, or compares with.
  const policies = [...new Set(set.flatMap(({ policy, of }) => [policy, of?.policy || policy]))];
  if (policies.length === 0 || variants.every(({ lacksTrace }) => lacksTrace.length > 0)) {
    process.stderr.write(
      `SKIPPED ${name}: ${policies.length === 0 ? 'it has no bars' : 'give its trace with --trace FILE'}\n`,
    );
    return [];
  }
  process.stderr.write(`${name}: ${policies.join(', ')}, ${values.seeds} seeds\n`);
  const args = [MAIN, 'simulate', file, '--policy', policies.join(','), '--seeds', values.seeds, '--json'];
  const traced = values.trace === '' ? [] : ['--trace', values.trace];
  const done = spawnSync(process.execPath, [...args, ...(SHORTER[name] ?? []), ...traced], {
    encoding: 'utf8',
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  if (done.status !== 0 && done.status !== 1) throw new Error(`${name}: ${done.stderr}`);
  const { bars } = JSON.parse(done.stdout) as { readonly bars: readonly JudgedBar[] };
  return bars.map((bar) => ({ scenario: name, ...bar }));
}

function asked({ atMost, atLeast }: JudgedBar): string {
  const bounds = [atLeast === undefined ? '' : `≥ ${atLeast}`, atMost === undefined ? '' : `≤ ${atMost}`];
  return bounds.filter((bound) => bound !== '').join(', ');
}

const names = readdirSync(FOLDER)
  .map((file) => file.replace(/\.yaml$/, ''))
  .filter((name) => name.startsWith(values.scenario))
  .sort();
const rows = names.flatMap(judge);
if (values.json) process.stdout.write(`${JSON.stringify(rows)}\n`);
else if (rows.length > 0)
  console.table(
    rows.map((row) => ({
      scenario: row.scenario,
      policy: [row.policy, row.variant].filter((part) => part !== '').join(' in '),
      figure: row.metric,
      found: row.value,
      asked: asked(row),
      held: row.held === true ? 'ok' : 'MISSED',
    })),
  );
const missed = rows.filter(({ held }) => held !== true);
if (names.length === 0) process.stderr.write(`No scenario in ${FOLDER} begins with ${values.scenario}\n`);
process.stderr.write(`${rows.length - missed.length} of ${rows.length} bars held\n`);
process.exitCode = missed.length === 0 && rows.length > 0 ? 0 : 1;
