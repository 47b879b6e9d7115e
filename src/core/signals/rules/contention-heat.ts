/**
 * Contention over the graph of a workflow's stages, as clients tell them: what a stage waits for is heat, and what comes out of a hot
 * stage brings a part of its heat to the next.
 *
 *   H(s) = wait(s) / exec(s) + 0.5 · Σ over stages p before s: share(p → s) · H(p)
 *
 * where share(p → s) is the part of the requests of s that tell p as their parent; the shares of a stage add up to one at most, so the
 * sum is finite in a graph with cycles too. Told where the three hottest stages spend more than 0.6 of their time waiting (hunger).
 * The Shannon entropy of heat over the stages, in bits, says what to do: below 1.8 it is in fewer than 2^1.8 = 3.5 of them, a
 * bottleneck; above it is everywhere.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import { entropyBits, percent, told } from '../statistics.ts';
import type { StagesSample } from '../stage-tally.ts';

const WINDOW_S = 60;
const HUNGER_MIN = 0.6;
const TOP = 3;
const ENTROPY_BITS = 1.8;
const DECAY = 0.5;
const WAIT_S = 0.5;
const TASKS_MIN = 20;
/** Steps of heat from stage to stage that are followed: of what is farther away 0.5^16 would arrive. */
const STEPS = 16;
/** Who was never run has no time of its own to compare with. */
const EXEC_S_MIN = 0.001;

export const contentionHeat: Rule = {
  signal: 'contention-heat',
  thresholds: {
    hunger: { value: HUNGER_MIN, unit: 'ratio of the time of the hottest stages that they wait' },
    top: { value: TOP, unit: 'stages' },
    entropy: { value: ENTROPY_BITS, unit: 'bits: below, a bottleneck; from there on, a page' },
    decay: { value: DECAY, unit: 'of the heat of the stage before' },
    wait: { value: WAIT_S, unit: 's of mean wait in the hottest stages' },
    tasksMin: { value: TASKS_MIN, unit: 'requests of a stage' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 5,
  leaveSamples: 30,
  remedy:
    'Below 1.8 bits give nodes or weight to the hottest stage that has a wait of its own. Above, the whole workflow is too much: admit fewer workflows at their first stage, or add nodes for all of it.',
  look,
};

interface Stage {
  readonly name: string;
  readonly ended: number;
  readonly waitS: number;
  readonly execS: number;
  readonly parents: readonly { readonly name: string; readonly share: number }[];
}

interface Hot extends Stage {
  readonly heat: number;
}

function look(past: Past): Look {
  const now = past.now.stages;
  if (now === undefined)
    return { kind: 'blind', why: 'No request tells its stage of a workflow (x-spillway-stage)' };
  const then = past.ago(WINDOW_S);
  if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
  const stages = stagesSince(then.stages, now).filter(({ ended }) => ended >= TASKS_MIN);
  if (stages.length < 2)
    return { kind: 'seen', suspicions: [], why: `Fewer than two stages have ${TASKS_MIN} requests` };
  return { kind: 'seen', suspicions: suspicionsOf(heated(stages)) };
}

function stagesSince(then: StagesSample | undefined, now: StagesSample): readonly Stage[] {
  const before = new Map((then?.stages ?? []).map((row) => [row.name, row]));
  const edges = edgesSince(then, now);
  return now.stages.map((row) => {
    const old = before.get(row.name);
    // Its row was given away in between, and it has another one.
    const known = old !== undefined && old.ended <= row.ended ? old : undefined;
    const ended = row.ended - (known?.ended ?? 0);
    return {
      name: row.name,
      ended,
      waitS: row.waitS - (known?.waitS ?? 0),
      execS: row.execS - (known?.execS ?? 0),
      parents: (edges.get(row.name) ?? []).map((edge) => ({
        name: edge.parent,
        share: Math.min(1, edge.ended / Math.max(1, ended)),
      })),
    };
  });
}

interface EdgeSince {
  readonly parent: string;
  readonly name: string;
  readonly ended: number;
}

/** By the stage that they lead to. */
function edgesSince(then: StagesSample | undefined, now: StagesSample): ReadonlyMap<string, EdgeSince[]> {
  const keyOf = ({ parent, name }: EdgeSince): string => `${parent} ${name}`;
  const before = new Map((then?.edges ?? []).map((edge) => [keyOf(edge), edge.ended]));
  const edges = now.edges.map((edge) => {
    const old = before.get(keyOf(edge)) ?? 0;
    return { parent: edge.parent, name: edge.name, ended: edge.ended - (old <= edge.ended ? old : 0) };
  });
  return Map.groupBy(edges, ({ name }) => name);
}

/** The hottest first. */
function heated(stages: readonly Stage[]): readonly Hot[] {
  const own = stages.map(({ waitS, execS, ended }) => waitS / Math.max(execS, EXEC_S_MIN * ended));
  let heat = new Map(stages.map(({ name }, at) => [name, own[at] as number]));
  for (let step = 0; step < STEPS; step++) {
    const before = heat;
    heat = new Map(
      stages.map(({ name, parents }, at) => {
        const upstream = parents.reduce(
          (sum, parent) => sum + parent.share * (before.get(parent.name) ?? 0),
          0,
        );
        return [name, (own[at] as number) + DECAY * upstream];
      }),
    );
  }
  return stages
    .map((stage) => ({ ...stage, heat: heat.get(stage.name) as number }))
    .sort((a, b) => b.heat - a.heat);
}

function suspicionsOf(stages: readonly Hot[]): readonly Suspicion[] {
  const top = stages.slice(0, TOP);
  const sumOf = (take: (stage: Hot) => number): number => top.reduce((sum, stage) => sum + take(stage), 0);
  const waitS = sumOf((stage) => stage.waitS);
  const hunger = waitS / Math.max(EXEC_S_MIN, waitS + sumOf((stage) => stage.execS));
  const meanWaitS = waitS / sumOf(({ ended }) => ended);
  if (hunger < HUNGER_MIN || meanWaitS < WAIT_S) return [];
  const entropy = entropyBits(stages.map(({ heat }) => heat));
  const isEverywhere = entropy >= ENTROPY_BITS;
  const hottest = stages[0] as Hot;
  const where = isEverywhere ? 'it is everywhere' : 'it is a bottleneck';
  return [
    {
      subject: { kind: 'gateway', id: '' },
      severity: isEverywhere ? 'page' : 'warn',
      evidence: {
        hottest: hottest.name,
        heat: told(hottest.heat),
        top: top.map(({ name }) => name).join(', '),
        hunger: told(hunger),
        meanWaitS: told(meanWaitS),
        entropyBits: told(entropy),
        stages: stages.length,
      },
      says: `The hottest stages of workflows spend ${percent(hunger)} of their time waiting, ${hottest.name} first; heat is spread by ${told(entropy)} bits over ${stages.length} stages: ${where}`,
    },
  ];
}
