/** Sources from the arrival laws of the scenario. */
import { invariant } from '../../base/assert.ts';
import { type DurationUs, type MonoUs, US_PER_S } from '../../base/units.ts';
import type { ArrivalSpec, RateSpec, StreamSpec } from '../scenario/types.ts';
import { drawKey, type Draws } from './draws.ts';
import { exponentialGaps, gammaGaps, type GapLaw, weibullGaps } from './gaps.ts';
import { RateCourse } from './rate-course.ts';
import { createSizeLaw, type SizeContext } from './sizes.ts';
import { ClosedSource, OpenSource, type Source } from './source.ts';
import { UserLaw } from './user-law.ts';

export interface SourcesOptions extends SizeContext {
  readonly streams: readonly StreamSpec[];
  readonly spanUs: DurationUs;
  readonly seed: number;
  readonly mixPerSecond: (stream: StreamSpec) => number;
}

export function createSources(options: SourcesOptions, draws: Draws): readonly Source[] {
  const sources: Source[] = [];
  for (const [position, stream] of options.streams.entries()) {
    const name = uniqueName(options.streams, position);
    const sizes = createSizeLaw(stream, options);
    const law = new UserLaw(stream, { position, name, seed: options.seed, sizes, draws });
    sources.push(...sourcesOf(law, name, { ...options, draws, order: sources.length }));
  }
  return sources;
}

/** What a stream's users are drawn from; equal names are told apart. */
function uniqueName(streams: readonly StreamSpec[], position: number): string {
  const name = streams[position]?.name ?? '';
  const before = streams.slice(0, position).filter((stream) => stream.name === name).length;
  return before === 0 ? name : `${name} ${before}`;
}

interface SourceContext extends SourcesOptions {
  readonly draws: Draws;
  readonly order: number;
}

function sourcesOf(law: UserLaw, name: string, context: SourceContext): readonly Source[] {
  const { stream } = law;
  const { arrivals } = stream;
  const { draws, seed, order } = context;
  const { course } = stream;
  const until: MonoUs = 0 + context.spanUs;
  if (arrivals.kind === 'closed') {
    const perUs = 1 / Math.max(1, arrivals.thinkMeanUs);
    const thinkKey = drawKey(seed, `think ${name}`);
    return Array.from({ length: arrivals.users }, (_, member) => {
      const clock = new RateCourse({ perUs, course, bursts: undefined, until });
      const members = arrivals.users;
      return new ClosedSource({
        law,
        thinkKey,
        course: clock,
        draws,
        order: order + member,
        member,
        members,
      });
    });
  }
  invariant(arrivals.kind !== 'trace', 'Traces are read elsewhere');
  const perUs = perSecond(arrivals.rate, stream, context) / US_PER_S;
  const bursts = arrivals.kind === 'on-off' ? arrivals : undefined;
  const clock = new RateCourse({ perUs, course, bursts, until });
  const gapKey = drawKey(seed, `gap ${name}`);
  return [new OpenSource({ law, gaps: gapsOf(arrivals), gapKey, course: clock, draws, order })];
}

function perSecond(rate: RateSpec, stream: StreamSpec, { mixPerSecond }: SourceContext): number {
  return rate.kind === 'per-second' ? rate.perSecond : rate.load * mixPerSecond(stream);
}

function gapsOf(arrivals: ArrivalSpec): GapLaw {
  if (arrivals.kind === 'gamma') return gammaGaps(arrivals.cv);
  if (arrivals.kind === 'weibull') return weibullGaps(arrivals.shape);
  return exponentialGaps;
}
