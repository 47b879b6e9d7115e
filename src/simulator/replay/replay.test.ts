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
          decisions: world.decisions,
          hash: world.encoder.digest(),
        });
      }),
      { numRuns: drawsOf(60) },
    );
  });

  test('finds a decision that was changed, at its event', async () => {
    await fc.assert(
      fc.asyncProperty(sequenceArbitrary(ALL), fc.nat(), async (steps, pick) => {
        const lines = [...played(steps).lines()];
        const assigned = lines.filter(({ text }) => text.startsWith('d1'));
        if (assigned.length === 0) return;
        const changed = assigned[pick % assigned.length];
        if (changed === undefined) return;
        const at = lines.indexOf(changed);
        // Its last character is the attempt, below 16; these are 99.
        lines[at] = { ...changed, text: `${changed.text.slice(0, -1)}V6` };
        const report = await replayJournal(lines);
        expect(report.verdict).toBe('differs');
        expect(report.difference?.expected).toMatch(/^assign n\d 99$/);
        expect(report.difference?.got).toMatch(/^assign n\d \d+$/);
      }),
      { numRuns: drawsOf(30) },
    );
  });

  test('follows a journal whose beginning is gone from the state in its head, and says that it proves nothing', async () => {
    const world = new JournalWorld(CONFIG);
    world.apply({ kind: 'node-registered', node: nodeSpec('n0') });
    world.submit(taskSpec(1));
    // It is gone; the head of the next segment tells what came of it.
    world.encoder.take();
    world.begin(CONFIG, {
      segment: 3,
      state: {
        accounts: world.accounts,
        nodes: [{ node: nodeSpec('n0'), memory: null }],
        waiting: [taskSpec(1)],
        omitted: { nodes: 0, tasks: 0 },
      },
    });
    for (let id = 2; id <= 6; id++) world.submit(taskSpec(id));
    for (let id = 1; id <= 6; id++) {
      world.advance(S);
      world.end(id);
    }
    const report = await replayJournal(world.lines());
    expect(report).toMatchObject({ verdict: 'inexact', exact: false });
    expect(report.followed?.because).toContain('the beginning of the journal is gone');
    expect(report.followed).toMatchObject({ placements: 5, sameNode: 5 });
  });

  test('is exact over segments, and not from where an entry was dropped, were it no event', async () => {
    for (const dropped of [0, 1]) {
      const world = new JournalWorld(CONFIG);
      world.apply({ kind: 'node-registered', node: nodeSpec('n0') });
      const { events, decisions } = world;
      world.begin(CONFIG, {
        segment: 2,
        before: { events, decisions, hash: world.encoder.digest(), dropped },
      });
      world.submit(taskSpec(1));
      const report = await replayJournal(world.lines());
      expect(report.verdict).toBe(dropped === 0 ? 'equal' : 'inexact');
    }
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
    const other = await replayJournal([line('{"journal":"spillway","format":99}'), line('k1')]);
    expect(other.problem?.why).toContain('its format is 99');
  });
});
