/** Sources from the arrival laws of the scenario. */
import { invariant } from '../../base/assert.ts';
import { type DurationUs, type MonoUs, US_PER_S } from '../../base/units.ts';
import type { ArrivalSpec, RateSpec, StreamSpec } from '../scenario/types.ts';
import { drawKey, type Draws } from './draws.ts';
import { exponentialGaps, gammaGaps, type GapLaw, weibullGaps } from './gaps.ts';
import { RateCourse } from './rate-course.ts';
import { createSizeLaw, type SizeContext, sizeOf } from './sizes.ts';
import { ClosedSource, OpenSource, type Source } from './source.ts';
import { TraceSource } from './trace-source.ts';
import { readRows, readWindows } from './traces/read-trace.ts';
import type { TraceRow, TraceWindow } from './traces/trace.ts';
import { windowCourse } from './traces/window-course.ts';
import { UserLaw } from './user-law.ts';

/** The text of a trace file, by the name that the scenario has for it. */
export type ReadTrace = (file: string) => string;

export interface SourcesOptions extends SizeContext {
  readonly streams: readonly StreamSpec[];
  /** Users arrive from 0 to before this. */
  readonly spanUs: DurationUs;
  readonly seed: number;
  /** Requests per second of the stream's mix that the fleet can do: what a load of 1 is. */
  readonly mixPerSecond: (stream: StreamSpec) => number;
  /** Needed where a stream replays a trace. */
  readonly readTrace?: ReadTrace;
}

export function createSources(options: SourcesOptions, draws: Draws): readonly Source[] {
  const sources: Source[] = [];
  for (const [position, stream] of options.streams.entries()) {
    const name = uniqueName(options.streams, position);
    const rows = rowsOf(stream, options.readTrace);
    const sizes = createSizeLaw(stream, options, rows);
    const law = new UserLaw(stream, { position, name, seed: options.seed, sizes, draws });
    sources.push(...sourcesOf({ ...options, law, name, rows, draws, order: sources.length }));
  }
  return sources;
}

/** What a stream's users are drawn from; equal names are told apart. */
function uniqueName(streams: readonly StreamSpec[], position: number): string {
  const name = streams[position]?.name ?? '';
  const before = streams.slice(0, position).filter((stream) => stream.name === name).length;
  return before === 0 ? name : `${name} ${before}`;
}

/** The requests of the stream's trace; none when it replays none, or one that tells of rates alone. */
export function rowsOf({ arrivals }: StreamSpec, readTrace: ReadTrace | undefined): readonly TraceRow[] {
  if (arrivals.kind !== 'trace' || arrivals.format === 'servegen') return [];
  return readRows(arrivals.format, textOf(arrivals, readTrace), arrivals.file);
}

interface SourceContext extends SourcesOptions {
  readonly law: UserLaw;
  readonly name: string;
  readonly rows: readonly TraceRow[];
  readonly draws: Draws;
  readonly order: number;
}

function sourcesOf(context: SourceContext): readonly Source[] {
  const { arrivals } = context.law.stream;
  if (arrivals.kind === 'closed') return closedSources(arrivals, context);
  if (arrivals.kind !== 'trace') return [openSource(arrivals, context)];
  const { times, parts = [] } = arrivals;
  invariant(times > 0, 'A trace is compressed by more than 0 times');
  invariant(
    parts.every(({ fromUs, untilUs, repeats }) => untilUs > fromUs && repeats >= 1),
    'A part of a trace ends after it begins, and comes at least once',
  );
  return [arrivals.format === 'servegen' ? windowSource(arrivals, context) : traceSource(arrivals, context)];
}

type ArrivalsOf<Kind extends ArrivalSpec['kind']> = Extract<ArrivalSpec, { kind: Kind }>;

function closedSources(arrivals: ArrivalsOf<'closed'>, context: SourceContext): readonly Source[] {
  const { law, name, draws, seed, order } = context;
  const perUs = 1 / Math.max(1, arrivals.thinkMeanUs);
  const thinkKey = drawKey(seed, `think ${name}`);
  return Array.from({ length: arrivals.users }, (_, member) => {
    const course = clockOf(context, { perUs });
    const members = arrivals.users;
    return new ClosedSource({ law, thinkKey, course, draws, order: order + member, member, members });
  });
}

function openSource(
  arrivals: ArrivalsOf<'poisson' | 'gamma' | 'weibull' | 'on-off'>,
  context: SourceContext,
): Source {
  const { law, name, draws, seed, order } = context;
  const perUs = perSecond(arrivals.rate, law.stream, context) / US_PER_S;
  const course = clockOf(context, { perUs, bursts: arrivals.kind === 'on-off' ? arrivals : undefined });
  const gaps = gapsOf(arrivals);
  return new OpenSource({
    law,
    gapsAt: () => gaps,
    gapKey: drawKey(seed, `gap ${name}`),
    course,
    draws,
    order,
  });
}

function traceSource(arrivals: ArrivalsOf<'trace'>, context: SourceContext): Source {
  const { law, rows, order } = context;
  const { stream } = law;
  return new TraceSource({
    law,
    rows,
    parts: arrivals.parts ?? [],
    course: clockOf(context, { perUs: arrivals.times }),
    sizeOf: stream.sizes.kind === 'trace' ? (demand) => sizeOf(demand, stream, context) : undefined,
    order,
  });
}

function windowSource(arrivals: ArrivalsOf<'trace'>, context: SourceContext): Source {
  const { law, name, draws, seed, order, readTrace } = context;
  const until: MonoUs = 0 + context.spanUs;
  const pieces = windowCourse({
    windows: readWindows(textOf(arrivals, readTrace), arrivals.file),
    parts: arrivals.parts ?? [],
    times: arrivals.times,
    course: law.stream.course,
    until,
  });
  const course = new RateCourse({ perUs: 1 / US_PER_S, course: pieces, bursts: undefined, until });
  const gapKey = drawKey(seed, `gap ${name}`);
  return new OpenSource({ law, gapsAt: gapsByWindow(pieces), gapKey, course, draws, order });
}

/** The law of the window at hand, or of the next one in which somebody asks. */
function gapsByWindow(pieces: ReturnType<typeof windowCourse>): (at: MonoUs) => GapLaw {
  const laws = pieces.map(({ law }) => lawOf(law));
  let present = 0;
  return (at) => {
    while (present + 1 < pieces.length) {
      const isPast = (pieces[present + 1]?.from ?? 0) <= at;
      if (!isPast && pieces[present]?.times !== 0) break;
      present += 1;
    }
    return laws[present] ?? exponentialGaps;
  };
}

function clockOf(
  { law, spanUs }: SourceContext,
  { perUs, bursts }: { readonly perUs: number; readonly bursts?: ArrivalsOf<'on-off'> | undefined },
): RateCourse {
  return new RateCourse({ perUs, course: law.stream.course, bursts, until: 0 + spanUs });
}

function perSecond(rate: RateSpec, stream: StreamSpec, { mixPerSecond }: SourceContext): number {
  return rate.kind === 'per-second' ? rate.perSecond : rate.load * mixPerSecond(stream);
}

function gapsOf(arrivals: ArrivalSpec): GapLaw {
  if (arrivals.kind === 'gamma') return gammaGaps(arrivals.cv);
  if (arrivals.kind === 'weibull') return weibullGaps(arrivals.shape);
  return exponentialGaps;
}

function lawOf({ kind, shape }: TraceWindow['law']): GapLaw {
  return kind === 'gamma' ? gammaGaps(1 / Math.sqrt(shape)) : weibullGaps(shape);
}

function textOf({ file }: ArrivalsOf<'trace'>, readTrace: ReadTrace | undefined): string {
  invariant(readTrace !== undefined, 'A stream that replays a trace needs somebody who reads it');
  return readTrace(file);
}
