/** Courses of the rate: what `spike`, `staircase` and `diurnal` stand for. Several of them multiply. */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { DiurnalFile, SpikeFile, StaircaseFile, StreamFile } from './file-types.ts';

/** Times the rate, from an instant on; 1 before the first. */
export type Course = readonly { readonly from: MonoUs; readonly times: number }[];

/** Steps of a day: half an hour each, finer than any day's curve is known. */
const DAY_STEPS = 48;

export function courseOf(stream: StreamFile, spanUs: DurationUs): Course {
  const parts: Course[] = [sorted(stream.course)];
  if (stream.spike !== undefined) parts.push(spikeCourse(stream.spike));
  if (stream.staircase !== undefined) parts.push(staircaseCourse(stream.staircase, spanUs));
  if (stream.diurnal !== undefined) parts.push(diurnalCourse(stream.diurnal, spanUs));
  return product(parts.filter((part) => part.length > 0));
}

function sorted(course: Course): Course {
  return course.toSorted((a, b) => a.from - b.from);
}

function spikeCourse({ from, for: lengthUs, times }: SpikeFile): Course {
  return [
    { from, times },
    { from: from + lengthUs, times: 1 },
  ];
}

function staircaseCourse(stairs: StaircaseFile, spanUs: DurationUs): Course {
  const { from, steps, times, down } = stairs;
  const lengthUs = stairs.for ?? Math.max(0, spanUs - from);
  const count = down ? 2 * steps : steps;
  return Array.from({ length: count }, (_, at) => {
    const step = at < steps ? at : count - 1 - at;
    return {
      from: from + Math.round((lengthUs * at) / count),
      times: 1 + ((times - 1) * step) / (steps - 1),
    };
  });
}

/** Each step has the value of its middle. */
function diurnalCourse({ period, low, high, lowAt }: DiurnalFile, spanUs: DurationUs): Course {
  const stepUs = Math.max(1, Math.round(period / DAY_STEPS));
  return Array.from({ length: Math.ceil(spanUs / stepUs) }, (_, step) => {
    const from = step * stepUs;
    const phase = (2 * Math.PI * (from + stepUs / 2 - lowAt)) / period;
    return { from, times: (low + high) / 2 - ((high - low) / 2) * Math.cos(phase) };
  });
}

function product(parts: readonly Course[]): Course {
  const [only, another] = parts;
  if (only === undefined || another === undefined) return only ?? [];
  const instants = [...new Set(parts.flat().map(({ from }) => from))].toSorted((a, b) => a - b);
  return instants.map((from) => ({
    from,
    times: parts.reduce((times, part) => times * timesAt(part, from), 1),
  }));
}

export function timesAt(course: Course, at: MonoUs): number {
  return course.findLast(({ from }) => from <= at)?.times ?? 1;
}
