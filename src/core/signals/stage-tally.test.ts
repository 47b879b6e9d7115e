import { expect, test } from 'vitest';
import { ROW_IDLE_US } from './row-table.ts';
import { OTHER_STAGES, STAGE_EDGES_MAX, STAGES_MAX, StageTally } from './stage-tally.ts';

const end = (name: string, parent = '', at = 0) => ({
  name,
  parent,
  at,
  waitUs: 2_000_000,
  execUs: 1_000_000,
});

test(`StageTally has rows of ${STAGES_MAX} stages, and counts further ones as ${OTHER_STAGES}`, () => {
  const tally = new StageTally();
  expect(tally.sample()).toBeUndefined();
  for (let nth = 0; nth < STAGES_MAX + 10; nth++) tally.ended(end(`s${nth}`));
  const stages = tally.sample()?.stages ?? [];
  expect(stages).toHaveLength(STAGES_MAX + 1);
  expect(stages.at(-1)).toMatchObject({ name: OTHER_STAGES, ended: 10, waitS: 20, execS: 10 });

  tally.ended(end('new', '', ROW_IDLE_US + 1));
  const later = tally.sample()?.stages ?? [];
  expect(later).toHaveLength(STAGES_MAX + 1);
  expect(later.map(({ name }) => name)).toContain('new');
});

test(`StageTally counts ${STAGE_EDGES_MAX} edges, and no further ones`, () => {
  const tally = new StageTally();
  for (let nth = 0; nth < STAGE_EDGES_MAX + 10; nth++) tally.ended(end(`s${nth % 50}`, `p${nth}`));
  tally.ended(end('s0', 'p0'));
  const edges = tally.sample()?.edges ?? [];
  expect(edges).toHaveLength(STAGE_EDGES_MAX);
  expect(edges[0]).toMatchObject({ parent: 'p0', name: 's0', ended: 2 });
});
