/**
 * The gateway's own configuration inside a scenario: in the very form of `spillway.yaml`, so that one can be pasted.
 * What concerns sockets, secrets and files has no part in a simulation and is left out.
 */
import { type ConfigInput, type ConfigIssue, resolveConfig } from '../../core/config/index.ts';
import type { SchedulerConfig } from '../../core/config/types.ts';

/** Sections that no simulated gateway has: nodes are the scenario's fleet. */
const WITHOUT: ReadonlySet<string> = new Set([
  '$schema',
  'nodes',
  'server',
  'state',
  'keysFile',
  'survival',
  'cache',
  'idempotency',
]);

export type SchedulerConfigRead =
  | { readonly kind: 'config'; readonly config: SchedulerConfig }
  | { readonly kind: 'issues'; readonly issues: readonly ConfigIssue[] };

/** `given` has passed the schema of the configuration file. */
export function schedulerConfigOf(given: Readonly<Record<string, unknown>>): SchedulerConfigRead {
  const kept = Object.entries(given).filter(([section]) => !WITHOUT.has(section));
  const input = Object.fromEntries(kept) as ConfigInput;
  const tenants = input.tenants?.map((tenant) => {
    if (tenant === undefined) return tenant;
    const { keys: _keys, ...rest } = tenant;
    return rest;
  });
  const resolved = resolveConfig({ ...input, ...(tenants === undefined ? {} : { tenants }) });
  return resolved.kind === 'issues' ? resolved : { kind: 'config', config: resolved.config.scheduler };
}
