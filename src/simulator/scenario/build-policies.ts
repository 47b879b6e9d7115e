/** The policies that are compared, each with its own configuration and process. */
import { defaultSchedulerConfig } from '../../core/config/index.ts';
import type { SchedulerConfig } from '../../core/config/types.ts';
import type { BuildContext } from './build-context.ts';
import { schedulerConfigOf } from './config-of.ts';
import type { PolicyFile, ScenarioFile } from './file-types.ts';
import { mergeOver, type Path } from './overrides.ts';
import type { PolicySpec, ProcessSpec } from './types.ts';

/** What a policy that is only named has. */
const PLAIN: Pick<PolicyFile, 'options' | 'process'> = {
  options: {},
  process: { tasksMax: 0, restart: 10_000_000, registry: 'durable', hangUps: 'noticed' },
};

export function buildPolicies(file: ScenarioFile, context: BuildContext): readonly PolicySpec[] {
  const policies = file.policies.map((given, index): PolicySpec => {
    const path = ['policies', index];
    const entry: PolicyFile = typeof given === 'string' ? { ...PLAIN, policy: given } : given;
    checkKnown(typeof given === 'string' ? path : [...path, 'policy'], entry.policy, context);
    const wrong = context.optionsIssue(entry.policy, entry.options);
    if (wrong !== undefined) context.report([...path, 'options'], wrong);
    return {
      name: entry.name ?? entry.policy,
      policy: entry.policy,
      config: configOf([...path, 'config'], entry.config, { file, context }),
      options: entry.options,
      process: processOf(entry),
    };
  });
  checkNames(policies, context);
  return policies;
}

function checkKnown(path: Path, policy: string, { known, report }: BuildContext): void {
  if (!known.policies.includes(policy))
    report(path, `Expected a policy: ${known.policies.join(', ')}`, policy);
}

interface Around {
  readonly file: ScenarioFile;
  readonly context: BuildContext;
}

/** The scenario's configuration with what the policy overrides; what is wrong in the former is reported there alone. */
function configOf(path: Path, own: PolicyFile['config'], { file, context }: Around): SchedulerConfig {
  const shared = schedulerConfigOf(file.config ?? {});
  if (own === undefined) return shared.kind === 'config' ? shared.config : defaultSchedulerConfig({});
  const read = schedulerConfigOf(mergeOver(file.config ?? {}, own) as Readonly<Record<string, unknown>>);
  if (read.kind === 'config') return read.config;
  const told = shared.kind === 'issues' ? shared.issues.map(({ rule }) => rule) : [];
  for (const issue of read.issues)
    if (!told.includes(issue.rule)) context.add({ ...issue, path: [...path, ...issue.path] });
  return defaultSchedulerConfig({});
}

function processOf({ process }: PolicyFile): ProcessSpec {
  const { tasksMax, restart, registry, hangUps } = process;
  return {
    tasksMax,
    restartUs: restart,
    registryIsDurable: registry === 'durable',
    ...(hangUps === 'noticed' ? {} : { noticesHangUps: false }),
  };
}

function checkNames(policies: readonly PolicySpec[], { report }: BuildContext): void {
  policies.forEach(({ name }, index) => {
    if (policies.findIndex((other) => other.name === name) < index)
      report(['policies', index], 'Expected a name of its own for each policy', name);
  });
}
