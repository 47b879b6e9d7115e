/**
 * How many times a demand by model fits into supplies of which each serves some models: the largest s with a flow
 * `s * demand` from models to supplies. Max-flow min-cut: s is the least of `supply of those who serve any of M / demand
 * of M` over sets of models M. Starting from all models, the minimum cut of an infeasible s names a tighter set.
 */
import type { ModelId } from '../../base/units.ts';

export interface Supply {
  readonly models: readonly ModelId[];
  readonly rate: number;
}

/** Relative: flows are sums of floats. */
const EPSILON = 1e-9;

/** 0 where nothing is demanded, or something that nobody supplies. */
export function feasibleScale(demand: ReadonlyMap<ModelId, number>, supplies: readonly Supply[]): number {
  let tightest: ReadonlySet<ModelId> = new Set(demand.keys());
  for (;;) {
    const total = [...tightest].reduce((sum, model) => sum + (demand.get(model) as number), 0);
    const scale = total === 0 ? 0 : supplyOf(tightest, supplies) / total;
    const cut = scale === 0 ? undefined : infeasibleSet(demand, supplies, scale);
    if (cut === undefined || cut.size >= tightest.size) return scale;
    tightest = cut;
  }
}

function supplyOf(models: ReadonlySet<ModelId>, supplies: readonly Supply[]): number {
  return supplies.reduce(
    (sum, supply) => sum + (supply.models.some((model) => models.has(model)) ? supply.rate : 0),
    0,
  );
}

interface Flow {
  readonly left: Map<ModelId, number>;
  readonly free: number[];
  /** By supply: how much of each model it serves. */
  readonly sent: Map<ModelId, number>[];
}

/** Models that cannot all be served at this scale: those from which every supply that is reached is full. */
function infeasibleSet(
  demand: ReadonlyMap<ModelId, number>,
  supplies: readonly Supply[],
  scale: number,
): ReadonlySet<ModelId> | undefined {
  const flow: Flow = {
    left: new Map([...demand].map(([model, amount]) => [model, amount * scale])),
    free: supplies.map(({ rate }) => rate),
    sent: supplies.map(() => new Map()),
  };
  const tolerance = EPSILON * [...flow.left.values()].reduce((sum, amount) => sum + amount, 0);
  for (;;) {
    const starts = [...flow.left].filter(([, amount]) => amount > tolerance).map(([model]) => model);
    if (starts.length === 0) return undefined;
    const { path, reached } = search(flow, supplies, { starts, tolerance });
    if (path === undefined) return reached;
    push(flow, path);
  }
}

/** From a model with demand left to a supply with room: model, supply, model, supply, … */
interface Path {
  readonly models: readonly ModelId[];
  readonly supplies: readonly number[];
}

function search(
  flow: Flow,
  supplies: readonly Supply[],
  { starts, tolerance }: { readonly starts: readonly ModelId[]; readonly tolerance: number },
): { readonly path: Path | undefined; readonly reached: ReadonlySet<ModelId> } {
  const paths = new Map<ModelId, Path>(starts.map((model) => [model, { models: [model], supplies: [] }]));
  const seen = new Set<number>();
  for (const [model, path] of paths) {
    for (const [at, supply] of supplies.entries()) {
      if (seen.has(at) || !supply.models.includes(model)) continue;
      seen.add(at);
      const longer = { models: path.models, supplies: [...path.supplies, at] };
      if ((flow.free[at] as number) > tolerance) return { path: longer, reached: new Set() };
      for (const [other, amount] of flow.sent[at] as Map<ModelId, number>)
        if (amount > tolerance && !paths.has(other))
          paths.set(other, { models: [...longer.models, other], supplies: longer.supplies });
    }
  }
  return { path: undefined, reached: new Set(paths.keys()) };
}

/** Moves as much along the path as its narrowest part lets through. */
function push({ left, free, sent }: Flow, { models, supplies }: Path): void {
  const last = supplies.at(-1) as number;
  let amount = Math.min(left.get(models[0] as ModelId) as number, free[last] as number);
  for (const [at, supply] of supplies.slice(0, -1).entries())
    amount = Math.min(amount, sentOf(sent, supply, models[at + 1] as ModelId));
  left.set(models[0] as ModelId, (left.get(models[0] as ModelId) as number) - amount);
  free[last] = (free[last] as number) - amount;
  for (const [at, supply] of supplies.entries()) {
    const model = models[at] as ModelId;
    sent[supply]?.set(model, sentOf(sent, supply, model) + amount);
    const displaced = models[at + 1];
    if (displaced !== undefined) sent[supply]?.set(displaced, sentOf(sent, supply, displaced) - amount);
  }
}

function sentOf(sent: Flow['sent'], supply: number, model: ModelId): number {
  return sent[supply]?.get(model) ?? 0;
}
