/** Bars: figures that must hold. Whom they name is checked here; whether the figure exists is known after a run. */
import type { BuildContext } from './build-context.ts';
import type { BarBaseFile, BarFile } from './file-types.ts';
import type { Path } from './overrides.ts';
import type { Bar, PolicySpec } from './types.ts';

export function buildBars(
  bars: readonly BarFile[],
  policies: readonly PolicySpec[],
  context: BuildContext,
): readonly Bar[] {
  const names = policies.map(({ name }) => name);
  return bars.map((bar, index) => buildBar(['bars', index], bar, { names, context }));
}

interface Around {
  readonly names: readonly string[];
  readonly context: BuildContext;
}

const METRIC = /^[A-Za-z][\w-]*(?:\.[\w -]+)*$/;

function buildBar(path: Path, bar: BarFile, { names, context }: Around): Bar {
  const { about, metric, atMost, atLeast } = bar;
  const of = typeof bar.of === 'string' ? { policy: bar.of } : bar.of;
  if (atMost === undefined && atLeast === undefined)
    context.report(path, 'Expected atMost or atLeast; both are missing');
  checkMetric([...path, 'metric'], metric, context);
  if (of?.metric !== undefined) checkMetric([...path, 'of', 'metric'], of.metric, context);
  const { variants } = context.known;
  checkNamed([...path, 'policy'], bar.policy, { sort: 'policy', names, context });
  checkNamed([...path, 'of'], of?.policy, { sort: 'policy', names, context });
  checkNamed([...path, 'variant'], bar.variant, { sort: 'variant', names: variants, context });
  checkNamed([...path, 'of'], of?.variant, { sort: 'variant', names: variants, context });
  return {
    about,
    policy: bar.policy ?? names[0] ?? '',
    variant: bar.variant ?? '',
    metric,
    ...(atMost === undefined ? {} : { atMost }),
    ...(atLeast === undefined ? {} : { atLeast }),
    ...(bar.everySeed === true ? { everySeed: true } : {}),
    ...(of === undefined ? {} : { of: baseOf(of) }),
  };
}

function baseOf({ policy = '', variant = '', metric }: BarBaseFile): NonNullable<Bar['of']> {
  return { policy, variant, ...(metric === undefined ? {} : { metric }) };
}

function checkMetric(path: Path, metric: string, { report }: BuildContext): void {
  if (!METRIC.test(metric)) report(path, 'Expected a path such as byClass.critical.attained', metric);
}

function checkNamed(
  path: Path,
  name: string | undefined,
  { sort, names, context }: Around & { readonly sort: 'policy' | 'variant' },
): void {
  if (name === undefined || names.includes(name)) return;
  context.report(path, `Expected a ${sort} of the scenario: ${names.join(', ') || 'it has none'}`, name);
}
