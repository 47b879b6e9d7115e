import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import {
  type FuzzOptions,
  FuzzPlayer,
  sequenceArbitrary,
  SMALL_BOUNDS,
  type Step,
} from '../../../test/support/fuzz.ts';
import { JournalWorld } from '../../../test/support/journal-world.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../../core/config/index.ts';
import { replayJournal } from './replay.ts';

const CONFIG = defaultSchedulerConfig({
  bounds: SMALL_BOUNDS,
  seed: 7,
  tenantLimits: { requestsPerMinute: 120, tokensPerMinute: 30_000, tokensBurst: 4_000, concurrency: 8 },
});
const ALL: FuzzOptions = { absurd: true, shutdown: true, maxLength: 160 };

function played(steps: readonly Step[]): JournalWorld {
  const world = new JournalWorld(CONFIG);
  new FuzzPlayer(world).play(steps);
  return world;
}

describe('replayJournal', () => {
  test('comes to the same decisions for whatever happened, with absurd numbers too', async () => {
    await fc.assert(
      fc.asyncProperty(sequenceArbitrary(ALL), async (steps) => {
        const world = played(steps);
        const report = await replayJournal(world.lines());
        expect(report.problem ?? report.difference).toBeUndefined();
        expect(report).toMatchObject({
          verdict: 'equal',
          events: world.events,
          decisions: world.digest.count,
          hash: world.digest.digest(),
        });
      }),
      { numRuns: drawsOf(60) },
    );
  });

  test('finds a decision that was changed, at its event', async () => {
    await fc.assert(
      fc.asyncProperty(sequenceArbitrary(ALL), fc.nat(), async (steps, pick) => {
        const lines = [...played(steps).lines()];
        const assigned = lines.filter(({ text }) => text.startsWith('["d",1,'));
        if (assigned.length === 0) return;
        const changed = assigned[pick % assigned.length];
        if (changed === undefined) return;
        const at = lines.indexOf(changed);
        lines[at] = { ...changed, text: changed.text.replace(/"(\d+)"\]$/, '"99"]') };
        const report = await replayJournal(lines);
        expect(report.verdict).toBe('differs');
        expect(report.difference?.expected).toMatch(/^assign n\d 99$/);
        expect(report.difference?.got).toMatch(/^assign n\d \d+$/);
      }),
      { numRuns: drawsOf(30) },
    );
  });

  test('follows a journal whose beginning is gone from the state in its head, and says that it proves nothing', async () => {
    const world = new JournalWorld(CONFIG, {
      segment: 3,
      before: { events: 500, decisions: 700, hash: 'x', dropped: 0 },
      state: {
        accounts: new JournalWorld(CONFIG).accounts,
        nodes: [{ node: nodeSpec('n0'), memory: null }],
        waiting: [taskSpec(1)],
        omitted: { nodes: 0, tasks: 0 },
      },
    });
    // The recorded scheduler had these before; the journal's head tells them.
    const head = Buffer.from(world.encoder.take().text).toString().trimEnd();
    world.apply({ kind: 'node-registered', node: nodeSpec('n0') });
    world.submit(taskSpec(1));
    // What is gone told the names that the rest goes on to use.
    const gone = Buffer.from(world.encoder.take().text).toString().split('\n');
    const names = gone.filter((text) => text.startsWith('["n",'));
    for (let id = 2; id <= 6; id++) world.submit(taskSpec(id));
    for (let id = 1; id <= 6; id++) {
      world.advance(S);
      world.end(id);
    }
    const first = [head, ...names].map((text) => ({ kind: 'line' as const, text, file: 'test', number: 1 }));
    const report = await replayJournal([...first, ...world.lines()]);
    expect(report).toMatchObject({ verdict: 'inexact', exact: false });
    expect(report.followed?.because).toContain('the beginning of the journal is gone');
    expect(report.followed).toMatchObject({ placements: 5, sameNode: 5 });
  });

  test('says what is wrong with a file that is no journal, or of another format', async () => {
    const line = (text: string): { kind: 'line'; text: string; file: string; number: number } => ({
      kind: 'line',
      text,
      file: 'f',
      number: 1,
    });
    expect((await replayJournal([])).verdict).toBe('empty');
    expect(await replayJournal([line('hello'), line('{}')])).toMatchObject({ verdict: 'damaged' });
    const other = await replayJournal([line('{"journal":"spillway","format":99}'), line('["k",1]')]);
    expect(other.problem?.why).toContain('its format is 99');
  });
});
