import { describe, expect, test } from 'vitest';
import { JournalWorld } from '../../../test/support/journal-world.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../../core/config/index.ts';
import { type ExperimentRun, overtaken } from './overtaken.ts';
import { readRun, type RecordedRun } from './recorded-run.ts';

const WALL_MS = 1_000_000;

/** One node, a second each; who comes when is the test's. No gate refuses. */
async function recorded(
  arrivals: readonly { readonly atMs: number; readonly className: string; readonly tenant: string }[],
  tasksMax = 1_000,
): Promise<RecordedRun> {
  const config = defaultSchedulerConfig({
    gates: { 'flow-wait': 'off', ladder: 'off' },
    bounds: { tasksMax, tenantShareMax: 1, classShareMax: 1 },
  });
  const world = new JournalWorld(config, { wallMs: WALL_MS });
  world.apply({ kind: 'node-registered', node: nodeSpec('n') });
  let id = 0;
  for (let atMs = 0; atMs < 30_000; atMs += 100) {
    for (const { className, tenant } of arrivals.filter((one) => one.atMs === atMs))
      world.submit(taskSpec(++id, { className, tenant, deadlineAt: world.now + 5 * S }));
    world.advance(100 * MS);
    for (const [taskId, permit] of [...world.permits]) if (world.now - permit.takenAt >= S) world.end(taskId);
  }
  return (await readRun(world.lines())) as RecordedRun;
}

const flood = (className: string, tenant: string, everyMs: number) =>
  Array.from({ length: Math.floor(20_000 / everyMs) }, (_, i) => ({ atMs: i * everyMs, className, tenant }));
const shareOf = (
  causes: readonly { readonly cause: string; readonly share: number }[],
  name: string,
): number => causes.find(({ cause }) => cause === name)?.share ?? 0;

describe('overtaken', () => {
  test('tells which class was served while a lower one waited past its deadline', async () => {
    const run = await recorded([...flood('critical', 'a', 1_200), ...flood('low', 'b', 1_000)]);
    const { classes } = overtaken(run);
    const low = classes.find(({ className }) => className === 'low') ?? expect.unreachable();
    expect(low.requests).toBe(20);
    expect(low.missed).toBeGreaterThan(8);
    expect(low.causes[0]?.cause).toBe('class critical');
    expect(shareOf(low.causes, 'class critical')).toBeGreaterThan(0.5);
    expect(low.causes.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    expect(low.waitedUs).toBeGreaterThan(low.missed * 3 * S);
  });

  test('tells tenants of its own class apart, what came before, and that nobody was served', async () => {
    const run = await recorded([...flood('normal', 'a', 400), ...flood('normal', 'b', 4_000)]);
    const { classes } = overtaken(run);
    const normal = classes.find(({ className }) => className === 'normal') ?? expect.unreachable();
    const names = new Set(normal.causes.map(({ cause }) => cause));
    expect(names.has('before')).toBe(true);
    expect([...names].some((name) => name.startsWith('class '))).toBe(false);
    const alone = await recorded([
      { atMs: 0, className: 'normal', tenant: 'a' },
      { atMs: 100, className: 'normal', tenant: 'a' },
    ]);
    expect(overtaken(alone).classes.every(({ missed, causes }) => missed === 0 && causes.length === 0)).toBe(
      true,
    );
  });

  test('counts nobody who lost its place at a bound of the queue', async () => {
    const low = { className: 'low', tenant: 'b' };
    const critical = { className: 'critical', tenant: 'a', atMs: 100 };
    const run = await recorded([...[0, 0, 0].map((atMs) => ({ atMs, ...low })), critical], 2);
    expect(run.requests.filter(({ end }) => end === 'evicted').map(({ reason }) => reason)).not.toEqual([]);
    expect(overtaken(run).classes.map(({ missed }) => missed)).toEqual([0, 0]);
  });

  test('joins runs of experiments with the requests of their time and tenant', async () => {
    const run = await recorded([...flood('critical', 'a', 1_200), ...flood('low', 'b', 1_000)]);
    const experiment = (change: Partial<ExperimentRun>): ExperimentRun => ({
      id: 'r',
      submittedMs: WALL_MS + 5_000,
      finishedMs: WALL_MS + 10_000,
      tenant: 'b',
      ...change,
    });
    const { runs } = overtaken(run, [
      experiment({ deadlineMs: WALL_MS + 8_000 }),
      experiment({ tenant: 'c' }),
      { id: 'open', submittedMs: WALL_MS + 25_000, deadlineMs: WALL_MS + 26_000 },
    ]);
    expect(runs[0]).toMatchObject({ lateMs: 2_000, requests: 6 });
    expect(runs[0]?.causes[0]?.cause).toBe('class critical');
    expect(runs[1]).toEqual({
      run: experiment({ tenant: 'c' }),
      requests: 0,
      missed: 0,
      waitedUs: 0,
      causes: [],
    });
    expect(runs[2]?.lateMs).toBe(run.spanUs / 1_000 - 26_000);
  });
});
