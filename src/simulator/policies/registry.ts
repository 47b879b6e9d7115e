/** Every policy that the simulator can run, by name. */
import type { PolicySpec } from '../scenario/types.ts';
import { COUNTING_POLICIES } from './counting-policies.ts';
import { FIFO_POLICIES } from './fifo-policies.ts';
import { MODEL_OF_LITELLM } from './model-of-litellm.ts';
import { MODEL_OF_LLM_D } from './model-of-llm-d.ts';
import { MODEL_OF_KUBERNETES_APF } from './model-of-kubernetes-apf.ts';
import { PREQUAL } from './prequal.ts';
import { OVERLOAD_POLICIES } from './overload-policies.ts';
import { TURNING_POLICIES } from './turning-policies.ts';
import { WORK_POLICIES } from './work-policies.ts';
import type { PolicyEntry } from './frame/entry.ts';
import { PolicyOptionError } from './frame/options.ts';
import { GATEWAY_POLICIES } from './gateway-policies.ts';
import type { Policy } from './policy.ts';

const ENTRIES: readonly PolicyEntry[] = [
  ...GATEWAY_POLICIES,
  ...TURNING_POLICIES,
  ...COUNTING_POLICIES,
  ...WORK_POLICIES,
  ...FIFO_POLICIES,
  ...OVERLOAD_POLICIES,
  PREQUAL,
  MODEL_OF_LITELLM,
  MODEL_OF_LLM_D,
  MODEL_OF_KUBERNETES_APF,
];

export const POLICIES: Readonly<Record<string, PolicyEntry>> = Object.freeze(
  Object.fromEntries(ENTRIES.map((entry) => [entry.name, entry])),
);

/** Once per run, and again after a crash. Throws PolicyOptionError on a name that is not there, and on its options. */
export function createPolicy(
  { policy, config, options }: Pick<PolicySpec, 'policy' | 'config' | 'options'>,
  seed: number,
): Policy {
  const entry = Object.hasOwn(POLICIES, policy) ? POLICIES[policy] : undefined;
  if (entry === undefined) {
    const names = Object.keys(POLICIES).join(', ');
    throw new PolicyOptionError(`Could not find the policy ${policy}: the policies are ${names}`);
  }
  return entry.create({ config, seed }, options);
}
