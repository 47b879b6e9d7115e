/** The two policies that the gateway itself can run: its scheduler, and the old design kept for comparison. */
import { createScheduler } from '../../core/scheduler/index.ts';
import type { PolicyEntry } from './frame/entry.ts';
import { readOptions } from './frame/options.ts';

function gatewayPolicy(
  policy: 'spillway' | 'round-robin',
  row: { readonly about: string; readonly source: string },
): PolicyEntry {
  return {
    name: policy,
    ...row,
    options: {},
    create({ config, seed }, options) {
      readOptions({}, options);
      return createScheduler({ ...config, policy, seed });
    },
  };
}

export const GATEWAY_POLICIES: readonly PolicyEntry[] = [
  gatewayPolicy('spillway', {
    about: 'the scheduler of the gateway as it stands, by its own configuration',
    source: 'src/core/scheduler',
  }),
  gatewayPolicy('round-robin', {
    about: 'the old design: nodes take turns as if equal, with queues of their own without a bound',
    source: 'src/core/baseline',
  }),
];
