/** Windows of a rate as a course in the run's time: spliced, compressed, and times the stream's own course. */
import { type DurationUs, type MonoUs, US_PER_S } from '../../../base/units.ts';
import type { TracePart } from '../../scenario/types.ts';
import { TRACE_ROWS_MAX, type TraceWindow } from './trace.ts';

export interface WindowPiece {
  readonly from: MonoUs;
  /** Requests per second. */
  readonly times: number;
  readonly law: TraceWindow['law'];
}

export interface WindowCourseOptions {
  readonly windows: readonly TraceWindow[];
  readonly parts: readonly TracePart[];
  /** How much faster than in the trace; rates grow by as much. */
  readonly times: number;
  readonly course: readonly { readonly from: MonoUs; readonly times: number }[];
  readonly until: MonoUs;
}

/** The distance of the last two windows is how long the last one lasts; 600 s when there is only one. */
const WINDOW_US: DurationUs = 600 * US_PER_S;

export function windowCourse(options: WindowCourseOptions): readonly WindowPiece[] {
  const spliced = spliceWindows(options);
  const { course } = options;
  const pieces: WindowPiece[] = [];
  let at = 0;
  let by = 0;
  for (let from: MonoUs = 0; from < options.until; ) {
    while (at + 1 < spliced.length && (spliced[at + 1] as WindowPiece).from <= from) at += 1;
    while (by < course.length && (course[by]?.from ?? 0) <= from) by += 1;
    const window = spliced[at] as WindowPiece;
    const times = window.times * (by === 0 ? 1 : (course[by - 1]?.times ?? 1));
    pieces.push({ from, times, law: window.law });
    from = Math.min(
      spliced[at + 1]?.from ?? Number.POSITIVE_INFINITY,
      course[by]?.from ?? Number.POSITIVE_INFINITY,
    );
  }
  return pieces;
}

/** In the run's time, the first at 0, silence after the last. */
function spliceWindows({ windows, parts, times, until }: WindowCourseOptions): readonly WindowPiece[] {
  const endUs = endOf(windows);
  const pieces: WindowPiece[] = [];
  const stretches = parts.length > 0 ? parts : [{ fromUs: 0, untilUs: endUs, repeats: 1 }];
  let offsetUs: DurationUs = 0;
  for (const { fromUs, untilUs, repeats } of stretches) {
    for (let repeat = 0; repeat < repeats && offsetUs / times < until; repeat += 1) {
      for (const [index, { atUs, perSecond, law }] of windows.entries()) {
        const nextUs = windows[index + 1]?.atUs ?? endUs;
        if (nextUs <= fromUs || atUs >= untilUs || pieces.length >= TRACE_ROWS_MAX) continue;
        const from = Math.round((offsetUs + Math.max(0, atUs - fromUs)) / times);
        pieces.push({ from, times: perSecond * times, law });
      }
      if (untilUs > endUs) pieces.push(silenceFrom((offsetUs + Math.max(0, endUs - fromUs)) / times));
      offsetUs += untilUs - fromUs;
    }
  }
  pieces.push(silenceFrom(offsetUs / times));
  return pieces;
}

function endOf(windows: readonly TraceWindow[]): DurationUs {
  const last = windows.at(-1)?.atUs ?? 0;
  const before = windows.at(-2)?.atUs;
  return last + (before === undefined ? WINDOW_US : last - before);
}

function silenceFrom(from: MonoUs): WindowPiece {
  return { from: Math.round(from), times: 0, law: { kind: 'gamma', shape: 1 } };
}
