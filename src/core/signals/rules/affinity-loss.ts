/**
 * After a change of the fleet the work that nodes save on prompts that they keep falls, and stays down: conversations have
 * lost their places. The part of prompt work that was saved since the change is held against the two minutes before it.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import type { Sample } from '../sample.ts';
import { percent, told } from '../statistics.ts';

const BEFORE_S = 120;
/** The first requests after a change have nothing to find: they are not looked at. */
const SETTLE_S = 30;
const AFTER_S_MAX = 300;
const LEFT_RATIO = 0.7;
const SAVED_MIN = 0.1;
/** Prompt work on each side: a hundred reference seconds, or nothing can be told. */
const PROMPT_US_MIN = 10_000_000;

export const affinityLoss: Rule = {
  signal: 'affinity-loss',
  thresholds: {
    left: { value: LEFT_RATIO, unit: 'ratio of what was saved before' },
    savedMin: { value: SAVED_MIN, unit: 'ratio of prompt work, before' },
    before: { value: BEFORE_S, unit: 's before the change' },
    settle: { value: SETTLE_S, unit: 's after it' },
    promptMin: { value: PROMPT_US_MIN / 1e6, unit: 'reference seconds of prompts' },
  },
  enterSamples: 10,
  leaveSamples: 30,
  remedy:
    'Add and take nodes in smaller steps, and drain before taking: what a node keeps of prompts goes with it. See whether nodes that came state prefixBlocks.',
  look(past: Past): Look {
    const { now } = past;
    if (now.promptWorkUs === 0) return { kind: 'blind', why: 'No node is known to keep prompts' };
    const ageS = past.ageOf(now.fleetChangedAt);
    const quiet = (why: string): Look => ({ kind: 'seen', suspicions: [], why });
    if (ageS > AFTER_S_MAX) return quiet('The fleet has not changed lately');
    if (ageS < SETTLE_S + 10) return quiet('The fleet has only just changed');
    const settled = past.ago(ageS - SETTLE_S);
    const changed = past.ago(ageS + 1);
    const then = past.ago(ageS + BEFORE_S);
    if (settled === undefined || changed === undefined || then === undefined)
      return { kind: 'blind', why: `It needs ${BEFORE_S} s of samples before the change` };
    const [before, after] = [savedBetween(then, changed), savedBetween(settled, now)];
    if (before === undefined || after === undefined) return quiet('There are few prompts');
    if (before < SAVED_MIN || after > LEFT_RATIO * before)
      return quiet('Prompts are still found where they were');
    return {
      kind: 'seen',
      suspicions: [
        {
          subject: { kind: 'gateway', id: '' },
          severity: after < (LEFT_RATIO * before) / 2 ? 'page' : 'warn',
          evidence: {
            savedBefore: told(before),
            savedNow: told(after),
            changedSecondsAgo: past.lasting(ageS),
            openNodes: now.openNodes,
            openNodesBefore: then.openNodes,
          },
          says: `Since the fleet changed ${past.lasting(ageS)} s ago, ${percent(after)} of the prompt work is saved, before ${percent(before)}`,
        },
      ],
    };
  },
};

function savedBetween(from: Sample, to: Sample): number | undefined {
  const prompts = to.promptWorkUs - from.promptWorkUs;
  return prompts < PROMPT_US_MIN ? undefined : (to.savedWorkUs - from.savedWorkUs) / prompts;
}
