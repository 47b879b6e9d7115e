/** Streams of requests, from the file to what the simulator runs. */
import type { DurationUs } from '../../base/units.ts';
import type { ClassConfig, SchedulerConfig } from '../../core/config/types.ts';
import { fittedModels } from '../clients/fitted.ts';
import type { BuildContext } from './build-context.ts';
import { courseOf } from './course.ts';
import type { ArrivalFile, ScenarioFile, StreamFile } from './file-types.ts';
import type { ArrivalSpec, RateSpec, SizeSpec, StreamSpec, TenantsSpec } from './types.ts';

interface Around {
  readonly spanUs: DurationUs;
  readonly config: SchedulerConfig;
  readonly context: BuildContext;
}

export function buildStreams(
  file: ScenarioFile,
  config: SchedulerConfig,
  context: BuildContext,
): readonly StreamSpec[] {
  const around = { spanUs: file.span, config, context };
  return Object.entries(file.streams).map(([name, stream]) => buildStream(name, stream, around));
}

function buildStream(name: string, stream: StreamFile, around: Around): StreamSpec {
  const { config, spanUs, context } = around;
  const { users, noise } = stream;
  const [least, most] = users.think;
  const at = ['streams', name];
  if (least > most) context.report([...at, 'users', 'think'], 'Expected the shorter time first', users.think);
  return {
    name,
    arrivals: arrivalsOf(at, stream, context),
    course: courseOf(stream, spanUs),
    classes: classesOf(at, stream, around),
    serviceTimesMin: stream.serviceTimesMin ?? config.admission.serviceTimesMin,
    tenants: tenantsOf(stream.tenants),
    models: modelsOf(at, stream.models, context),
    modelSwitch: stream.modelSwitch,
    stages: stagesOf(at, stream.stages ?? {}, context),
    sizes: sizesOf(at, stream, context),
    estimateSigma: noise.estimate,
    serviceSigma: noise.service,
    isStream: stream.streamed,
    users: {
      triesMax: users.tries,
      patientShare: users.patient,
      thinkUs: [least, most],
      hangsUp: users.hangsUp,
      tellsCount: users.tellsCount,
    },
  };
}

function arrivalsOf(at: readonly string[], stream: StreamFile, context: BuildContext): ArrivalSpec {
  const { arrivals } = stream;
  if (arrivals === 'poisson') return { kind: 'poisson', rate: rateOf(at, stream, context) };
  switch (arrivals.kind) {
    case 'poisson':
      return { kind: 'poisson', rate: rateOf(at, stream, context) };
    case 'gamma':
      return { kind: 'gamma', cv: arrivals.cv, rate: rateOf(at, stream, context) };
    case 'weibull':
      return { kind: 'weibull', shape: arrivals.shape, rate: rateOf(at, stream, context) };
    case 'on-off':
      if (arrivals.on === 0)
        context.report([...at, 'arrivals', 'on'], 'Expected a burst of some length', arrivals.on);
      return {
        kind: 'on-off',
        rate: rateOf(at, stream, context),
        onUs: arrivals.on,
        offUs: arrivals.off,
      };
    case 'closed':
      noRate(at, stream, context);
      return { kind: 'closed', users: arrivals.users, thinkMeanUs: arrivals.think };
    case 'trace':
      noRate(at, stream, context);
      return traceOf(at, arrivals, context);
  }
}

type TraceArrivals = Extract<ArrivalFile, { kind: 'trace' }>;

function traceOf(at: readonly string[], arrivals: TraceArrivals, context: BuildContext): ArrivalSpec {
  const { format, file, times } = arrivals;
  const found = file === undefined ? context.traceFile : context.resolveFile(file);
  const parts = arrivals.parts.map(({ from, until, repeats }, index) => {
    if (until <= from)
      context.report([...at, 'arrivals', 'parts', index], 'Expected a part that ends after it begins');
    return { fromUs: from, untilUs: until, repeats };
  });
  return { kind: 'trace', format, file: found, times, parts };
}

const NO_RATE: RateSpec = { kind: 'load', load: 0 };

function rateOf(at: readonly string[], { rate, load }: StreamFile, { report }: BuildContext): RateSpec {
  if (rate !== undefined && load !== undefined) report(at, 'Expected either rate or load, not both');
  if (rate !== undefined) return { kind: 'per-second', perSecond: rate };
  if (load !== undefined) return { kind: 'load', load };
  report(at, 'Expected a rate such as 4/s, or a load such as 0.85; both are missing');
  return NO_RATE;
}

function noRate(at: readonly string[], stream: StreamFile, { report }: BuildContext): void {
  for (const key of ['rate', 'load'] as const)
    if (stream[key] !== undefined)
      report([...at, key], `Expected no ${key} where users or a trace set the pace`, stream[key]);
}

function classesOf(
  at: readonly string[],
  stream: StreamFile,
  { config, context }: Around,
): StreamSpec['classes'] {
  const given = Object.entries(stream.classes ?? { [config.defaultClass]: 1 });
  const shares = given.map(([, one]) => (typeof one === 'number' ? one : one.share));
  const total = totalOf([...at, 'classes'], shares, context);
  return given.map(([name, one], index) => {
    const known = config.classes.find((candidate) => candidate.name === name);
    if (known === undefined) {
      const names = config.classes.map((candidate) => candidate.name).join(', ');
      context.report([...at, 'classes', name], `Expected a class of the configuration: ${names}`, name);
    }
    const own = typeof one === 'number' ? undefined : one.deadline;
    return {
      name,
      share: (shares[index] ?? 0) / total,
      deadlineUs: own ?? stream.deadline ?? deadlineOf(known, stream.streamed),
    };
  });
}

function deadlineOf(known: ClassConfig | undefined, isStream: boolean): DurationUs {
  if (known === undefined) return 0;
  return (isStream ? known.firstByteMs : known.completionMs) * 1_000;
}

/** At least a tiny sum, so that shares can be divided by it. */
function totalOf(path: readonly string[], shares: readonly number[], { report }: BuildContext): number {
  const total = shares.reduce((sum, share) => sum + share, 0);
  if (total > 0) return total;
  report(path, 'Expected shares that add up to more than 0', total);
  return 1;
}

function tenantsOf(tenants: StreamFile['tenants']): TenantsSpec {
  if (typeof tenants === 'string') return { kind: 'one', id: tenants };
  if (typeof tenants === 'number') return { kind: 'many', prefix: 'tenant', count: tenants, zipf: 0 };
  return { kind: 'many', ...tenants };
}

function modelsOf(
  at: readonly string[],
  models: StreamFile['models'],
  context: BuildContext,
): StreamSpec['models'] {
  if (models === 'fitted-models') return fittedModels('checkpoint');
  if (typeof models === 'string') return [{ id: models, share: 1 }];
  const given = Object.entries(models);
  const total = totalOf(
    [...at, 'models'],
    given.map(([, share]) => share),
    context,
  );
  return given.map(([id, share]) => ({ id, share: share / total }));
}

function stagesOf(
  at: readonly string[],
  stages: NonNullable<StreamFile['stages']>,
  context: BuildContext,
): StreamSpec['stages'] {
  const given = Object.entries(stages);
  if (given.length === 0) return [];
  const path = [...at, 'stages'];
  const shares = given.map(([, { share }]) => share);
  const total = totalOf(path, shares, context);
  return given.map(([name, { share, after }]) => {
    if (after !== undefined && !Object.hasOwn(stages, after)) {
      const names = Object.keys(stages).join(', ');
      context.report([...path, name, 'after'], `Expected a stage of the stream: ${names}`, after);
    }
    return { stage: { name, parent: after ?? '' }, share: share / total };
  });
}

function sizesOf(at: readonly string[], stream: StreamFile, { report }: BuildContext): SizeSpec {
  const { arrivals, sizes } = stream;
  const isOfTrace = sizes === 'trace' || (sizes !== 'fitted-images' && sizes.kind === 'trace');
  const hasSizes = arrivals !== 'poisson' && arrivals.kind === 'trace' && arrivals.format !== 'servegen';
  if (isOfTrace && !hasSizes)
    report(
      [...at, 'sizes'],
      'Expected sizes of their own: only traces of azure and mooncake tell sizes',
      'trace',
    );
  if (sizes === 'trace') return { kind: 'trace' };
  if (sizes === 'fitted-images') return { kind: 'fitted-images', usPerImageStep: 0 };
  switch (sizes.kind) {
    case 'work':
      return { kind: 'work', meanUs: sizes.mean, sigma: sizes.sigma };
    case 'fitted-images':
      return { kind: 'fitted-images', usPerImageStep: sizes.perImageStep };
    default:
      return sizes;
  }
}
