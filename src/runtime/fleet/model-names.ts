/**
 * Names of models: configured ids and aliases, and what nodes offer. Offers are counted per model, so that a lookup
 * is one map access and a model that its last node takes away is unknown again.
 *
 * Bounds: configured names, and `NODES_MAX` nodes with `OFFERS_PER_NODE_MAX` offers each. Names that clients send
 * are only looked up, never kept.
 */
import type { ModelConfig } from '../../core/config/types.ts';
import type { ModelOffer } from '../../core/request/needs.ts';

export interface ModelNames {
  configure(models: readonly ModelConfig[]): void;
  offered(offers: readonly ModelOffer[]): void;
  withdrawn(offers: readonly ModelOffer[]): void;
  /** The configured id behind an alias, else the name itself. */
  canonical(name: string): string;
  /** Canonical id of a name that is configured or offered. */
  resolve(name: string): string | undefined;
  /** Canonical ids that a node offers, sorted. */
  list(): readonly string[];
}

export function createModelNames(models: readonly ModelConfig[]): ModelNames {
  const configured = new Map<string, string>();
  const nodesByModel = new Map<string, number>();
  let listed: readonly string[] | undefined;

  const names: ModelNames = {
    configure(next) {
      configured.clear();
      for (const model of next) for (const alias of model.aliases) configured.set(alias, model.id);
      for (const model of next) configured.set(model.id, model.id);
    },
    offered(offers) {
      for (const { model } of offers) nodesByModel.set(model, (nodesByModel.get(model) ?? 0) + 1);
      listed = undefined;
    },
    withdrawn(offers) {
      for (const { model } of offers) {
        const left = (nodesByModel.get(model) ?? 0) - 1;
        if (left > 0) nodesByModel.set(model, left);
        else nodesByModel.delete(model);
      }
      listed = undefined;
    },
    canonical: (name) => configured.get(name) ?? name,
    resolve: (name) => configured.get(name) ?? (nodesByModel.has(name) ? name : undefined),
    list() {
      listed ??= [...nodesByModel.keys()].sort();
      return listed;
    },
  };
  names.configure(models);
  return names;
}
