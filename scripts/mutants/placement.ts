/** Faults in what is sent where; the form is told in `list.ts`. */
import type { Mutant } from './mutant.ts';

const CORE = 'src/core';
const PLACEMENT = `${CORE}/placement/placement.test.ts`;
const PREFIXES = `${CORE}/scheduler/prefixes.test.ts`;
const SCENARIOS = 'test/scenarios/scenarios.test.ts';
const FEASIBILITY = `${CORE}/admission/feasibility.test.ts`;
const RESIDENCY = `${CORE}/placement/residency.test.ts`;

export const PLACEMENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'explore-with-whatever-comes',
    invariant: 0,
    file: `${CORE}/scheduler/dispatch.ts`,
    original: '    if (task.workUs > pool.typicalWorkUs * EXPLORING_WORK_MAX) continue;\n',
    mutated: '',
    killer: PLACEMENT,
    titles: 'exploration > spends small tasks alone',
  },
  {
    name: 'explore-below-typical-work-alone',
    invariant: 0,
    file: `${CORE}/scheduler/dispatch.ts`,
    original: 'const EXPLORING_WORK_MAX = 1.1;',
    mutated: 'const EXPLORING_WORK_MAX = 1;',
    killer: PLACEMENT,
    titles: 'exploration > gives an idle slow node',
  },
  {
    name: 'look-at-the-tops-for-a-loaded-model',
    invariant: 0,
    file: `${CORE}/placement/choose.ts`,
    original: 'loads ? pool.residentsOf(task.spec.model) : undefined',
    mutated: 'loads && pool.openSeats < 0 ? pool.residentsOf(task.spec.model) : undefined',
    killer: RESIDENCY,
    titles: 'a model that one node has loaded > is served there',
  },
  {
    name: 'price-loading-at-its-time',
    invariant: 0,
    file: `${CORE}/placement/choose.ts`,
    original: 'const SWAP_PRICE = 2;',
    mutated: 'const SWAP_PRICE = 1;',
    killer: RESIDENCY,
    titles: 'a model that one node has loaded > is waited for',
  },
  {
    name: 'hold-every-model-of-a-size',
    invariant: 0,
    file: `${CORE}/queue/lane-flow.ts`,
    original: "this.#loadsModels ? task.spec.model : ''",
    mutated: "''",
    killer: RESIDENCY,
    titles: 'a task that waits for its model > does not keep others',
  },
  {
    name: 'neglect-what-loading-costs-behind-a-queue',
    invariant: 0,
    file: `${CORE}/scheduler/dispatch.ts`,
    original: 'const loads = lane.loadsModels && node.residentModel !== task.spec.model;',
    mutated: 'const loads = false;',
    killer: RESIDENCY,
    titles: 'a task that waits for its model > is not sent',
  },
  {
    name: 'load-a-model-to-explore',
    invariant: 0,
    file: `${CORE}/scheduler/dispatch.ts`,
    original: '    if (swapUs(seat.node, task, state.config) > 0) continue;\n',
    mutated: '',
    killer: RESIDENCY,
    titles: 'nodes that load models > are explored with one',
  },
  {
    name: 'take-loading-for-work',
    invariant: 0,
    file: `${CORE}/scheduler/attempts.ts`,
    original: 'done.elapsedUs > task.swapUs ? done.elapsedUs - task.swapUs : done.elapsedUs',
    mutated: 'done.elapsedUs',
    killer: RESIDENCY,
    titles: 'nodes that load models > are not taken for slower',
  },
  {
    name: 'let-a-gate-that-is-off-place-tasks',
    invariant: 0,
    file: `${CORE}/scheduler/submit.ts`,
    original: 'return isAtStake ? idle : null;',
    mutated: 'return idle;',
    killer: FEASIBILITY,
    titles: 'the gate > sends nothing',
  },
  {
    name: 'ignore-what-nodes-keep-of-prompts',
    invariant: 0,
    file: `${CORE}/placement/choose.ts`,
    original: 'return task.prefix === null ? task.workUs : task.workUs - savedUs(node, task, context);',
    mutated: 'return task.workUs;',
    killer: SCENARIOS,
    titles: 'scenario > prefix.txt',
  },
  {
    name: 'remember-no-prompt',
    invariant: 0,
    file: `${CORE}/scheduler/dispatch.ts`,
    original: '    state.context.prefixes.use(node.prefixes, task.prefix.blocks);\n',
    mutated: '    state.context.prefixes.use(node.prefixes, []);\n',
    killer: SCENARIOS,
    titles: 'scenario > prefix.txt',
  },
  {
    name: 'believe-prompts-kept-by-who-was-away',
    invariant: 0,
    file: `${CORE}/scheduler/marks.ts`,
    original:
      'function suspect(state: SchedulerState, node: NodeRecord): void {\n  forgetPrefixes(state, node);\n',
    mutated: 'function suspect(state: SchedulerState, node: NodeRecord): void {\n',
    killer: SCENARIOS,
    titles: 'scenario > prefix.txt',
  },
  {
    name: 'count-a-saving-twice',
    invariant: 0,
    file: `${CORE}/scheduler/attempts.ts`,
    original: 'Math.max(1, actualUs - task.savedUs)',
    mutated: 'actualUs',
    killer: PREFIXES,
    titles: 'a node that keeps prompts > is not taken for a faster one',
  },
  {
    name: 'keep-prompts-beyond-the-capacity',
    invariant: 4,
    file: `${CORE}/placement/prefix-index.ts`,
    original: '      if (holder.rows.size >= holder.capacity) this.#evict(holder);\n',
    mutated: '',
    killer: `${CORE}/placement/prefix-index.test.ts`,
    titles: 'PrefixIndex > never exceeds',
  },
];
