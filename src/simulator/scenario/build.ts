/** A scenario file that passed its schema becomes what the simulator runs; names that do not exist are reported. */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import { defaultSchedulerConfig } from '../../core/config/index.ts';
import type { SchedulerConfig } from '../../core/config/types.ts';
import type { BuildContext } from './build-context.ts';
import { buildBars } from './build-bars.ts';
import { buildFaults, buildGroups } from './build-fleet.ts';
import { buildPolicies } from './build-policies.ts';
import { buildStreams } from './build-streams.ts';
import { schedulerConfigOf } from './config-of.ts';
import type { ScenarioFile } from './file-types.ts';
import type { NodeGroup, Scenario, StreamSpec } from './types.ts';

export function buildScenario(file: ScenarioFile, context: BuildContext): Scenario {
  const config = readConfig(file.config ?? {}, context);
  const streams = buildStreams(file, config, context);
  const asked = [...new Set(streams.flatMap((stream) => stream.models.map((model) => model.id)))];
  const fleet = buildGroups(file.fleet, asked, context);
  checkModels(streams, fleet, context);
  const policies = buildPolicies(file, context);
  const until: MonoUs = file.window?.until ?? Number(file.span);
  const from: MonoUs = file.window?.from ?? 0;
  if (from >= until) context.report(['window'], 'Expected a window that ends after it begins');
  return {
    name: file.name ?? context.name,
    about: file.about,
    spanUs: file.span,
    drainUs: file.drain ?? longestDeadline(streams),
    window: { from, until },
    sampleUs: file.sample,
    seed: file.seed,
    config,
    fleet,
    streams,
    faults: buildFaults(file, context),
    policies,
    bars: buildBars(file.bars, policies, context),
  };
}

function longestDeadline(streams: readonly StreamSpec[]): DurationUs {
  return Math.max(0, ...streams.flatMap((stream) => stream.classes.map((one) => one.deadlineUs)));
}

function readConfig(given: Readonly<Record<string, unknown>>, context: BuildContext): SchedulerConfig {
  const read = schedulerConfigOf(given);
  if (read.kind === 'config') return read.config;
  for (const issue of read.issues) context.add({ ...issue, path: ['config', ...issue.path] });
  return defaultSchedulerConfig({});
}

function checkModels(
  streams: readonly StreamSpec[],
  fleet: readonly NodeGroup[],
  { report }: BuildContext,
): void {
  const served = new Set(fleet.flatMap((group) => group.models));
  for (const stream of streams)
    for (const { id } of stream.models)
      if (!served.has(id))
        report(['streams', stream.name, 'models'], 'Expected models that some group of the fleet serves', id);
}
